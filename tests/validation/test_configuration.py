import json
from pathlib import Path

import pytest

from calculator.catalog.checkpoints import CHECKPOINTS
from calculator.errors import InputError
from calculator.plan import Plan
from validation.configuration import Configuration, parse
from validation.subject import find_subject


@pytest.mark.parametrize(
    "words",
    [
        "gpt2-s",
        "t5-small --batch-size 2 --sequence-length 96 --target-length 80 --layers 4",
        "gpt2-m --precision half --attention flash --dropout 0.0 --reversible",
        "bert-base --untied-embeddings --padding --format fp16",
        "dalle-together --no-reversible --sharing-groups 63",
        "cerebras/Cerebras-GPT-111M --sequence-length 64 --layers 3",
        "validation/configs/opt.json --sequence-length 64",
    ],
)
def test_the_command_line_of_a_configuration_gives_it_back(words: str) -> None:
    configuration = parse(words.split())
    assert parse(configuration.command.split()) == configuration
    assert Configuration.from_dict(configuration.as_dict()) == configuration


@pytest.mark.parametrize("name", ["Qwen/Qwen3-0.6B", "qwen3-0.6b", "unsloth/Qwen3-0.6B"])
def test_a_checkpoint_is_measured_with_its_own_values_however_its_name_is_typed(name: str) -> None:
    assert find_subject(name, None).values == CHECKPOINTS["Qwen/Qwen3-0.6B"].values


def test_layers_of_a_config_are_replaced_under_its_own_names_and_lists_are_cut(
    tmp_path: Path,
) -> None:
    kinds = ["full", "window"] * 4 + ["full"]
    values = {"model_type": "made-up", "n_layer": 9, "layer_types": kinds}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    subject = find_subject(str(path), 3)
    assert subject.values["n_layer"] == 3
    assert subject.values["layer_types"] == ["full", "window", "full"]
    with pytest.raises(InputError, match="model_type = 'made-up'"):
        _ = subject.architecture
    with pytest.raises(InputError, match="sequence_length"):  # as it is not counted yet
        _ = Configuration(str(path), Plan()).resolved
