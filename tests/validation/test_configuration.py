import pytest

from calculator.errors import InputError
from calculator.techniques import Plan
from validation.configuration import Configuration, parse


@pytest.mark.parametrize(
    "words",
    [
        "gpt2-s",
        "t5-small --batch-size 2 --sequence-length 96 --target-length 80 --layers 4",
        "gpt2-m --precision half --attention flash --dropout 0.0 --reversible",
        "bert-base --untied-embeddings --padding --half-type float16",
        "dalle-together --no-reversible --sharing-groups 63",
    ],
)
def test_the_command_line_of_a_configuration_gives_it_back(words: str) -> None:
    configuration = parse(words.split())
    assert parse(configuration.command.split()) == configuration
    assert Configuration.from_dict(configuration.as_dict()) == configuration


def test_layers_of_both_stacks_are_replaced() -> None:
    shape = Configuration("t5-small", Plan(), layers=3).architecture
    assert (shape.layers, shape.decoder_layers) == (3, 3)


def test_a_sequence_longer_than_the_learned_positions_is_refused() -> None:
    with pytest.raises(InputError, match="sequence_length"):
        _ = Configuration("bert-base", Plan(sequence_length=513)).resolved


def test_an_unknown_model_is_refused_with_its_neighbour() -> None:
    with pytest.raises(InputError, match="did you mean 'gpt2-s'"):
        Configuration("gpt2s", Plan())
