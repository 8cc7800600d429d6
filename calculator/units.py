"""Sizes and counts as text. Sizes are integers of bytes until they come here."""

KiB = 2**10
MiB = 2**20
GiB = 2**30

# Of a unit: from here on, a size would print as 1000 of the smaller one.
_FULL = 999.5 / 1024


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
        if amount >= unit * _FULL:
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


def format_seconds(seconds: float) -> str:
    """A duration with about two significant digits.

    >>> [format_seconds(s) for s in (0.19, 4.2, 53.6, 335.0, 10717.0, 864_000.0, 4e8)]
    ['0.19 s', '4.2 s', '54 s', '5.6 min', '3.0 h', '10 days', '13 years']
    """
    if seconds < 90:
        return f"{seconds:.2g} s"
    if seconds < 5400:
        return f"{seconds / 60:.2g} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.1f} h"
    days = seconds / 86_400
    if days >= 1000:
        years = days / 365.25
        return f"{years:.1f} years" if years < 9.95 else f"{years:,.0f} years"
    return f"{days:.1f} days" if days < 9.95 else f"{days:,.0f} days"


def format_traffic(size: float) -> str:
    """Bytes on a connection, with a decimal unit as connections have them.

    >>> [format_traffic(size) for size in (126_381_256, 1.988e9, 999.9e6)]
    ['126 MB', '1.99 GB', '1.00 GB']
    """
    for power, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= power * 0.9995:
            return f"{_three_digits(size / power)} {unit}"
    return f"{size:.0f} B"


def format_energy(megawatt_hours: float) -> str:
    """Energy in kWh or MWh.

    >>> format_energy(0.01712), format_energy(88.57), format_energy(1234)
    ('17.1 kWh', '88.6 MWh', '1,234 MWh')
    """
    if megawatt_hours < 1:
        return f"{1000 * megawatt_hours:,.3g} kWh"
    return f"{megawatt_hours:,.1f} MWh" if megawatt_hours < 1000 else f"{megawatt_hours:,.0f} MWh"


def format_mass(tonnes: float) -> str:
    """A mass in kg or t.

    >>> format_mass(0.006591), format_mass(34.1)
    ('6.59 kg', '34.1 t')
    """
    return f"{1000 * tonnes:,.3g} kg" if tonnes < 1 else f"{tonnes:,.1f} t"
