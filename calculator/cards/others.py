"""AMD's and Apple's cards: data only.

Memory of AMD's is what rocm-smi prints as total VRAM; an MI250 or MI250X is two GPUs, and one of
them is meant. Of Apple's chips it is what Metal recommends at most (`recommendedMaxWorkingSetSize`,
which llama.cpp prints): two thirds of 32 GB and less, three quarters of more. Apple publishes no
rates.
"""

from typing import Final

from calculator.cards.card import AMD, APPLE, Family, Row

_INSTINCT: Final = "https://www.amd.com/en/products/accelerators/instinct.html"
_RADEON: Final = "https://www.amd.com/en/products/specifications/graphics.html"
_HALVES: Final = (("fp16", 1.0), ("bf16", 1.0))

# chip, GB/s, sizes in GB; in Apple's technical specifications of the machines
_APPLE: Final = (
    ("M1", 68, (8, 16)),
    ("M1 Pro", 200, (16, 32)),
    ("M1 Max", 400, (32, 64)),
    ("M1 Ultra", 800, (64, 128)),
    ("M2", 100, (8, 16, 24)),
    ("M2 Pro", 200, (16, 32)),
    ("M2 Max", 400, (32, 64, 96)),
    ("M2 Ultra", 800, (64, 128, 192)),
    ("M3", 100, (8, 16, 24)),
    ("M3 Pro", 150, (18, 36)),
    ("M3 Max", 400, (36, 48, 64, 96, 128)),
    ("M3 Ultra", 819, (96, 256, 512)),
    ("M4", 120, (16, 24, 32)),
    ("M4 Pro", 273, (24, 48, 64)),
    ("M4 Max", 546, (36, 48, 64, 128)),
    ("M5", 153, (16, 24, 32)),
)


def _metal(gigabytes: int) -> int:
    """MiB that macOS lends the GPU."""
    return gigabytes * 1024 * 2 // 3 if gigabytes <= 32 else gigabytes * 1024 * 3 // 4


def _apple_rows() -> tuple[Row, ...]:
    return tuple(
        (f"{chip.lower().replace(' ', '-')}-{size}", f"Apple {chip} {size} GB", _metal(size), *rest)
        for chip, bandwidth, sizes in _APPLE
        for size in sizes
        for rest in ((bandwidth, 0.0, 0),)
    )


# fmt: off
FAMILIES: Final = (
    Family(
        "AMD Instinct", "CDNA 2", None, _INSTINCT,
        (
            ("mi210", "Instinct MI210 64 GB", 65_520, 1_638, 22.6, 300),
            ("mi250", "Instinct MI250 64 GB", 65_520, 1_638, 22.6, 280),
            ("mi250x", "Instinct MI250X 64 GB", 65_520, 1_638, 23.9, 280),
        ),
        halves=8, formats=_HALVES, vendor=AMD,
        spellings=(
            ("mi250", ("AMD INSTINCT MI250 (MCM) OAM AC MBA",)),
            ("mi250x", ("AMD INSTINCT MI250X (MCM) OAM AC MBA",)),
        ),
    ),
    Family(
        "AMD Instinct", "CDNA 3", None, _INSTINCT,
        (
            ("mi300x", "Instinct MI300X 192 GB", 196_592, 5_300, 163.4, 750),
            ("mi325x", "Instinct MI325X 256 GB", 262_128, 6_000, 163.4, 1_000),
        ),
        halves=8, vendor=AMD,
    ),
    Family(
        "AMD Instinct", "CDNA 4", None, _INSTINCT,
        (
            ("mi350x", "Instinct MI350X 288 GB", 294_896, 8_000, 144.2, 1_000),
            ("mi355x", "Instinct MI355X 288 GB", 294_896, 8_000, 157.3, 1_400),
        ),
        halves=16, formats=_HALVES, vendor=AMD,
    ),
    Family(
        "AMD Radeon", "RDNA 3", None, _RADEON,
        (
            ("rx-7600-xt", "Radeon RX 7600 XT 16 GB", 16_368, 288, 22.6, 190),
            ("rx-7700-xt", "Radeon RX 7700 XT 12 GB", 12_272, 432, 35.2, 245),
            ("rx-7800-xt", "Radeon RX 7800 XT 16 GB", 16_368, 624, 37.3, 263),
            ("rx-7900-gre", "Radeon RX 7900 GRE 16 GB", 16_368, 576, 46.0, 260),
            ("rx-7900-xt", "Radeon RX 7900 XT 20 GB", 20_464, 800, 51.6, 300),
            ("rx-7900-xtx", "Radeon RX 7900 XTX 24 GB", 24_560, 960, 61.4, 355),
            ("w7800", "Radeon PRO W7800 32 GB", 32_752, 576, 45.2, 260),
            ("w7900", "Radeon PRO W7900 48 GB", 49_136, 864, 61.3, 295),
        ),
        halves=2, formats=_HALVES, vendor=AMD,
    ),
    Family(
        "AMD Radeon", "RDNA 4", None, _RADEON,
        (
            ("rx-9060-xt-16", "Radeon RX 9060 XT 16 GB", 16_304, 320, 25.6, 160),
            ("rx-9070", "Radeon RX 9070 16 GB", 16_304, 640, 36.1, 220),
            ("rx-9070-xt", "Radeon RX 9070 XT 16 GB", 16_304, 640, 48.7, 304),
        ),
        halves=4, formats=_HALVES, vendor=AMD,
    ),
    Family(
        "AMD Radeon", "RDNA 3.5", None, _RADEON,
        (("strix-halo", "Strix Halo 96 GB", 98_304, 256, 29.7, 120),),
        halves=2, formats=_HALVES, vendor=AMD, unified=True,
        spellings=(
            ("strix-halo", ("Radeon 8060S", "Ryzen AI Max+ 395", "Strix Halo", "gfx1151")),
        ),
    ),
    Family(
        "Apple", "Apple", None, "https://github.com/ggml-org/llama.cpp/discussions/4167",
        _apple_rows(), formats=(), vendor=APPLE, unified=True,
    ),
)
