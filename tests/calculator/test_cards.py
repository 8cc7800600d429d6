"""Cards: what NVIDIA's and AMD's tools print, held against the data."""

import pytest

from calculator.cards import CARDS, COMMON, find_card, grouped
from calculator.cards.card import AMD, APPLE, NVIDIA
from calculator.cards.services import too_much_ram
from calculator.units import GiB, MiB
from tests.calculator.answers import refused

# names as nvidia-smi, rocm-smi, torch.cuda.get_device_name and people write them
SPELLINGS = {
    "rtx-2060": ["NVIDIA GeForce RTX 2060", "rtx2060"],
    "rtx-2080-laptop": ["NVIDIA GeForce RTX 2080 with Max-Q Design"],
    "rtx-3080-ti-laptop": ["NVIDIA GeForce RTX 3080 Ti Laptop GPU"],
    "rtx-4060-ti": ["NVIDIA GeForce RTX 4060 Ti"],
    "rtx-4060-ti-16": ["RTX 4060 Ti 16GB", "rtx 4060 ti 16 gb"],
    "rtx-4090": ["NVIDIA GeForce RTX 4090", "rtx4090", "RTX_4090", "4090", " RTX 4090 "],
    "rtx-4090-laptop": ["RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 Laptop GPU"],
    "rtx-5070-ti-laptop": ["NVIDIA GeForce RTX 5070 Ti Laptop GPU"],
    "rtx-6000-ada": ["NVIDIA RTX 6000 Ada Generation"],
    "quadro-rtx-6000": ["Quadro RTX 6000"],
    "a6000": ["NVIDIA RTX A6000", "rtx-a6000"],
    "rtx-pro-6000": ["NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx pro 6000"],
    "rtx-pro-6000-max-q": ["NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"],
    "rtx-pro-6000-server": ["NVIDIA RTX PRO 6000 Blackwell Server Edition"],
    "t4": ["Tesla T4", "NVIDIA T4", "T4", "T4 (Colab)"],
    "p100": ["Tesla P100-PCIE-16GB"],
    "v100-16": ["Tesla V100-SXM2-16GB", "V100"],
    "v100-32": ["Tesla V100-SXM2-32GB", "Tesla V100-PCIE-32GB"],
    "a16": ["NVIDIA A16"],
    "a100-40": ["NVIDIA A100-SXM4-40GB", "A100-PCIE-40GB", "A100", "a2-highgpu-1g", "p4d.24xlarge"],
    "a100-80": ["A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A800-SXM4-80GB"],
    "l40s": ["NVIDIA L40S"],
    "h100": ["NVIDIA H100 80GB HBM3", "H100-SXM5-80GB", "NVIDIA H800"],
    "h100-pcie": ["NVIDIA H100 PCIe"],
    "h100-nvl": ["NVIDIA H100 NVL"],
    "h200": ["NVIDIA H200", "H200 SXM"],
    "gh200": ["NVIDIA GH200 480GB"],
    "b200": ["NVIDIA B200"],
    "b300": ["NVIDIA B300 SXM6 AC"],
    "gb10": ["NVIDIA GB10", "DGX Spark"],
    "mi250x": ["AMD INSTINCT MI250X (MCM) OAM AC MBA"],
    "mi300x": ["AMD Instinct MI300X", "AMD Instinct MI300X OAM"],
    "rx-7900-xtx": ["AMD Radeon RX 7900 XTX", "Radeon RX 7900 XTX"],
    "strix-halo": ["AMD Radeon 8060S", "Radeon 8060S Graphics", "Strix Halo"],
    "rtx-4070-ti-super": ["4070 ti super"],
    "a10g": ["g5.xlarge", "ml.g5.2xlarge"],
    "m4-pro-48": ["MacBook Pro M4 Pro 48GB"],
    "m1-8": ["Apple M1"],
    "m1-pro-16": ["Apple M1 Pro"],
    "m4-max-128": ["Apple M4 Max 128GB", "m4 max 128 gb"],
}


def test_a_card_is_found_by_its_own_names_and_by_every_one_that_tools_print() -> None:
    for name, texts in SPELLINGS.items():
        for text in (*texts, *map(str.upper, texts)):
            assert find_card(text) is CARDS[name], text
    for card in CARDS.values():
        names = [card.name, card.title, card.name.replace("-", " "), card.title.replace(" ", "")]
        assert [find_card(name) for name in names] == [card] * 4


def test_every_card_has_what_an_answer_needs() -> None:
    for card in CARDS.values():
        assert 4 * GiB <= card.memory <= 400 * GiB
        assert (card.capability is not None) == (card.vendor == NVIDIA)
        assert card.bandwidth > 60e9
        assert card.source.startswith("https://")
        assert card.vendor == APPLE or (card.peaks.fp32 > 2 and card.watts > 30)
        assert bool(card.caveat) == (card.vendor != NVIDIA)
    assert set(COMMON) < set(CARDS.values())
    assert {card.vendor for card in CARDS.values()} == {NVIDIA, AMD, APPLE}
    assert sorted(c.name for cards in grouped().values() for c in cards) == sorted(CARDS)


