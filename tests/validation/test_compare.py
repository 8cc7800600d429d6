"""The calculator against the committed rows: fails when it drifts."""

from calculator.data import read_data
from templates.pieces.comparisons import comparisons_on
from validation.compare import Comparison, Spread, spread
from validation.evidence import measured, written
from validation.rows import read_rows


def comparisons() -> list[Comparison]:
    return comparisons_on("counting")


def test_there_are_at_least_400_measured_configurations_and_none_is_refused() -> None:
    refused = {row["command"] for row in read_rows("counting")}
    assert len(refused) >= 400
    assert refused - {item.row["command"] for item in comparisons()} == set()


def test_the_peak_is_exact_to_the_byte_or_within_a_hundredth_of_a_percent() -> None:
    found = spread([item.error for item in comparisons()])
    assert sum(item.error == 0 for item in comparisons()) >= 0.999 * found.count
    worst = max(comparisons(), key=lambda item: abs(item.error))
    assert found.worst <= 0.0001, worst.configuration.command


def test_every_phase_is_within_a_hundredth_of_a_percent() -> None:
    beyond = {
        item.configuration.command: found
        for item in comparisons()
        if (found := item.phases_beyond())
    }
    assert beyond == {}
    exact = [not any(item.phase_errors().values()) for item in comparisons()]
    assert sum(exact) >= 0.99 * len(exact)


def test_weights_gradients_and_states_are_exact_to_the_byte() -> None:
    wrong = [
        (item.configuration.command, item.static_errors())
        for item in comparisons()
        if any(item.static_errors().values())
    ]
    assert wrong == []


def test_what_a_step_keeps_is_within_one_percent_of_the_peak() -> None:
    assert spread([item.part_errors()["step"] for item in comparisons()]).worst <= 0.01


def test_the_phase_of_the_peak_is_right_in_99_of_100() -> None:
    right = [item.phase_is_right for item in comparisons()]
    assert sum(right) >= 0.99 * len(right)


def test_bytes_over_the_bus_are_exact() -> None:
    for item in comparisons():
        moved = {"to_ram": item.report.to_ram, "to_gpu": item.report.to_gpu}
        assert item.row["transfer"] == moved, item.configuration.command


def test_paged_states_are_prefetched_once_and_counted_to_the_byte() -> None:
    pages = {
        item.configuration.command: (item.report.paged, item.row["paged"])
        for item in comparisons()
        if "paged" in item.row
    }
    assert len(pages) > 100
    for command, (counted, found) in pages.items():
        assert found == {"bytes": counted, "prefetched": counted}, command
    # QLoRA's too
    assert any("--quantization nf4-double" in name and size for name, (size, _) in pages.items())


def test_every_call_of_every_collective_has_the_measured_bytes() -> None:
    many = [item for item in comparisons() if "collectives" in item.row]
    assert len(many) > 250
    assert [item.configuration.command for item in many if item.collective_errors()] == []


def test_the_calculator_carries_the_evidence_of_the_committed_rows() -> None:
    carried = read_data("evidence.json")
    assert written(measured(comparisons()), carried["random"]) == carried


def test_a_spread_is_of_absolute_errors() -> None:
    assert spread([-0.3, 0.1, 0.2, -0.1, 0.0]) == Spread(5, 0.1, 0.3, 0.3)
