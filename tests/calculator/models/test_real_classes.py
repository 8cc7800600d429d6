"""Every type's defaults, and a checkpoint of it, held against transformers' own class."""

import pytest

from calculator.catalog.checkpoints import CHECKPOINTS
from calculator.hf_config import can_read, from_config
from calculator.models.decoder import Decoder
from calculator.models.registry import TYPES
from calculator.parameters import buffer_bytes, count_parameters
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.models.test_any_config import NEEDED
from tests.calculator.real import elements, oracle, real_model

# heads of which no even number of channels is turned are no default; what a class has no default
# for, or one for another number of layers
GIVEN = {
    **NEEDED,
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "hunyuan_v1_dense": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
}
TWO_STACKS = ("t5", "mt5")  # whose number of layers is that of one


@oracle
@pytest.mark.parametrize("kind", [kind for kind in TYPES if can_read(kind)])
def test_a_config_of_defaults_has_the_parameters_and_buffers_of_the_real_class(kind: str) -> None:
    few = {} if kind in TWO_STACKS else {"num_hidden_layers": 2}
    config = {**few, **GIVEN.get(kind, {})}
    real = real_model(kind, **config)
    counted = from_config({"model_type": kind, **config}, kind)
    plan = resolve(counted, Plan())
    assert count_parameters(counted, plan) == elements(real)
    blocks = sum(-(-item.nbytes // 512) * 512 for item in real.buffers())
    assert buffer_bytes(counted, plan) == blocks
    assert plan.tied_embeddings == getattr(real.config, "tie_word_embeddings", True)
    if issubclass(TYPES[kind], Decoder):
        assert counted.sequence_length == real.config.max_position_embeddings
        assert plan.sequence_length == min(2048, counted.sequence_length)


@oracle
def test_the_smallest_checkpoint_of_each_type_has_the_parameters_of_the_real_class() -> None:
    # all of a type are counted by the same code: see catalog/test_checkpoints
    every = sorted(CHECKPOINTS.values(), key=lambda checkpoint: -checkpoint.parameters)
    for checkpoint in {each.kind: each for each in every}.values():
        assert elements(real_model(checkpoint.kind, **checkpoint.config)) == checkpoint.parameters
