"""Messages that people posted, read and explained."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.__main__ import main
from calculator.catalog import find_gpu, find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.planner.out_of_memory import Cause, Message, explain, read_message
from calculator.units import GiB, MiB
from tests.calculator.answers import refused
from tests.calculator.plans import ask, examples


def size(number: float, unit: int = GiB) -> int:
    return round(number * unit)


# of PyTorch 2.5: murong-xu/CADS issue 4
PRESENT = """torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a \
total capacity of 31.47 GiB of which 12.73 GiB is free. Including non-PyTorch memory, this process \
has 18.73 GiB memory in use. Of the allocated memory 9.08 GiB is allocated by PyTorch, and 9.35 \
GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try \
setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."""
# of PyTorch 2.1, with its misprint: wxian3/NeuroLens issue 2
MISPRINTED = """Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 GiB of which 9.02 \
GiB is free. Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is \
reserved by PyTorch but unallocated."""
# of PyTorch 1.9: pytorch/pytorch issue 59778
OLDER = """CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; 781.59 \
MiB already allocated; 3.03 GiB free; 1.24 GiB reserved in total by PyTorch) """
# of PyTorch 1.0: pytorch/pytorch issue 16417
OLDEST = """RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total \
capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)"""
# levihsu/OOTDiffusion issue 167
IN_BYTES = """Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 4.00 GiB of which 2.80 GiB \
is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by \
PyTorch but unallocated."""
# one process, which is this one: FoundationVision/GenerateU issue 10
ONE_PROCESS = """Tried to allocate 496.00 MiB. GPU 0 has a total capacty of 14.75 GiB of which \
235.06 MiB is free. Process 20398 has 14.52 GiB memory in use. Of the allocated memory 14.06 GiB \
is allocated by PyTorch, and 330.42 MiB is reserved by PyTorch but unallocated."""
# of PyTorch 2.5 on a Mac: MPSAllocator.mm writes GB for 2^30 bytes
METAL = """RuntimeError: MPS backend out of memory (MPS allocated: 17.23 GB, other allocations: \
1.05 GB, max allowed: 18.13 GB). Tried to allocate 500.00 MB on private pool."""
# c10/xpu/XPUCachingAllocator.cpp of PyTorch 2.6, which does not know what is free
INTEL = """torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a \
total capacity of 15.91 GiB. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 100.00 \
MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release memory."""
OTHERS = "Process 12 has 3.00 GiB memory in use. Process 7 has 512.00 MiB memory in use. Including"


def message(*sizes: float, others: int | None = None) -> Message:
    """Of sizes in GiB: asked for, the GPU's, free, allocated, and reserved beside that."""
    return Message(*map(size, sizes), others)


# all that is reserved is in the older text, and what is free is not in Intel's
OLDER_FREE = size(1.24) - size(781.59, MiB)
INTEL_FREE = size(15.91) - 14 * GiB - 100 * MiB
READ = message(22.78, 31.47, 12.73, 9.08, 9.35, others=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PRESENT, READ),
        (PRESENT.replace("CUDA", "HIP"), READ),
        (PRESENT.replace("Including", OTHERS), replace(READ, others=3 * GiB + 512 * MiB)),
        (MISPRINTED, message(55.57, 12, 9.02, 984.52 / 1024, 463.48 / 1024)),
        (OLDER, replace(message(2.26, 6, 3.03, 781.59 / 1024, 0), unallocated=OLDER_FREE)),
        (OLDEST, message(12.5 / 1024, 10.92, 9.28, 8.57 / 1024, 4.68 / 1024)),
        (IN_BYTES, message(2, 4, 2.8, 0, 0)),
        (ONE_PROCESS, message(496 / 1024, 14.75, 235.06 / 1024, 14.06, 330.42 / 1024, others=0)),
        (METAL, message(500 / 1024, 18.13, 0, 17.23, 0, others=0)),
        (INTEL, replace(message(2, 15.91, 0, 14, 100 / 1024), free=INTEL_FREE)),
    ],
)
def test_every_text_of_pytorch_is_read(text: str, expected: Message) -> None:
    assert read_message(text) == expected
    assert read_message(f"Traceback ...\n  x = y\n{text}\n\nDuring handling ...") == expected


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", "Tried to allocate"),
        ("RuntimeError: CUDA error: an illegal memory access", "Tried to allocate"),
        ("Tried to allocate 20.00 MiB.", "already"),
        (PRESENT.replace("12.73 GiB is free", "some is free"), "of which SIZE is free"),
        (PRESENT.replace("22.78 GiB", "much"), "Tried to allocate SIZE"),
        (PRESENT.partition(", and 9.35")[0], "is reserved by PyTorch but unallocated"),
        (PRESENT.replace("9.08 GiB", "nan GiB"), "is allocated by PyTorch"),
        (OLDER.replace("; 3.03 GiB free", ""), "SIZE free"),
        (OLDER.partition("1.24 GiB")[0], "SIZE reserved in total by PyTorch"),
        (OLDER.replace("6.00 GiB total", "9" * 40 + " GiB total"), "SIZE total capacity"),
        ("x" * 100_001, "at most 100,000 characters"),
    ],
)
def test_what_is_missing_is_named(text: str, missing: str) -> None:
    with refused("message", missing):
        read_message(text)


