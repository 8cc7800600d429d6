from calculator.__main__ import build_parser
from calculator.groups import ELSEWHERE, GROUPS, grouped, names_elsewhere
from calculator.plan import Plan


def test_every_option_is_in_one_group() -> None:
    found = [option.field for _, options in grouped(Plan.options()) for option in options]
    assert sorted(found) == sorted(Plan.options())


def test_help_shows_the_groups_and_the_names_of_other_libraries() -> None:
    parser = build_parser()._subparsers
    (commands,) = parser._group_actions
    text = commands.choices["estimate"].format_help()  # type: ignore[index]
    for group in GROUPS:
        assert f"\n{group.title}:\n" in text
    words = " ".join(text.split())
    assert "DeepSpeed: train_micro_batch_size_per_gpu" in words


def test_only_options_have_names_elsewhere() -> None:
    assert set(ELSEWHERE) <= set(Plan.options())
    assert names_elsewhere("sharing_groups") == ""
