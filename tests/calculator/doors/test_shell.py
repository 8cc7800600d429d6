"""The command that trains in a shell script: its options, and the processes that start it."""

import pytest

from calculator.doors.shell import read_command


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torchrun --nnodes 2 --nproc-per-node 8 train.py --bf16", ("16", None)),
        ("deepspeed --num_gpus=8 --master_port 1 t.py --bf16 --deepspeed z.json", ("8", "z.json")),
        ("accelerate launch --config_file a.yaml --num_processes 4 t.py --bf16", ("4", "a.yaml")),
        ("python -m torch.distributed.run --nproc_per_node 2 -m train --bf16", ("2", None)),
        ("export N=4\nNPROC_PER_NODE=$N swift sft --bf16 | tee log", ("4", None)),
        ("N=$(nvidia-smi | wc -l)\ntorchrun --nproc_per_node $N t.py --bf16", ("(computed)", None)),
        ("python train.py --bf16 > log 2>&1", (None, None)),
    ],
)
def test_processes_and_files_of_a_launcher(text: str, found: tuple[str | None, str | None]) -> None:
    values = read_command(text)
    assert (values.pop("num_processes", None), values.pop("deepspeed", None)) == found
    assert values == {"bf16": True}


def test_variables_and_lists_have_the_values_of_the_script() -> None:
    text = """
SIZE=7
ARGS=(--lr 1e-4 --name "a b")
echo --none
python train.py --model base-${SIZE}B "${ARGS[@]}" --batch ${BATCH:-2} --steps $STEPS \\
    --targets q_proj v_proj
"""
    assert read_command(text) == {
        "model": "base-7B",
        "lr": "1e-4",
        "name": "a b",
        "batch": "2",
        "steps": "(computed)",
        "targets": ["q_proj", "v_proj"],
    }


@pytest.mark.parametrize("text", ["", "echo 1", "python train.py", "x='", "# python t.py --bf16"])
def test_a_script_without_options_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no command with options"):
        read_command(text)
