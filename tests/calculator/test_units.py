import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.units import GiB, KiB, MiB, format_bytes

UNITS = {"B": 1, "KiB": KiB, "MiB": MiB, "GiB": GiB, "TiB": 2**40, "PiB": 2**50}


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *((0, "0 B"), (1, "1 B"), (512, "512 B"), (1024, "1.00 KiB")),
        (15_360 * MiB, "15.0 GiB"),  # the memory of a Tesla T4
        (GiB - 1, "1.00 GiB"),  # not 1024 MiB
        (2**40, "1.00 TiB"),
        (2**60, "1,024 PiB"),
    ],
)
def test_a_size_has_the_unit_in_which_it_is_short(size: int, text: str) -> None:
    assert format_bytes(size) == text


def shown(size: int) -> float:
    number, unit = format_bytes(size).split()
    assert len(number.replace(".", "")) <= 3
    return float(number.replace(",", "")) * UNITS[unit]


@given(st.integers(1, 2**59), st.integers(1, 2**59))
def test_what_is_shown_is_the_size_to_three_digits_and_a_larger_one_never_reads_smaller(
    one: int, other: int
) -> None:
    low, high = sorted((one, other))
    assert shown(low) == pytest.approx(low, rel=0.0051)
    assert shown(low) <= shown(high)


@given(st.integers(1, 2**59))
def test_a_negative_size_is_shown_as_its_opposite_with_a_sign(size: int) -> None:
    assert format_bytes(-size) == "-" + format_bytes(size)