@given(st.text(max_size=300))
@examples(200)
def test_any_text_gives_a_message_or_an_error(text: str) -> None:
    for whole in (text, f"Tried to allocate {text}", PRESENT.replace("22.78", text)):
        try:
            found = read_message(whole)
        except InputError:
            continue
        assert found.capacity >= 0


def causes(message: Message, plan: Plan, gpu: str = "t4") -> list[Cause]:
    model, card = find_model("gpt2-l"), find_gpu(gpu)
    return [one.cause for one in explain(message, estimate(model, plan.on(card)), card)]


FITS = Plan(optimizer_bits=8)  # GPT-2 Large then fits a T4, see test_fit
PEAK = estimate(find_model("gpt2-l"), FITS).gpu.total
IN_PIECES = Message(512 * MiB, size(14.75), 100 * MiB, PEAK - GiB, 2 * GiB)
FULL = message(1.20, 23.64, 1.22, 21.9, 50 / 1024, others=0)
LARGE = [Cause.SAME_PLAN, Cause.TOO_LARGE]
TAKEN = [Cause.SAME_PLAN, Cause.OTHER_PROCESS, Cause.TOO_LARGE]


@pytest.mark.parametrize(
    ("said", "plan", "found", "lacking"),
    [
        (message(0.5, 14.75, 0.1, 14, 0.2), Plan(batch_size=8), LARGE, {*Cause} - {*LARGE}),
        (message(0.5, 14.75, 0.1, 5, 0, others=9 * GiB), FITS, TAKEN, {*Cause} - {*TAKEN}),
        (IN_PIECES, FITS, [Cause.FRAGMENTATION], set()),
        (replace(IN_PIECES, unallocated=500 * MiB), FITS, [], {Cause.FRAGMENTATION}),
        (FULL, FITS, [Cause.FULL], {Cause.FREE}),
        (replace(FULL, free=FULL.asked), FITS, [Cause.FULL], {Cause.FREE}),
        # some other limit was reached
        (replace(FULL, free=size(1.4)), FITS, [Cause.FREE], {Cause.FULL}),
        (replace(FULL, free=12 * GiB), FITS, [Cause.FREE], {Cause.FULL}),
    ],
)
def test_a_message_has_the_causes_that_its_sizes_say_in_their_order(
    said: Message, plan: Plan, found: list[Cause], lacking: set[Cause]
) -> None:
    every = causes(said, plan)
    assert [cause for cause in every if cause in found] == found
    assert not lacking & {*every}


@pytest.mark.parametrize("gpus", [1, 8])
def test_routing_is_a_reason_where_experts_are_divided(gpus: int) -> None:
    plan = Plan.parse({"expert_parallel": gpus, "sequence_length": 512})
    report = estimate(find_model("mistralai/Mixtral-8x7B-v0.1"), plan)
    wanted = 2 * report.gpu.total
    message = Message(wanted, wanted, 0, 0, 0)
    (found,) = [
        one for one in explain(message, report, find_gpu("h200")) if one.cause is Cause.OTHER_PLAN
    ]
    assert ("routing" in found.remedy) is (gpus > 1)


@pytest.mark.parametrize(
    ("gpu", "capacity"),
    # what messages call the memory of these cards, in GiB
    [("t4", 14.75), ("t4", 14.56), ("v100-16", 15.77), ("rtx-4090", 23.65), ("a100-80", 79.15)],
)
def test_a_card_is_known_by_what_programs_get_of_it(gpu: str, capacity: float) -> None:
    message = Message(MiB, size(capacity), 0, GiB, 0, others=0)
    assert Cause.OTHER_CARD not in causes(message, FITS, gpu)
    assert Cause.OTHER_CARD in causes(message, FITS, "h200")


def test_the_page_gets_rows_findings_and_a_way_to_the_messages_gpu() -> None:
    value = ask("explain", model="gpt2-l", gpu="h200", message=PRESENT)["value"]
    rows = {row["label"]: row["text"] for row in value["rows"]}
    assert (rows["Asked for"], rows["Reserved and unused"]) == ("22.8 GiB", "9.35 GiB")
    first, *others = value["findings"]
    assert first["cause"] == "another GPU"
    assert first["query"] == "model=gpt2-l&gpu_memory=31.47"
    assert all(one["query"] is None for one in others)


def test_the_command_line_explains_a_message_and_ends_with_what_to_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"Traceback (most recent call last):\n{PRESENT}", encoding="utf-8")
    large = ["--batch-size", "64"]
    for words in ([str(path), *large], [PRESENT, *large], [*large, PRESENT]):
        assert main(["explain", "gpt2-s", *words]) == 0
        said = capsys.readouterr().out
        assert "GPU with 31.47 GiB" in said  # the message's card
        assert "What would make it fit:" in said
    monkeypatch.setattr("sys.stdin", io.StringIO(ONE_PROCESS))
    assert main(["explain", "gpt2-s", "--gpu", "Tesla T4"]) == 0
    said = capsys.readouterr().out
    assert "Tesla T4 16 GB: fits." in said
    assert "Largest micro-batch" in said
