"""'Join a run': costs that follow from the code, a recorded terminal, the doctor's points."""

import json
import re
from pathlib import Path

import pytest

from calculator.catalog.checkpoints import CHECKPOINTS
from templates.pages.join import context as join_page
from templates.pages.run_your_own.context import CHECKPOINTS_KEPT, FIELDS
from templates.pieces import volunteer_costs
from tests.pages.rendered import render_page
from tools.console import ROOT
from training.__main__ import LOADING
from training.doctor.command import CHECKING
from training.doctor.findings import POINTS, PointName
from training.run.recipes import PAPER
from training.run.runfile import RunFile
from training.run.status import Stage

# Libraries that are imported here for the first time warn of their own future.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_every_point_of_the_doctor_is_on_its_page() -> None:
    for name in PointName:
        assert f">{POINTS[name].title}</th>" in render_page("doctor")


def test_the_memory_is_what_a_volunteer_asks_the_calculator_for() -> None:
    torch = pytest.importorskip("torch")
    from training.volunteer import fitting

    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    for sequences in (1, PAPER.swarm.micro_batch_size):
        counted = volunteer_costs.memory(sequences).gpu
        assert counted == fitting.step_bytes(PAPER, cuda, sequences)
    assert volunteer_costs.processor_memory(1) == fitting.step_bytes(PAPER, cpu, 1)


@pytest.mark.parametrize("name", volunteer_costs.LANGUAGE_MODELS)
def test_the_memory_of_a_language_model_is_what_its_volunteer_asks_for(name: str) -> None:
    torch = pytest.importorskip("torch")
    from training.run.recipes import derive
    from training.volunteer import fitting

    model = {"config": CHECKPOINTS[name].values, "sequence_length": volunteer_costs.TOKENS}
    recipe = derive("language", {"model": model})
    needed = fitting.step_bytes(recipe, torch.device("cuda"), 1)
    assert volunteer_costs.language_memory(name).gpu == needed


def test_a_copy_of_the_gradients_is_what_the_peers_expect_to_send() -> None:
    torch = pytest.importorskip("torch")
    from training.averaging.wire import WireCompression, WireFormat, expected_bytes
    from training.model.build import build_model

    with torch.device("meta"):
        parameters = list(build_model(PAPER).parameters())
    wire = WireCompression(WireFormat.ADAPTIVE, PAPER.swarm.compression_threshold)
    assert volunteer_costs.copy_bytes() == expected_bytes(parameters, wire)
    assert volunteer_costs.parameter_count() == sum(p.numel() for p in parameters)


def test_the_traffic_is_near_what_the_organisers_of_2021_asked_for() -> None:
    six_hours = 6 * volunteer_costs.step_bytes() * volunteer_costs.steps_an_hour()
    assert six_hours == pytest.approx(50e9, rel=0.2)  # 50 GB in 6 hours, each way


def test_the_disk_is_what_the_doctor_asks_for() -> None:
    hardware = pytest.importorskip("training.doctor.hardware")
    from training.doctor.setup import Setup

    run = RunFile(name="run", recipe="paper")
    asked = hardware.disk_bytes(Setup(run=run, folder=Path("/")))
    assert volunteer_costs.disk_bytes() == pytest.approx(asked, rel=0.05)


def test_the_recorded_terminals_are_what_this_version_prints() -> None:
    lines = join_page.recorded("volunteer.txt")
    assert any(
        re.match(r"step \d+ of \d+ · loss \d\.\d{3} · you [\d,]+ sequences", x) for x in lines
    )
    assert lines[0] == CHECKING
    assert any(line.endswith(LOADING) for line in lines)
    assert lines[-1].endswith(Stage.DONE.value)
    for line in lines:
        if line.startswith("step "):
            assert re.sub(r", \d+ %$", "", line.split(" · ")[-1]) in set(Stage)
    *findings, verdict = join_page.recorded("doctor.txt")
    titles = {line[10:24].strip() for line in findings}
    assert titles == {point.title for point in POINTS.values()}
    assert verdict == "all fine"


def test_the_page_of_organisers_names_every_field_of_a_run_file() -> None:
    named = {name for names, _ in FIELDS for name in names.split(", ")}
    # `changes` are what the table `[recipe]` says beside its base
    assert named == set(RunFile.__dataclass_fields__) - {"changes"}


def test_clip_has_as_many_parameters_as_its_download_is_computed_from() -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    with torch.device("meta"):
        clip = transformers.CLIPModel(transformers.CLIPConfig())  # the defaults are ViT-B/32
    assert sum(p.numel() for p in clip.parameters()) == volunteer_costs.CLIP_PARAMETERS


def test_a_line_of_live_data_and_the_checkpoints_that_are_kept_are_as_told() -> None:
    lines = (ROOT / "docs/live/rehearsal/progress.jsonl").read_text("utf-8").splitlines()
    assert "200 bytes" in render_page("run-your-own")
    assert sum(map(len, lines)) / len(lines) == pytest.approx(200, rel=0.15)
    assert json.loads(lines[0])["step"] == 1
    checkpoint = pytest.importorskip("training.model.checkpoint")
    assert checkpoint.KEPT == CHECKPOINTS_KEPT
