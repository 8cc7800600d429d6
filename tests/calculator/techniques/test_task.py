"""Tasks and frozen parts: real CPU memory of three heads; measured rows hold the others."""

import pytest

from calculator.architecture import Architecture
from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.parameters import count_parameters
from calculator.plan import Plan, Task
from calculator.report import Phase
from calculator.resolution import resolve
from tests.calculator.answers import refused
from tests.calculator.plans import case_of, options_of
from tests.calculator.real import small_config

# Tensors of a real step in RAM (fp32, eager, no dropout, AdamW, third step, batch 4 x 128), as
# issue 31 gives them; the calculator rounds each tensor up to 512 bytes.
XLM_ROBERTA = {
    "model_type": "xlm-roberta", "hidden_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 4, "intermediate_size": 1024, "vocab_size": 250_002,
    "max_position_embeddings": 514, "type_vocab_size": 1,
}  # fmt: skip
IN_RAM = {Task.LANGUAGE: 2_387_738_696, Task.SEQUENCE: 1_347_177_868, Task.EMBEDDING: 1_346_109_760}
# the keys of distilbert/distilbert-base-uncased-finetuned-sst-2-english on the Hub
SST_2 = {
    "activation": "gelu", "architectures": ["DistilBertForSequenceClassification"],
    "attention_dropout": 0.1, "dim": 768, "dropout": 0.1, "finetuning_task": "sst-2",
    "hidden_dim": 3072, "id2label": {"0": "NEGATIVE", "1": "POSITIVE"}, "initializer_range": 0.02,
    "label2id": {"NEGATIVE": 0, "POSITIVE": 1}, "max_position_embeddings": 512,
    "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "output_past": True,
    "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
    "sinusoidal_pos_embds": False, "tie_weights_": True, "vocab_size": 30_522,
}  # fmt: skip


@pytest.mark.parametrize("task", IN_RAM, ids=str)
def test_a_head_takes_what_a_real_step_took_in_ram(task: Task) -> None:
    model = from_config(XLM_ROBERTA, "xlm-roberta")
    words = "precision=fp32 attention=eager dropout=0 labels=3 batch_size=4 sequence_length=128"
    total = estimate(model, Plan.parse({**options_of(words), "task": task})).gpu.total
    assert 0 <= total - IN_RAM[task] < 1e-5 * total


def test_a_config_of_a_classifier_is_counted_as_one_and_says_so() -> None:
    model = from_config(SST_2, "sst-2")
    plan = resolve(model, Plan())
    assert (plan.task, plan.labels) == (Task.SEQUENCE, 2)
    assert count_parameters(model, plan) == 66_955_010  # as its page on the Hub says: 67M
    assert "DistilBertForSequenceClassification" in model.note
    assert resolve(model, Plan(task=Task.LANGUAGE)).task is Task.LANGUAGE


def test_a_reward_is_one_number() -> None:
    plan = Plan(task=Task.REWARD, batch_size=2)
    model = from_config(SST_2, "sst-2")
    assert resolve(model, plan).labels == 1
    with refused("labels = '2': a reward is one number"):
        resolve(model, plan.but(labels=2))


def test_sums_of_all_layers_and_ddp_without_a_poolers_gradient_are_refused() -> None:
    model = from_config(XLM_ROBERTA, "xlm-roberta")
    with pytest.raises(InputError, match=r"gpus = '2'.*pooler gets no gradient"):
        resolve(model, Plan(task=Task.EMBEDDING, batch_size=2, gpus=2))
    model = recordings(use_weighted_layer_sum=True)
    with pytest.raises(InputError, match="use_weighted_layer_sum keeps every layer's output"):
        resolve(model, Plan())
    assert resolve(model, Plan(task=Task.LANGUAGE)).task is Task.LANGUAGE


def test_with_gradcache_more_pairs_need_their_embeddings_and_scores_alone() -> None:
    case = case_of("bert-base", "task=embedding batch_size=512 sequence_length=64")
    whole, few = case.report, case.but(mini_batch_size=4).report
    more = case.but(mini_batch_size=4, batch_size=1024).report
    # in the second passes all gradients live, of 768 elements in 32 bits each, and the inputs
    inputs = 2 * 8 * 64
    assert few.phases[Phase.BACKWARD].total < 0.2 * whole.gpu.total
    added = more.phases[Phase.BACKWARD].total - few.phases[Phase.BACKWARD].total
    assert added == 512 * (768 * 4 + inputs)
    # each mini-batch passes forward once more: 4 products where there were 3
    assert few.work.flops == pytest.approx(whole.work.flops * 4 / 3, rel=0.01)


def recordings(**more: object) -> Architecture:
    """A config.json that names Whisper's class for recordings."""
    classes = ["WhisperForAudioClassification"]
    config = {**small_config("whisper"), "architectures": classes, **more}
    return from_config(config, "recordings")


def test_a_classifier_of_recordings_has_an_encoder_alone() -> None:
    model = recordings(id2label={"0": "yes", "1": "no", "2": "stop"})
    plan = resolve(model, Plan())
    assert (plan.task, plan.labels, plan.target_length) == (Task.AUDIO, 3, None)
    own = count_parameters(model, plan.but(task=Task.LANGUAGE, target_length=200))
    # the decoder, its words and positions go; a product to 256 places and one to 3 labels come
    decoder = 6 * (2 * 4 * 72 * 72 + 2 * 3 * 72 + 2 * 72 * 136 + 136 + 72 + 3 * 2 * 72) + 2 * 72
    assert own - count_parameters(model, plan) == (
        decoder + (503 + 200) * 72 - (73 * 256 + 257 * 3)
    )


@pytest.mark.parametrize(
    ("task", "modules"), [(Task.AUDIO, "embed_tokens"), (Task.SEQUENCE, "lm_head")]
)
def test_a_table_that_a_task_s_class_lacks_is_not_copied(task: Task, modules: str) -> None:
    model = recordings() if task is Task.AUDIO else find_model("gpt2-s")
    plan = Plan(task=task, lora=8, lora_targets="all-linear", lora_modules=modules)
    with pytest.raises(InputError, match="lora_modules"):
        resolve(model, plan)
