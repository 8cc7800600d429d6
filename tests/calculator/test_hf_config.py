import json
import pickle
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.config_file import read_config
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.parameters import count_parameters
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.answers import refused
from tests.calculator.models.test_any_config import check_message
from tests.calculator.plans import examples
from tests.calculator.real import elements, libraries, oracle, real_model

OLD = ("bert", "t5", "gpt2", "gptj")
# small ones, with every size a prime or otherwise unlike the others
CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("bert", {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6,
              "intermediate_size": 211, "vocab_size": 1009, "max_position_embeddings": 67,
              "type_vocab_size": 3}),
    ("bert", {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
              "intermediate_size": 128, "vocab_size": 503, "tie_word_embeddings": False}),
    ("t5", {"d_model": 96, "num_layers": 3, "num_decoder_layers": 3, "num_heads": 5, "d_kv": 17,
            "d_ff": 211, "vocab_size": 1009, "relative_attention_num_buckets": 16}),
    ("t5", {"d_model": 64, "num_layers": 2, "num_decoder_layers": 5, "num_heads": 4, "d_kv": 16}),
    ("t5", {"d_model": 64, "num_layers": 4, "num_decoder_layers": 1, "num_heads": 4, "d_kv": 16}),
    ("gpt2", {"n_embd": 96, "n_layer": 3, "n_head": 6, "n_positions": 67, "vocab_size": 1009,
              "n_inner": 211}),
    ("gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "tie_word_embeddings": False}),
    ("gptj", {"n_embd": 96, "n_layer": 3, "n_head": 6, "n_positions": 67, "vocab_size": 1009,
              "n_inner": 211, "rotary_dim": 8}),
    ("gptj", {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 16,
              "tie_word_embeddings": True}),
]  # fmt: skip


@oracle
@pytest.mark.parametrize(("kind", "config"), CONFIGS, ids=str)
def test_parameters_are_those_of_the_real_class(kind: str, config: dict[str, Any]) -> None:
    architecture = from_config({"model_type": kind, **config}, "here")
    counted = count_parameters(architecture, resolve(architecture, Plan()))
    assert counted == elements(real_model(kind, **config))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "config.json", tmp_path):
        with pytest.raises(InputError, match=r"model = .*there is no such file"):
            read_config(path)


@pytest.mark.parametrize("kind", ["mamba", "", None, 3, "dalle", ["gpt2"], {"a": 1}])
def test_a_model_without_code_is_refused(kind: object) -> None:
    with refused(f"model_type = {str(kind)!r}", "bert, t5, gpt2, gptj"):
        from_config({"model_type": kind}, "here")


SIZES = [
    *(("bert", name) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")),
    *(("bert", name) for name in ("intermediate_size", "vocab_size", "max_position_embeddings")),
    *(("t5", name) for name in ("d_model", "num_layers", "num_decoder_layers", "num_heads")),
    *(("t5", name) for name in ("d_kv", "d_ff", "vocab_size", "n_positions")),
    *(("gpt2", name) for name in ("n_embd", "n_layer", "n_head", "n_positions", "n_inner")),
    *(("gptj", name) for name in ("n_embd", "n_layer", "n_head", "rotary_dim", "vocab_size")),
]


@pytest.mark.parametrize("value", [0, -1, 1.5, "12", True, [1], 1_000_000_001])
def test_a_size_that_is_none_is_refused_by_name(value: object) -> None:
    for kind, field in SIZES:
        with refused(f"{field} = {str(value)!r}: must be a whole number from 1 to"):
            from_config({"model_type": kind, field: value}, "here")


@pytest.mark.parametrize(
    ("kind", "dropouts"),
    [
        ("bert", ["hidden_dropout_prob", "attention_probs_dropout_prob"]),
        ("gpt2", ["resid_pdrop", "attn_pdrop", "embd_pdrop"]),
        ("gptj", ["resid_pdrop", "attn_pdrop", "embd_pdrop"]),
    ],
)
def test_dropouts_that_cannot_be_counted_as_one_are_refused_by_name(
    kind: str, dropouts: list[str]
) -> None:
    config: dict[str, Any] = {"model_type": kind} | dict.fromkeys(dropouts, 0.0)
    assert from_config(config, "here").dropout == 0.0
    some = {"model_type": kind} | dict(zip(dropouts, (0.1, 0.2, 0.3), strict=False))
    assert from_config(some, "here").dropout == 0.1
    for name in dropouts[1:]:
        with refused(name):
            from_config({**config, name: 0.1}, "here")


@oracle
@pytest.mark.parametrize("kind", OLD)
def test_every_key_of_the_real_class_may_be_null_and_its_other_name_means_the_same(
    kind: str,
) -> None:
    _, transformers = libraries()
    real = transformers.AutoConfig.for_model(kind)
    written, plain = real.to_dict(), from_config({"model_type": kind}, "here")
    assert from_config(written, "here") == plain
    for key in written.keys() - {"model_type", "rotary_dim"}:
        assert from_config({"model_type": kind, key: None}, "here") == plain
    for other, key in type(real).attribute_map.items():
        size = 32 if "head" in other else 1536
        one = from_config({"model_type": kind, key: size}, "here")
        assert from_config({"model_type": kind, other: size}, "here") == one
        with pytest.raises(InputError, match="must be the same as"):
            from_config({"model_type": kind, key: size, other: size + 1}, "here")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
@examples(150)
def test_any_file_is_read_or_refused_in_one_line(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_bytes(content)
        try:
            read_config(path)
        except InputError as error:
            check_message(error)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b'{"model_type": "gpt2"', b"[1]", b'"gpt2"', b"3", b"null", b"\xff\xfe\x00"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        pickle.dumps({"model_type": "gpt2"}),
        b'{"model_type": "gpt2", "n_layer": ' + b"9" * 5000 + b"}",
        b'{"model_type": "gpt2", "x": "' + b"a" * 10_000_000 + b'"}',
    ],
    ids=lambda content: repr(content[:40]),
)
def test_what_is_no_config_is_refused_in_one_line_and_a_second(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    began = time.process_time()
    with pytest.raises(InputError, match=r"model = .*must be a config\.json") as caught:
        read_config(path)
    check_message(caught.value)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("kind", "layers", "positions"),
    [
        ("bert", "num_hidden_layers", "max_position_embeddings"),
        ("t5", "num_layers", "n_positions"),
        ("gpt2", "n_layer", "n_positions"),
        ("gptj", "n_layer", "n_positions"),
    ],
)
def test_the_largest_model_that_is_read_can_be_estimated(
    kind: str, layers: str, positions: str
) -> None:
    largest: dict[str, Any] = {"model_type": kind, layers: 1_000_000, positions: 16_777_216}
    report = estimate(from_config(largest, "here"), Plan(sequence_length=16_777_216))
    assert report.plan.sharing_groups == 1_000_000
    assert report.plan.sequence_length == 16_777_216
    for key in (layers, positions):
        with refused(key):
            from_config({**largest, key: largest[key] + 1}, "here")
