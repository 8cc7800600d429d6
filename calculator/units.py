"""Sizes and counts as people read them. Sizes are integers of bytes until they come here."""

KiB = 2**10
MiB = 2**20
GiB = 2**30


def format_bytes(size: int) -> str:
    """Bytes with a binary unit and three significant digits.

    >>> format_bytes(8_519_680)  # cuBLAS' workspace before Hopper
    '8.12 MiB'
    >>> format_bytes(16 * GiB)
    '16.0 GiB'
    >>> format_bytes(-512)
    '-512 B'
    """
    sign, amount = ("-", -size) if size < 0 else ("", size)
    for unit, name in ((2**50, "PiB"), (2**40, "TiB"), (GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")):
        # 0.9995: a size that would print as 1000 or more of the smaller unit takes this one
        if amount >= unit * 0.9765:
            return f"{sign}{_three_digits(amount / unit)} {name}"
    return f"{sign}{amount} B"


def _three_digits(number: float) -> str:
    if number >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"


def format_count(count: int) -> str:
    """A count with thousands separators.

    >>> format_count(774030080)  # GPT-2 Large
    '774,030,080'
    """
    return f"{count:,}"