@pytest.mark.parametrize(
    ("name", "mebibytes", "capability", "rates"),
    [
        # total memory of nvidia-smi; the data sheets' rates without sparsity, sums in 32 bits
        ("t4", 15_360, (7, 5), (8.1, 0, 65, 0)),
        ("rtx-2080-ti", 11_264, (7, 5), (13.45, 0, 53.8, 0)),
        ("rtx-3090", 24_576, (8, 6), (35.6, 35.6, 71.2, 71.2)),
        ("rtx-4090", 24_564, (8, 9), (82.6, 82.6, 165.2, 165.2)),
        ("rtx-5090", 32_607, (12, 0), (104.75, 104.75, 209.5, 209.5)),
        ("a100-80", 81_920, (8, 0), (19.5, 156, 312, 312)),
        ("h100", 81_559, (9, 0), (67, 494.75, 989.5, 989.5)),
        ("b200", 183_359, (10, 0), (75, 1125, 2250, 2250)),
        ("mi300x", 196_592, None, (163.4, 653.6, 1307.2, 1307.2)),
        ("mi210", 65_520, None, (22.6, 0, 180.8, 180.8)),
        ("gtx-1080-ti", 11_264, (6, 1), (11.3, 0, 0, 0)),
    ],
)
def test_memory_capability_and_rates_are_those_of_the_documents(
    name: str, mebibytes: int, capability: tuple[int, int] | None, rates: tuple[float, ...]
) -> None:
    card = CARDS[name]
    peaks = card.peaks
    assert (card.memory, card.capability) == (mebibytes * MiB, capability)
    assert (peaks.fp32, peaks.tf32, peaks.fp16, peaks.bf16) == pytest.approx(rates)


@pytest.mark.parametrize(
    ("text", "size", "name"),
    [
        ("20GiB", 20 * GiB, "20GiB"),
        ("20 GiB", 20 * GiB, "20GiB"),
        ("24GB", 24 * GiB, "24GiB"),  # makers of cards mean GiB
        ("11.5g", 23 * GiB // 2, "11.5GiB"),
        ("512 MiB", GiB // 2, "0.5GiB"),
        ("24 gb vram", 24 * GiB, "24GiB"),
    ],
)
def test_a_size_is_a_card_of_today(text: str, size: int, name: str) -> None:
    card = find_card(text)
    assert (card.memory, card.name) == (size, name)
    assert card.capability == (8, 9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RTX 5095", "did you mean 'rtx-5090'"),
        ("a100-4", "did you mean 'a100-40'"),
        ("2x3090", "names 2 cards: give one, rtx-3090, and their number as --gpus 2"),
        ("T4 x2", "give one, t4, and their number as --gpus 2"),
        ("8x h100 80gb", "give one, h100, and their number as --gpus 8"),
        ("dual 3090", "their number as --gpus 2"),
        ("google colab", "lends cards: give the one you have, such as l4 or a100-40 or t4"),
        ("kaggle", "such as t4 or p100"),
        ("16", "is a number: give a card's memory with its unit, as in 16GiB"),
        ("A100-SXM4-80GB MIG 3g.40gb", "is part of a card (MIG): give its memory, 40GiB"),
        *((name, "is not counted") for name in ("tpu v5e", "gaudi 3", "arc a770", "cpu")),
        ("k80", "must be a card as"),
        ("my computer", "must be a card as nvidia-smi or rocm-smi names it, or its memory"),
        ("0GB", "must be above 0 and at most 10,000 GiB"),
        ("99999 GiB", "must be above 0 and at most 10,000 GiB"),
        ("x" * 10_000, "must be a card"),
        ("", "must be a card"),
    ],
)
def test_an_unknown_card_gets_the_nearest_names_and_the_way_out(text: str, words: str) -> None:
    with refused("gpu", words) as caught:
        find_card(text)
    assert len(str(caught.value)) < 400


def test_a_service_that_lends_a_card_and_has_less_ram_is_named() -> None:
    # RAM of the services' machines: see the sources in `services`
    assert too_much_ram(CARDS["t4"], 10 * GiB) == ""
    assert too_much_ram(CARDS["t4"], 20 * GiB) == "Free Colab has 12.7 GiB."
    both = "Free Colab has 12.7 GiB and Kaggle has 29.0 GiB."
    assert too_much_ram(CARDS["t4"], 30 * GiB) == both
    assert too_much_ram(CARDS["p100"], 30 * GiB) == "Free Kaggle has 29.0 GiB."
    assert too_much_ram(CARDS["l4"], 90 * GiB) == ""  # lent for money, with more RAM
