"""NVIDIA's cards: data only.

Memory is what nvidia-smi prints as total; an A16 is four GPUs, and one of them is meant. Rates are
its documents', without sparsity and with sums in 32 bits: the products of GeForce's tensor cores
with such sums run at half the rate of the workstation cards' (appendix A of NVIDIA's white paper on
each architecture). Rates of laptops are those of the highest clock that NVIDIA names.
"""

from typing import Final

from calculator.cards.card import Family

_DOCUMENTS: Final = "https://images.nvidia.com/aem-dam/Solutions"
_DATA_CENTER: Final = "https://www.nvidia.com/en-us/data-center"
_TURING: Final = (
    "https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/"
    "turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf"
)
_AMPERE: Final = (
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf"
)
_ADA: Final = f"{_DOCUMENTS}/geforce/ada/nvidia-ada-gpu-architecture.pdf"
_BLACKWELL: Final = f"{_DOCUMENTS}/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf"
_FP16: Final = (("fp16", 1.0),)

# fmt: off
FAMILIES: Final = (
    Family(
        "GeForce RTX 50", "Blackwell", (12, 0), _BLACKWELL,
        (
            ("rtx-5050", "GeForce RTX 5050 8 GB", 8_151, 320, 13.2, 130),
            ("rtx-5060", "GeForce RTX 5060 8 GB", 8_151, 448, 19.2, 145),
            ("rtx-5060-ti", "GeForce RTX 5060 Ti 8 GB", 8_151, 448, 23.7, 180),
            ("rtx-5060-ti-16", "GeForce RTX 5060 Ti 16 GB", 16_311, 448, 23.7, 180),
            ("rtx-5070", "GeForce RTX 5070 12 GB", 12_227, 672, 30.9, 250),
            ("rtx-5070-ti", "GeForce RTX 5070 Ti 16 GB", 16_303, 896, 43.9, 300),
            ("rtx-5080", "GeForce RTX 5080 16 GB", 16_303, 960, 56.3, 360),
            ("rtx-5090", "GeForce RTX 5090 32 GB", 32_607, 1_792, 104.75, 575),
            ("rtx-5050-laptop", "GeForce RTX 5050 Laptop 8 GB", 8_151, 384, 13.6, 100),
            ("rtx-5060-laptop", "GeForce RTX 5060 Laptop 8 GB", 8_151, 384, 16.6, 100),
            ("rtx-5070-laptop", "GeForce RTX 5070 Laptop 8 GB", 8_151, 384, 21.6, 100),
            ("rtx-5070-ti-laptop", "GeForce RTX 5070 Ti Laptop 12 GB", 12_227, 576, 26.1, 115),
            ("rtx-5080-laptop", "GeForce RTX 5080 Laptop 16 GB", 16_303, 896, 35.1, 150),
            ("rtx-5090-laptop", "GeForce RTX 5090 Laptop 24 GB", 24_463, 896, 45.3, 150),
        ),
        halves=2, spellings=(("rtx-5090", ("RTX 5090 D",)),),
    ),
    Family(
        "GeForce RTX 40", "Ada", (8, 9), _ADA,
        (
            ("rtx-4060", "GeForce RTX 4060 8 GB", 8_188, 272, 15.1, 115),
            ("rtx-4060-ti", "GeForce RTX 4060 Ti 8 GB", 8_188, 288, 22.05, 160),
            ("rtx-4060-ti-16", "GeForce RTX 4060 Ti 16 GB", 16_380, 288, 22.05, 165),
            ("rtx-4070", "GeForce RTX 4070 12 GB", 12_282, 504, 29.15, 200),
            ("rtx-4070-super", "GeForce RTX 4070 Super 12 GB", 12_282, 504, 35.5, 220),
            ("rtx-4070-ti", "GeForce RTX 4070 Ti 12 GB", 12_282, 504, 40.1, 285),
            ("rtx-4070-ti-super", "GeForce RTX 4070 Ti Super 16 GB", 16_376, 672, 44.1, 285),
            ("rtx-4080", "GeForce RTX 4080 16 GB", 16_376, 717, 48.75, 320),
            ("rtx-4080-super", "GeForce RTX 4080 Super 16 GB", 16_376, 736, 52.2, 320),
            ("rtx-4090", "GeForce RTX 4090 24 GB", 24_564, 1_008, 82.6, 450),
            ("rtx-4090-d", "GeForce RTX 4090 D 24 GB", 24_564, 1_008, 73.5, 425),
            ("rtx-4050-laptop", "GeForce RTX 4050 Laptop 6 GB", 6_141, 192, 12.1, 115),
            ("rtx-4060-laptop", "GeForce RTX 4060 Laptop 8 GB", 8_188, 256, 14.6, 115),
            ("rtx-4070-laptop", "GeForce RTX 4070 Laptop 8 GB", 8_188, 256, 20.0, 115),
            ("rtx-4080-laptop", "GeForce RTX 4080 Laptop 12 GB", 12_282, 432, 33.9, 150),
            ("rtx-4090-laptop", "GeForce RTX 4090 Laptop 16 GB", 16_376, 576, 39.7, 150),
        ),
        halves=2,
    ),
    Family(
        "GeForce RTX 30", "Ampere", (8, 6), _AMPERE,
        (
            ("rtx-3050", "GeForce RTX 3050 8 GB", 8_192, 224, 9.1, 130),
            ("rtx-3050-6", "GeForce RTX 3050 6 GB", 6_144, 168, 6.8, 70),
            ("rtx-3060", "GeForce RTX 3060 12 GB", 12_288, 360, 12.75, 170),
            ("rtx-3060-ti", "GeForce RTX 3060 Ti 8 GB", 8_192, 448, 16.2, 200),
            ("rtx-3070", "GeForce RTX 3070 8 GB", 8_192, 448, 20.3, 220),
            ("rtx-3070-ti", "GeForce RTX 3070 Ti 8 GB", 8_192, 608, 21.7, 290),
            ("rtx-3080", "GeForce RTX 3080 10 GB", 10_240, 760, 29.8, 320),
            ("rtx-3080-12", "GeForce RTX 3080 12 GB", 12_288, 912, 30.6, 350),
            ("rtx-3080-ti", "GeForce RTX 3080 Ti 12 GB", 12_288, 912, 34.1, 350),
            ("rtx-3090", "GeForce RTX 3090 24 GB", 24_576, 936, 35.6, 350),
            ("rtx-3090-ti", "GeForce RTX 3090 Ti 24 GB", 24_564, 1_008, 40.0, 450),
            ("rtx-3050-laptop", "GeForce RTX 3050 Laptop 4 GB", 4_096, 192, 7.1, 80),
            ("rtx-3050-ti-laptop", "GeForce RTX 3050 Ti Laptop 4 GB", 4_096, 192, 8.7, 80),
            ("rtx-3060-laptop", "GeForce RTX 3060 Laptop 6 GB", 6_144, 336, 13.1, 115),
            ("rtx-3070-laptop", "GeForce RTX 3070 Laptop 8 GB", 8_192, 448, 16.6, 125),
            ("rtx-3070-ti-laptop", "GeForce RTX 3070 Ti Laptop 8 GB", 8_192, 448, 17.5, 125),
            ("rtx-3080-laptop", "GeForce RTX 3080 Laptop 8 GB", 8_192, 448, 21.0, 150),
            ("rtx-3080-laptop-16", "GeForce RTX 3080 Laptop 16 GB", 16_384, 448, 21.0, 150),
            ("rtx-3080-ti-laptop", "GeForce RTX 3080 Ti Laptop 16 GB", 16_384, 512, 23.6, 150),
        ),
        halves=2,
    ),
    Family(
        "GeForce RTX 20", "Turing", (7, 5), _TURING,
        (
            ("rtx-2060", "GeForce RTX 2060 6 GB", 6_144, 336, 6.45, 160),
            ("rtx-2060-12", "GeForce RTX 2060 12 GB", 12_288, 336, 7.2, 185),
            ("rtx-2060-super", "GeForce RTX 2060 Super 8 GB", 8_192, 448, 7.2, 175),
            ("rtx-2070", "GeForce RTX 2070 8 GB", 8_192, 448, 7.5, 175),
            ("rtx-2070-super", "GeForce RTX 2070 Super 8 GB", 8_192, 448, 9.1, 215),
            ("rtx-2080", "GeForce RTX 2080 8 GB", 8_192, 448, 10.1, 215),
            ("rtx-2080-super", "GeForce RTX 2080 Super 8 GB", 8_192, 496, 11.2, 250),
            ("rtx-2080-ti", "GeForce RTX 2080 Ti 11 GB", 11_264, 616, 13.45, 250),
            ("rtx-2060-laptop", "GeForce RTX 2060 Laptop 6 GB", 6_144, 336, 6.0, 115),
            ("rtx-2070-laptop", "GeForce RTX 2070 Laptop 8 GB", 8_192, 448, 6.6, 115),
            ("rtx-2080-laptop", "GeForce RTX 2080 Laptop 8 GB", 8_192, 448, 9.4, 150),
        ),
        halves=4, formats=_FP16,
        spellings=(
            ("rtx-2060-laptop", ("RTX 2060 with Max-Q Design",)),
            ("rtx-2070-laptop", ("RTX 2070 with Max-Q Design",)),
            ("rtx-2080-laptop", ("RTX 2080 with Max-Q Design",)),
        ),
    ),
    Family(
        "GeForce GTX", "Turing", (7, 5), _TURING,
        (
            ("gtx-1650", "GeForce GTX 1650 4 GB", 4_096, 128, 3.0, 75),
            ("gtx-1660-super", "GeForce GTX 1660 Super 6 GB", 6_144, 336, 5.0, 125),
            ("gtx-1660-ti", "GeForce GTX 1660 Ti 6 GB", 6_144, 288, 5.4, 120),
        ),
        halves=2, formats=_FP16,
    ),
    Family(
        "GeForce GTX", "Pascal", (6, 1), "https://developer.nvidia.com/cuda-legacy-gpus",
        (
            ("gtx-1060", "GeForce GTX 1060 6 GB", 6_144, 192, 4.4, 120),
            ("gtx-1070", "GeForce GTX 1070 8 GB", 8_192, 256, 6.5, 150),
            ("gtx-1080", "GeForce GTX 1080 8 GB", 8_192, 320, 8.9, 180),
            ("gtx-1080-ti", "GeForce GTX 1080 Ti 11 GB", 11_264, 484, 11.3, 250),
        ),
        formats=(),
    ),
    Family(
        "RTX PRO Blackwell", "Blackwell", (12, 0),
        "https://www.nvidia.com/content/dam/en-zz/Solutions/design-visualization/"
        "quadro-product-literature/NVIDIA-RTX-Blackwell-PRO-GPU-Architecture-v1.0.pdf",
        (
            ("rtx-pro-2000", "RTX PRO 2000 Blackwell 16 GB", 16_311, 288, 17.0, 70),
            ("rtx-pro-4000", "RTX PRO 4000 Blackwell 24 GB", 24_467, 672, 36.8, 140),
            ("rtx-pro-4500", "RTX PRO 4500 Blackwell 32 GB", 32_623, 896, 52.7, 200),
            ("rtx-pro-5000", "RTX PRO 5000 Blackwell 48 GB", 48_935, 1_344, 64.5, 300),
            ("rtx-pro-6000", "RTX PRO 6000 Blackwell 96 GB", 97_887, 1_792, 126, 600),
            ("rtx-pro-6000-max-q", "RTX PRO 6000 Blackwell Max-Q 96 GB", 97_887, 1_792, 110, 300),
            ("rtx-pro-6000-server", "RTX PRO 6000 Blackwell Server 96 GB", 97_887, 1_597, 120, 600),
        ),
        halves=4,
    ),
    Family(
        "RTX Ada, for workstations", "Ada", (8, 9), _ADA,
        (
            ("rtx-2000-ada", "RTX 2000 Ada 16 GB", 16_380, 224, 12.0, 70),
            ("rtx-4000-ada", "RTX 4000 Ada 20 GB", 20_475, 360, 26.7, 130),
            ("rtx-4000-sff-ada", "RTX 4000 SFF Ada 20 GB", 20_475, 280, 19.2, 70),
            ("rtx-4500-ada", "RTX 4500 Ada 24 GB", 24_570, 432, 39.6, 210),
            ("rtx-5000-ada", "RTX 5000 Ada 32 GB", 32_760, 576, 65.3, 250),
            ("rtx-5880-ada", "RTX 5880 Ada 48 GB", 49_140, 960, 69.3, 285),
            ("rtx-6000-ada", "RTX 6000 Ada 48 GB", 49_140, 960, 91.1, 300),
        ),
        halves=4,
    ),
    Family(
        "RTX A, for workstations", "Ampere", (8, 6), _AMPERE,
        (
            ("a2000", "RTX A2000 6 GB", 6_138, 288, 8.0, 70),
            ("a2000-12", "RTX A2000 12 GB", 12_282, 288, 8.0, 70),
            ("a4000", "RTX A4000 16 GB", 16_376, 448, 19.2, 140),
            ("a4500", "RTX A4500 20 GB", 20_470, 640, 23.7, 200),
            ("a5000", "RTX A5000 24 GB", 24_564, 768, 27.8, 230),
            ("a5500", "RTX A5500 24 GB", 24_564, 768, 34.1, 230),
            ("a6000", "RTX A6000 48 GB", 49_140, 768, 38.7, 300),
        ),
        halves=4,
    ),
    Family(
        "Titan and Quadro", "Turing", (7, 5), _TURING,
        (
            ("titan-rtx", "Titan RTX 24 GB", 24_576, 672, 16.3, 280),
            ("quadro-rtx-4000", "Quadro RTX 4000 8 GB", 8_192, 416, 7.1, 160),
            ("quadro-rtx-5000", "Quadro RTX 5000 16 GB", 16_384, 448, 11.2, 230),
            ("quadro-rtx-6000", "Quadro RTX 6000 24 GB", 24_576, 672, 16.3, 260),
            ("quadro-rtx-8000", "Quadro RTX 8000 48 GB", 49_152, 672, 16.3, 260),
        ),
        halves=8, formats=_FP16, spellings=(("quadro-rtx-6000", ("RTX 6000",)),),
    ),
    Family(
        "For data centers", "Blackwell", (12, 1),
        "https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/47",
        (("gb10", "GB10 128 GB", 124_610, 273, 31, 140),),
        own_halves=(("gb10", 125),), unified=True, spellings=(("gb10", ("DGX Spark",)),),
    ),
    Family(
        "For data centers", "Blackwell", (10, 3), f"{_DATA_CENTER}/hgx/",
        (
            ("b300", "B300 270 GB", 275_040, 8_000, 75, 1_100),
            ("gb300", "GB300 279 GB", 284_208, 8_000, 80, 1_400),
        ),
        own_halves=(("b300", 2_250), ("gb300", 2_500)),
    ),
    Family(
        "For data centers", "Blackwell", (10, 0), f"{_DATA_CENTER}/hgx/",
        (
            ("b200", "B200 180 GB", 183_359, 7_700, 75, 1_000),
            ("gb200", "GB200 186 GB", 189_471, 8_000, 80, 1_200),
        ),
        own_halves=(("b200", 2_250), ("gb200", 2_500)),
    ),
    Family(
        "For data centers", "Hopper", (9, 0), f"{_DATA_CENTER}/h100/",
        (
            ("h100", "H100 80 GB", 81_559, 3_352, 67, 700),
            ("h100-pcie", "H100 PCIe 80 GB", 81_559, 2_039, 51, 350),
            ("h100-nvl", "H100 NVL 94 GB", 95_830, 3_938, 60, 400),
            ("h20", "H20 96 GB", 97_871, 4_023, 44, 400),
            ("h200", "H200 141 GB", 143_771, 4_800, 67, 700),
            ("h200-nvl", "H200 NVL 141 GB", 143_771, 4_800, 60, 600),
            ("gh200", "GH200 96 GB", 97_871, 4_000, 67, 1_000),
        ),
        own_halves=(
            ("h100", 989.5), ("h100-pcie", 756.5), ("h100-nvl", 835.5), ("h20", 148),
            ("h200", 989.5), ("h200-nvl", 835.5), ("gh200", 989.5),
        ),
        spellings=(("h100", ("H800", "H100 SXM")), ("gh200", ("GH200 480 GB",))),
    ),
    Family(
        "For data centers", "Ada", (8, 9), f"{_DATA_CENTER}/l40s/",
        (
            ("l4", "L4 24 GB", 23_034, 300, 30.3, 72),
            ("l40", "L40 48 GB", 46_068, 864, 90.5, 300),
            ("l40s", "L40S 48 GB", 46_068, 864, 91.6, 350),
        ),
        own_halves=(("l4", 121), ("l40", 181), ("l40s", 362)), notes=(("l4", "in paid Colab"),),
    ),
    Family(
        "For data centers", "Ampere", (8, 6), f"{_DATA_CENTER}/products/a10-gpu/",
        (
            ("a2", "A2 16 GB", 15_356, 200, 4.5, 60),
            ("a10", "A10 24 GB", 23_028, 600, 31.25, 150),
            ("a10g", "A10G 24 GB", 23_028, 600, 35, 300),
            ("a16", "A16 16 GB", 15_356, 200, 4.5, 62),
            ("a40", "A40 48 GB", 46_068, 696, 37.4, 300),
        ),
        halves=4, own_halves=(("a10g", 70),),
    ),
    Family(
        "For data centers", "Ampere", (8, 0), f"{_DATA_CENTER}/a100/",
        (
            ("a30", "A30 24 GB", 24_576, 933, 10.3, 165),
            ("a100-40", "A100 40 GB", 40_960, 1_555, 19.5, 400),
            ("a100-80", "A100 80 GB", 81_920, 2_039, 19.5, 400),
        ),
        halves=16, own_halves=(("a30", 165),), notes=(("a100-40", "in paid Colab"),),
        spellings=(("a100-40", ("A100-PG509-200",)), ("a100-80", ("A800 80 GB",))),
    ),
    Family(
        "For data centers", "Turing", (7, 5), f"{_DATA_CENTER}/tesla-t4/",
        (("t4", "Tesla T4 16 GB", 15_360, 320, 8.1, 70),),
        formats=_FP16, own_halves=(("t4", 65),), notes=(("t4", "free in Colab and Kaggle"),),
        spellings=(("t4", ("T4G",)),),
    ),
    Family(
        "For data centers", "Volta", (7, 0), f"{_DATA_CENTER}/v100/",
        (
            ("v100-16", "Tesla V100 16 GB", 16_384, 900, 15.7, 300),
            ("v100-32", "Tesla V100 32 GB", 32_768, 900, 15.7, 300),
            ("titan-v", "Titan V 12 GB", 12_288, 653, 14.9, 250),
        ),
        halves=8, formats=_FP16, own_halves=(("v100-16", 125), ("v100-32", 125), ("titan-v", 110)),
    ),
    Family(
        "For data centers", "Pascal", (6, 1), f"{_DATA_CENTER}/tesla-p40/",
        (("p40", "Tesla P40 24 GB", 24_576, 346, 11.8, 250),),
        formats=(),
    ),
    Family(
        "For data centers", "Pascal", (6, 0), f"{_DATA_CENTER}/tesla-p100/",
        (("p100", "Tesla P100 16 GB", 16_384, 732, 9.35, 250),),
        halves=2, formats=_FP16, notes=(("p100", "free in Kaggle"),),
    ),
)
