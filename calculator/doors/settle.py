"""Several files together, as a plan of ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from calculator.doors.table import Note, Reading, facts_of
from calculator.errors import InputError
from calculator.plan import Plan

# GPUs of a run that shards its model where no file names their number: those of a usual machine
USUAL_GPUS: Final = 8
_FORMATS: Final = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float": "fp32",
    "float32": "fp32",
    "auto": "bf16",
    "no": "",
    "none": "",
    "false": "",
}
_ADAPTERS: Final = ("lora", "qlora")
Facts = dict[str, object]


@dataclass(frozen=True, slots=True)
class Understood:
    """A run as we understand it.

    Attributes:
        model: its name, or empty.
        options: the options of a plan.
        assumed: option or fact, and its value, where no file and no option of ours says it.
        notes: keys that are not counted as they are, or not known.
    """

    readings: tuple[Reading, ...]
    model: str
    options: Mapping[str, object]
    assumed: tuple[tuple[str, object], ...]
    notes: tuple[Note, ...]

    @property
    def plan(self) -> Plan:
        """The options as a plan.

        Raises:
            InputError: for a value that an option does not take.
        """
        return Plan.parse(self.options)


def settle(readings: Sequence[Reading], given: Mapping[str, object], model: str = "") -> Understood:
    """The plan of a run's files; `given` are options of ours, which go before the files.

    Raises:
        InputError: for numbers that do not go together.
    """
    ordered = sorted(readings, key=lambda one: one.table.is_run)
    defaults: Facts = {}
    for reading in ordered:
        defaults |= reading.table.defaults
    said: Facts = dict(facts_of(ordered))
    facts = {**defaults, **said}
    if model:
        facts["model"] = model
    notes = [
        note
        for one in ordered
        for note in (*one.notes, *one.unknown)
        if note.fact not in given and not (note.fact == "model" and model)
    ]
    options = {name: value for name, value in facts.items() if name in Plan.options()}
    for step in (_adapters, _precision, _division, _batch, _several):
        step(facts, options, notes)
    open_facts = {k: v for k, v in facts.items() if k not in said and k in ("gpus", *defaults)}
    options |= given
    assumed = [
        (name, options.get(name, value))
        for name, value in open_facts.items()
        if name not in given and (name in options or name in ("weights", "autocast")) and value
    ]
    options = {name: value for name, value in options.items() if value not in (None, "")}
    return Understood(
        tuple(readings), str(facts.get("model") or ""), options, tuple(assumed), tuple(notes)
    )


def _adapters(facts: Facts, options: Facts, _: list[Note]) -> None:
    """Adapters' options, which mean nothing without adapters."""
    if facts.get("adapter") not in _ADAPTERS:
        for name in [name for name in options if name.startswith("lora")]:
            del options[name]
    if facts.get("four_bits"):
        kind = str(facts.get("four_bits_type") or "nf4")
        options["quantization"] = f"{kind}-double" if facts.get("four_bits_double") else kind


def _precision(facts: Facts, options: Facts, _: list[Note]) -> None:
    """The precision, from the formats of weights and of autocast."""
    if "precision" in options:
        return
    weights, autocast = _format(facts.get("weights")), _format(facts.get("autocast"))
    narrow = weights in ("bf16", "fp16", "card")
    divided = facts.get("zero") is not None or "fsdp" in str(options.get("data_parallel"))
    if options.get("lora"):
        precision = "half" if narrow or (divided and autocast) else "amp" if autocast else "fp32"
    elif divided:
        precision = "mixed" if autocast else "half" if narrow else "fp32"
    else:
        precision = "half" if narrow else "amp" if autocast else "fp32"
    options["precision"] = precision
    format_ = autocast or weights
    if precision != "fp32" and format_ in ("bf16", "fp16"):
        options["format"] = format_
    if precision == "amp" and format_ == "fp16":
        options["gradient_scaler"] = True


def _format(value: object) -> str:
    text = str(value if value is not None else "").lower().removeprefix("torch.")
    return _FORMATS.get(text, text)


def _division(facts: Facts, options: Facts, notes: list[Note]) -> None:
    """GPUs, and what each holds."""
    stage = facts.get("zero")
    if stage is not None:
        kinds = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "fsdp"}
        options["data_parallel"] = kinds.get(str(stage), "fsdp")
        if options["data_parallel"] == "zero1" and options["precision"] == "mixed":
            options["data_parallel"] = "zero2"
            _say(notes, "zero_optimization.stage", 1, "its gradients are counted as shards")
    sharded = options.get("data_parallel") in ("fsdp", "zero1", "zero2")
    layers = prod(_number(options.get(f"{axis}_parallel")) or 1 for axis in ("tensor", "pipeline"))
    parts = layers * (_number(options.get("context_parallel")) or 1)
    usual = USUAL_GPUS if USUAL_GPUS % parts == 0 else parts
    gpus = facts.get("processes") or (usual if sharded else parts if parts > 1 else None)
    if gpus is not None:
        options.setdefault("gpus", gpus)
    if "processes" not in facts and gpus:
        facts["gpus"] = gpus
    in_ram = facts.get("offload_states") or facts.get("offload_weights")
    if _number(options.get("gpus", 1)) == layers:  # no two have the same layers
        options.pop("data_parallel", None)
        options.pop("cpu_offload", None)
        if in_ram:
            options["offload"] = "optimizer"
    elif in_ram and options.get("data_parallel") in ("fsdp", "zero2"):
        options["cpu_offload"] = True
        if not facts.get("offload_weights"):
            words = "is counted with the shards of weights and gradients in RAM too"
            _say(notes, "zero_optimization.offload_optimizer", "cpu", words)


def _say(notes: list[Note], key: str, value: object, words: str) -> None:
    file = next((note.file for note in notes if note.key == key), "")
    notes.append(Note(file, key, value, words, "more"))


def _batch(facts: Facts, options: Facts, _: list[Note]) -> None:
    """Micro-batches, where a file has the sequences of an update."""
    update = _number(facts.get("update_batch"))
    if update is None:
        return
    gpus = _number(options.get("gpus")) or 1
    micro, steps = _number(options.get("batch_size")), _number(options.get("accumulation"))
    if micro is None:
        options["batch_size"] = max(1, update // (gpus * (steps or 1)))
    elif steps is None:
        options["accumulation"] = max(1, update // (gpus * (micro or 1)))


def _several(facts: Facts, options: Facts, _: list[Note]) -> None:
    """Pairs of a preference loss pass through the model as one batch."""
    batch = _number(options.get("batch_size"))
    if facts.get("pairs") and batch:
        options["batch_size"] = 2 * batch


def _number(value: object) -> int | None:
    try:
        return None if value is None or isinstance(value, bool) else int(float(str(value)))
    except (ValueError, OverflowError):
        return None


def group_runs(readings: Sequence[Reading]) -> list[tuple[Reading, ...]]:
    """The files of each run: parts, such as DeepSpeed's, belong to every run.

    Files of which one alone names a model are one run.

    Raises:
        InputError: without a file.
    """
    if not readings:
        raise InputError("file", "", "must be given")
    runs = [one for one in readings if one.table.is_run]
    parts = tuple(one for one in readings if not one.table.is_run)
    named = [one for one in runs if "model" in one.facts]
    if len(named) < 2:
        return [(*parts, *runs)]
    return [(*parts, one) for one in runs]
