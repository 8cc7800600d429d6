"""Plans that nobody measured, or that the code they stand for refuses: by which field, and why."""

import pytest

from calculator.cards import CARDS
from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.plans import options_of

GPT2, BERT, QWEN, LLAMA = "gpt2-s", "bert-base", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B"
MIXTRAL, DALLE = "mistralai/Mixtral-8x7B-v0.1", "dalle-together"
VIT = "google/vit-base-patch16-224"
MPNET, ALBERT = "sentence-transformers/all-mpnet-base-v2", "albert/albert-base-v2"

# each technique with what its plans have in common: a model, the options, and the refusal
SHARED = {
    "paged": "paged_optimizer=true",
    "pipeline": "precision=half pipeline_parallel=4 accumulation=6",
    "rounds": "pipeline_parallel=4 accumulation=8 pipeline_schedule=interleaved",
    "zero1": "gpus=4 data_parallel=zero1",
    "shards": "gpus=4 data_parallel=fsdp",
    "context": "precision=half gpus=8 context_parallel=4 sequence_length=4096",
    "tensor": "precision=half tensor_parallel=4",
    "tokens": "precision=half tensor_parallel=4 sequence_parallel=true",
    "experts": "precision=half expert_parallel=4",
    "operations": "precision=half checkpointing=operations",
    "every": "precision=half checkpointing=full checkpoint_every=2",
    "offload": "precision=half checkpointing=full activation_offload=pageable",
    "scaler": "gradient_scaler=true",
    "loss": "chunked_loss=torch",
    "backward": "update_in_backward=true",
    "lora": "lora=4",
    "adapters": "lora=4 lora_targets=all-linear",
    "muon": "optimizer=muon",
    "gradcache": "task=embedding batch_size=32 mini_batch_size=4",
    "none": "",
}
CASES = [
    ("paged", GPT2, "optimizer_bits=16", "optimizer_bits = .*must be 32 or 8"),
    ("paged", GPT2, "optimizer=lamb", "paged_optimizer = .*AdamW and Lion, not of lamb"),
    ("paged", GPT2, "optimizer=sgd", "paged_optimizer = .*not of sgd"),
    ("paged", GPT2, "optimizer=adafactor", "paged_optimizer = .*not of adafactor"),
    ("paged", GPT2, "offload=optimizer", "paged_optimizer = .*updates all states"),
    ("paged", GPT2, f"precision=half {SHARED['shards']}", "does not update shards"),
    ("pipeline", LLAMA, "pipeline_parallel=33 accumulation=40", "must be at most 32"),
    ("rounds", LLAMA, "pipeline_parallel=11 pipeline_stages=3", "pipeline_parallel = .*at most 10"),
    ("pipeline", LLAMA, "accumulation=65", "accumulation = .*must be at most 64"),
    ("pipeline", LLAMA, "accumulation=3", "each of 4 stages: must be at least 4"),
    ("pipeline", LLAMA, "pipeline_stages=2", "1f1b has one stage on each GPU: must be 1"),
    ("rounds", LLAMA, "pipeline_stages=1", "several stages on each GPU: must be at least 2"),
    ("rounds", LLAMA, "pipeline_stages=33", "each has a layer, of 32"),
    ("rounds", LLAMA, "accumulation=9", "9 micro-batches in 2 equal rounds.*of 2"),
    ("none", GPT2, "cpu_offload=true", "cpu_offload = 'True'.*only shards.*fsdp or zero2"),
    ("zero1", GPT2, "cpu_offload=true", "cpu_offload = 'True'.*only shards.*fsdp or zero2"),
    ("zero1", GPT2, "precision=mixed", "precision = 'mixed'.*no fp32 copies"),
    ("zero1", GPT2, "gpus=1", "data_parallel = 'zero1'.*one GPU"),
    ("shards", LLAMA, "precision=mixed lora=8 quantization=nf4", "'mixed'.*cast packed weights"),
    ("shards", GPT2, "precision=half optimizer=lion", "optimizer = 'lion'"),
    ("shards", GPT2, "precision=half optimizer_bits=8", "optimizer_bits = '8'"),
    ("shards", GPT2, "gpus=1", "data_parallel = 'fsdp'.*one GPU"),
    ("shards", GPT2, "lora=4 lora_bias=all quantization=nf4", "'all'.*one format.*must be none"),
    ("context", LLAMA, "sequence_length=4100", "sequence_length = .*a multiple of 8$"),
    ("context", LLAMA, "gpus=6", "context_parallel = .*divide the 6 GPUs; set gpus to 4"),
    ("context", LLAMA, "gpus=128 context_parallel=128", "must be at most 64"),
    ("context", LLAMA, "precision=fp32", "fails in 32 bits"),
    ("context", LLAMA, "attention=eager", "see one GPU.s tokens"),
    ("context", "deepseek-ai/DeepSeek-V3", "", "made of flash attention"),
    ("context", "google/gemma-3-4b-pt", "", "knows no windows of attention shorter"),
    ("tensor", LLAMA, "tensor_parallel=3", "must divide the 32 heads and the 8 heads of keys"),
    ("tensor", LLAMA, "gpus=6", "gpus = '6': 4 GPUs share the model.*multiple of 4"),
    ("tensor", LLAMA, "tensor_parallel=16", "must divide the 8 heads of keys and values$"),
    # measured: "in-place operations that require placement changes are not supported", "got mixed
    # torch.Tensor and DTensor", and "Operator aten._fused_sgd_.default does not have a sharding"
    ("shards", GPT2, "optimizer=adafactor", "changes norms of parts.*not with fsdp or zero2"),
    ("shards", GPT2, "optimizer=apollo", "plain tensors, as DTensors do not"),
    ("shards", GPT2, "optimizer=momentum update=fused", "no fused momentum of DTensors"),
    ("tensor", LLAMA, "optimizer=adafactor", "norms of parts.*not with shares of layers"),
    ("tensor", LLAMA, "optimizer=lion", "optimizer = 'lion': bitsandbytes does not update"),
    ("tensor", LLAMA, "optimizer_bits=8", "optimizer_bits = '8': bitsandbytes does not update"),
    ("tensor", LLAMA, "lora=8 quantization=nf4", "must be 1 beside quantization = nf4"),
    ("tensor", LLAMA, "optimizer=sgd update=fused", "update = 'fused'.*no fused sgd"),
    ("tensor", LLAMA, "optimizer=muon gpus=8 data_parallel=fsdp", "muon.*not counted together"),
    ("backward", GPT2, "optimizer=muon", "not counted with muon"),
    # distributed/tensor/parallel/ddp.py makes an nn.Parameter of each after every forward pass
    ("tensor", LLAMA, "gpus=8", "data_parallel = 'ddp': .*must be fsdp or zero2"),
    ("tokens", LLAMA, "tensor_parallel=1", "sequence_parallel = .*tensor_parallel at least 2"),
    ("tokens", LLAMA, "sequence_length=66", "4 GPUs do not divide 66 tokens evenly"),
    ("tokens", LLAMA, "reversible=true", "reversible layers are counted with whole sequences"),
    ("experts", MIXTRAL, "expert_parallel=16", "must divide the 8 experts of a layer$"),
    ("experts", MIXTRAL, "sequence_length=65", "divide the 65 tokens of a micro-batch$"),
    ("experts", MIXTRAL, "sequence_length=65 expert_parallel=3", "8 experts.*and the 65 tokens of"),
    ("experts", MIXTRAL, "gpus=16", "must be 1 beside data_parallel = ddp"),
    ("experts", MIXTRAL, SHARED["adapters"], "whose shares are DTensors: leave out"),
    ("experts", MIXTRAL, "tied_embeddings=true", "must be 1 beside tied_embeddings = True"),
    ("experts", MIXTRAL, "optimizer=lion", "bitsandbytes does not update DTensors"),
    ("experts", MIXTRAL, "optimizer=sgd update=fused", "no fused sgd of DTensors"),
    ("operations", GPT2, "reversible=true", "reversible"),
    ("operations", GPT2, "activation_offload=pinned", "full checkpointing only"),
    ("operations", GPT2, "sharing_groups=2 precision=amp", "autocast's copies"),
    ("operations", DALLE, "sequence_length=", "not counted with dalle-together"),
    ("adapters", BERT, "task=tokens", "lora_targets = .*adapts the head for tokens too"),
    ("adapters", LLAMA, "task=questions", "lora_targets = .*trains a copy, and stops"),
    ("adapters", "distilbert/distilbert-base-uncased", "task=sequence", "adapts the head"),
    ("lora", BERT, "task=tokens lora_targets=transform.dense", "lora_targets = .*end names of"),
    ("operations", MPNET, "sequence_length=", "no checkpoints of layers: must be none"),
    ("none", MPNET, "checkpointing=selective", "attention alone again: must be none"),
    ("none", "facebook/esm2_t6_8M_UR50D", "gpus=2", "contact head gets no.*fsdp or zero2"),
    ("none", "facebook/m2m100_418M", "gpus=2", "data_parallel = .*at random.*be fsdp or zero2"),
    ("zero1", "facebook/m2m100_418M", "", "data_parallel = .*at random"),
    ("none", ALBERT, "sharing_groups=2", "class shares its layers itself: must be 1"),
    ("every", GPT2, "reversible=true", "checkpoint_every = '2'.*reversible.*must be 1"),
    ("every", "dalle-12b", "reversible=false sequence_length=", "'2'.*transformers.*must be 1"),
    ("offload", GPT2, "checkpointing=none", "activation_offload = .*full checkpointing only"),
    ("offload", GPT2, "checkpointing=selective", "full checkpointing only.*must be none"),
    ("offload", GPT2, "reversible=true", "activation_offload = .*reversible layers"),
    ("offload", GPT2, "attention=eager", "of gpt2 would move eager attention's mask"),
    ("scaler", GPT2, "update_in_backward=true", "gradient_scaler = .*has freed"),
    ("loss", GPT2, "sequence_length=2", "chunked_loss = .*fewer than 3 tokens.*must be none"),
    ("loss", "dalle-12b", "sequence_length=", "replaces a language model's loss: must be"),
    ("loss", VIT, "sequence_length=", "language model's loss"),
    ("loss", "google/gemma-2-2b", "", "has no cap on logits, which google/gemma-2-2b has"),
    ("backward", GPT2, "accumulation=2", "gradient accumulation needs the gradients"),
    ("backward", GPT2, "offload=optimizer", "offload updates all weights at the end"),
    ("backward", GPT2, "precision=mixed", "fp32 master weights are updated at the end"),
    ("lora", GPT2, "reversible=true", "lora = '4'.*must be 0"),
    ("lora", DALLE, "sequence_length=", "lora"),
    ("lora", MIXTRAL, "lora_targets=q_proj,w1", "have w1 and w3 in one weight"),
    ("adapters", MIXTRAL, "lora_dropout=0.1", "lora_dropout = '0.1': .*q_proj"),
    ("adapters", "dalle-12b", "sequence_length=", "a model that transformers has a class"),
    ("adapters", VIT, "lora_modules=lm_head sequence_length=", "for image has no lm_head: leave"),
    ("adapters", QWEN, "lora_modules=norm", "must be of: embed_tokens, lm_head"),
    ("muon", QWEN, "optimizer_bits=8", "optimizer_bits = '8'.*own format: must be 32"),
    ("muon", QWEN, "optimizer_bits=32 precision=half", "must be 16"),
    # measured: "Expected to have finished reduction in the prior iteration"
    ("none", BERT, "gpus=2 tied_embeddings=false", "bias that gets no gradient"),
    ("none", "facebook/bart-base", "gpus=2 tied_embeddings=false", "a table of words that"),
    ("gradcache", BERT, "task=lm", "divides the pairs of task embedding"),
    ("gradcache", BERT, "mini_batch_size=16", "less than the 16 pairs"),
    ("gradcache", BERT, SHARED["shards"], "counted on one GPU"),
    ("gradcache", BERT, "gradient_scaler=true", "beside a gradient scaler"),
    *(("none", BERT, f"freeze={parts}", "freeze") for parts in ("nose", "1-", "0-9999", "12")),
    ("none", BERT, "task=reward batch_size=3", "batch_size = '3': two sequences"),
    ("none", BERT, "task=embedding batch_size=3", "batch_size = '3': two sequences"),
    ("none", BERT, "task=image", "is counted for: lm, sequence, tokens, questions, reward"),
    ("none", GPT2, "optimizer_bits=16", "= '16'.*what it updates.*must be 32 or 8"),
    ("none", GPT2, "optimizer=lamb optimizer_bits=16", "= '16'.*must be 32 or 8"),
    ("none", GPT2, "optimizer=adafactor optimizer_bits=8", "= '8'.*must be 32"),
    ("none", GPT2, "optimizer=adafactor update=fused", "'fused'.*foreach and loop"),
    ("none", GPT2, "target_length=8", "target_length = '8'.*only T5"),
    ("none", DALLE, "sequence_length= dropout=0.1", "dropout = '0.1'.*dalle-together"),
    ("none", DALLE, "sequence_length= tied_embeddings=no", "tied_embeddings = .*dalle-together"),
    ("none", DALLE, "sequence_length=1024", "256 text tokens and 1,024 image codes"),
    ("none", GPT2, "gpus=0", "gpus = '0'.*whole number from 1"),
]


@pytest.mark.parametrize("options", ["attention=flash", "gpus=2 context_parallel=2"])
def test_cards_before_ampere_have_no_flash_attention(options: str) -> None:
    plan = Plan.parse(options_of(f"sequence_length=64 {options}"))
    resolve(find_model(LLAMA), plan.on(CARDS["rtx-3090"]))
    with pytest.raises(InputError, match=r"needs compute capability 8\.0"):
        resolve(find_model(LLAMA), plan.on(CARDS["t4"]))


@pytest.mark.parametrize(("technique", "model", "options", "refusal"), CASES)
def test_what_was_not_measured_is_refused(
    technique: str, model: str, options: str, refusal: str
) -> None:
    given = options_of(f"sequence_length=64 {SHARED[technique]} {options}")
    with pytest.raises(InputError, match=refusal):
        resolve(find_model(model), Plan.parse(given))
