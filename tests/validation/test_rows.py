import json
from pathlib import Path

from calculator.plan import Plan
from validation.configuration import Configuration
from validation.rows import ORACLE, RowFile, measure_command, read_rows
from validation.run import earlier

SMALL, LARGER = (Configuration(f"gpt2-{size}", Plan(batch_size=2)) for size in "sm")


def row(configuration: Configuration) -> dict[str, object]:
    command = measure_command(configuration, "counting")
    return {"command": command, "peak": 1, "versions": {"oracle": ORACLE}}


def test_a_row_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    file = RowFile("counting", "gpt2", tmp_path)
    file.append(row(SMALL))
    with file.path.open("a") as opened:
        opened.write('{"command": "python -m validation mea')
    again = RowFile("counting", "gpt2", tmp_path)
    assert SMALL in again
    assert LARGER not in again
    again.append(row(LARGER))
    assert [found["peak"] for found in read_rows("counting", tmp_path)] == [1, 1]


def test_a_row_of_an_earlier_oracle_is_measured_again_and_replaced(tmp_path: Path) -> None:
    file = RowFile("counting", "gpt2", tmp_path)
    file.append({**row(SMALL), "peak": 7, "versions": {"oracle": ORACLE - 1}})
    assert SMALL not in file
    assert file.has_stale(SMALL)
    file.append(row(SMALL))
    assert SMALL in file
    assert [found["peak"] for found in read_rows("counting", tmp_path)] == [1]


def test_rows_of_an_earlier_oracle_are_found_though_the_grid_draws_them_no_more(
    tmp_path: Path,
) -> None:
    file = RowFile("counting", "gpt2", tmp_path)
    for item, oracle in ((SMALL, ORACLE), (LARGER, ORACLE - 1)):
        asked = {"configuration": {"model": item.model, "batch_size": item.plan.batch_size}}
        file.append({**row(item), **asked, "versions": {"oracle": oracle}})
    assert earlier("counting", tmp_path) == [LARGER]


def test_a_committed_row_is_made_again_by_its_command_and_a_peak_is_the_sum_of_its_parts() -> None:
    commands = set()
    for found in read_rows("counting"):
        configuration = Configuration.from_dict(found["configuration"])
        assert found["command"] == measure_command(configuration, "counting")
        assert found["command"] not in commands, "measured twice"
        commands.add(found["command"])
        for phase in found["phases"].values():
            assert sum(phase["parts"].values()) == phase["peak"], json.dumps(found)
        assert found["peak"] == max(phase["peak"] for phase in found["phases"].values())
