"""Data for the calculator's page: the form's options and the default result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from calculator import protocol
from calculator.architecture import Architecture
from calculator.cards import grouped
from calculator.catalog import MODELS, groups
from calculator.catalog.models import GROUPS as PAPERS
from calculator.configuration import LONGEST_TEXT
from calculator.doors.file import KINDS, LARGEST
from calculator.doors.formats import TABLES, keys_of
from calculator.groups import ELSEWHERE
from calculator.options import Option
from calculator.page.states import DEFAULT_GPU, DEFAULT_MODEL
from calculator.plan import Plan
from calculator.planner import job
from calculator.presets import FIELDS, Preset
from calculator.report import Part, Phase
from templates.pages.calculator.first import first_verdicts, gibibytes, shapes
from templates.pieces.accuracy import devices, on_card, on_our_cards
from templates.pieces.comparisons import Recorded


@dataclass(frozen=True, slots=True)
class Group:
    """A fieldset of the form; a folded one opens on demand."""

    title: str
    fields: tuple[str, ...]
    folded: bool = False

    @property
    def options(self) -> list[Option]:
        """The options in the order the form shows them."""
        return [Plan.options()[field] for field in self.fields]


GROUPS = (
    Group("Batch", ("batch_size", "sequence_length", "target_length")),
    Group(
        "Precision and optimizer",
        (
            *("precision", "format", "gradient_scaler"),
            *("optimizer", "optimizer_bits", "paged_optimizer"),
        ),
        folded=True,
    ),
    Group(
        "Saving memory",
        (
            *("checkpointing", "checkpoint_every", "activation_offload", "chunked_loss", "offload"),
            *("update_in_backward", "sharing_groups", "reversible"),
        ),
        folded=True,
    ),
    Group(
        "Training adapters (LoRA)",
        ("lora", "lora_targets", "lora_dropout", "lora_bias", "lora_modules", "quantization"),
        folded=True,
    ),
    Group(
        "Several GPUs",
        (
            *("gpus", "data_parallel", "cpu_offload", "tensor_parallel", "sequence_parallel"),
            *("expert_parallel", "context_parallel", "context_rotation"),
            *("pipeline_parallel", "pipeline_schedule", "pipeline_stages"),
        ),
        folded=True,
    ),
    Group(
        "More options",
        (
            "task",
            "labels",
            "mini_batch_size",
            "freeze",
            "attention",
            "update",
            "dropout",
            "accumulation",
            "loop",
            "tied_embeddings",
        ),
        folded=True,
    ),
)


# Of a whole training: what its hours and price depend on beside the step.
JOB: Final = (
    Option("Tokens", "Of your data set: 10 million, for example, is 10000000.", "number"),
    Option("Rows", "Instead of tokens: your sequences, each of the length above.", "integer"),
    Option("Epochs", "Passes through the data; 1 if left empty.", "number"),
    Option("Price of a GPU hour", f"In dollars; {job.PRICES}.", "number"),
    Option("Carbon", "In kg of CO2 per kWh of your grid.", "number"),
)


def job_options() -> list[Option]:
    """Those fields by their names in a state, without limits: Python says what is wrong."""
    named = zip(JOB, job.OPTIONS, strict=True)
    return [replace(one, field=own.field, minimum=0, maximum=1e18) for one, own in named]


def stops(low: int, high: int) -> tuple[int, ...]:
    """Powers of two and, between them, one and a half times each, which are usual too.

    >>> stops(1, 16)
    (1, 2, 3, 4, 6, 8, 12, 16)
    """
    found = [low]
    while found[-1] < high:
        last = found[-1]
        is_power = not last & (last - 1)
        found.append(last * 3 // 2 if is_power and last > 1 else 2 ** last.bit_length())
    return tuple(found)


# Groups with models of the last years, the newest first; the list of models begins with them.
NEWEST: Final = (
    *("Qwen", "gpt-oss", "Gemma", "SmolLM", "GLM", "OLMo", "Phi", "Llama", "DeepSeek"),
    *("Mistral", "Granite", "ModernBERT"),
)


def newest_first() -> dict[str, list[Architecture]]:
    """The models by group: those of today, and then the others, the paper's six families first."""
    found = groups()
    return {title: found[title] for title in dict.fromkeys((*NEWEST, *found))}


# What the page opens with; an address with choices of its own never means this.
OPENING: Final = {"model": "Qwen/Qwen3-8B", "gpu": "t4", "preset": "qlora"}
# A model of each of the paper's six families, one click away.
FAMILIES: Final = ("bert-large", "t5-large", "gpt2-l", "gpt3-xl", "gpt-j-6b", "dalle-together")


# A slider's stops, on a scale of ratios; the number field beside it takes every allowed value.
SLIDERS = {
    "batch_size": stops(1, 256),
    "sequence_length": stops(32, 32768),
    "target_length": stops(32, 32768),
}

# The others unfold.
SHOWN_WAYS = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A figure beside those of the GPU, and its path in a report."""

    path: str
    label: str
    words: str
    in_bytes: bool = True


OTHER_ROWS = (
    Row(
        "parameters",
        "Parameters",
        "The values being trained; shared ones count once.",
        False,
    ),
    Row("ram.peak", "RAM", "What offloading keeps in the computer's own memory."),
    Row("transfer.to_ram", "Moved to RAM", "Over the bus, in each step."),
    Row("transfer.to_gpu", "Moved to the GPU", "Over the bus, in each step."),
    Row(
        "paged.bytes",
        "Paged states",
        "On the GPU while there is room beside its peak, else in RAM.",
    ),
)


def ask(method: str, **params: object) -> Any:
    """The value that `calculator.protocol` answers.

    Raises:
        ValueError: when it answers with an error.

    """
    answer = json.loads(protocol.handle(json.dumps({"id": 0, "method": method, "params": params})))
    if answer["kind"] != "result":
        raise ValueError(f"{method} {params}: {answer['error']['message']}")
    return answer["value"]


def look_up(value: Mapping[str, Any] | Sequence[Any], path: str) -> Any:
    """The value at a dotted `path`, as calculator.js looks it up.

    >>> look_up({"phases": [{"gpu": 5}]}, "phases.0.gpu")
    5
    """
    found: Any = value
    for name in path.split("."):
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found


# what PyTorch's allocator and the driver show after three steps, by its simulation
ALLOCATOR_ROWS: Final = (
    ("allocated", "PyTorch allocates", "The peak, with library workspaces and unsplit blocks."),
    (
        "reserved",
        "PyTorch reserves",
        "The segments of its allocator, simulated for three steps.",
    ),
    ("used", "The driver shows", "Reserved memory and CUDA's context."),
)


def whole_advice(**state: object) -> dict[str, Any]:
    """The advice for a state, searched to its end."""
    while True:
        advice: dict[str, Any] = ask("advise", **state)
        if advice["done"]:
            return advice


def first_answer(model: str) -> dict[str, Any]:
    """The whole answer and advice for a model's default plan."""
    return {"answer": ask("answer", model=model), "advice": whole_advice(model=model)}


ANSWERS = Recorded("answers", first_answer, lambda: [*MODELS])


def write_assets(assets: Path) -> None:
    """Write what the page shows before Python: whole answers, and verdicts with the presets."""
    folder = assets / "first"
    folder.mkdir(parents=True)
    tables: dict[str, object] = dict(zip(MODELS, ANSWERS.results(), strict=True))
    for name, found in first_verdicts().items():
        tables[f"verdicts/{name.replace('/', '--')}"] = found
    tables["shapes"] = shapes()
    (folder / "verdicts").mkdir()
    for name, table in tables.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(table, separators=(",", ":")), "utf-8")


# Libraries whose keys stand beside the classes and arguments of `ELSEWHERE`.
FORMATS: Final = ("axolotl", "LLaMA-Factory", "torchtune", "torchtitan")


def names_in_other_libraries(field: str) -> dict[str, str]:
    """The names of an option elsewhere: those of the command line's help, and keys of `check`."""
    keys = keys_of(field)
    return {**ELSEWHERE.get(field, {}), **{one: keys[one] for one in FORMATS if one in keys}}


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    value, plain = ask("answer", **OPENING), ask("answer")["report"]["plan"]
    figures: Mapping[str, str] = value["figures"]

    def lengths(names_and_paths: str) -> str:
        pairs = (pair.split(":") for pair in names_and_paths.split())
        style = ";".join(f"--{name}:{look_up(value, path):d}" for name, path in pairs)
        return f'data-lengths="{names_and_paths}" style="{style}"'

    plan = value["report"]["plan"]

    def words(field: str) -> str:
        return dict(Plan.options()[field].choices)[plain[field]]

    return {
        "value": value,
        "card": on_card(),
        "our_cards": on_our_cards(),
        "counted": devices()[0].families[0],
        "first_advice": whole_advice(**OPENING),
        "first_program": ask("code", **OPENING)["program"],
        "presets": list(Preset),
        "preset": OPENING["preset"],
        "unnamed": DEFAULT_MODEL,
        "unnamed_gpu": DEFAULT_GPU,
        "preset_fields": FIELDS,
        "families": [(title, *(set(names) & set(FAMILIES))) for title, names in PAPERS.items()],
        "shown_ways": SHOWN_WAYS,
        "plan": plan,
        "words": words,
        "parts": list(Part),
        "phase_rows": list(Phase),
        "allocator_rows": ALLOCATOR_ROWS,
        "other_rows": OTHER_ROWS,
        "groups": GROUPS,
        "elsewhere": names_in_other_libraries,
        "sliders": SLIDERS,
        "job_options": job_options(),
        "model_groups": newest_first(),
        "longest_config": LONGEST_TEXT,
        "largest_file": LARGEST,
        "file_kinds": list(KINDS),
        "file_titles": [table.title for table in TABLES],
        "cards": grouped(),
        "gibibytes": gibibytes,
        "models": ask("models"),
        "models_own": {field.name for field in fields(Plan) if field.default is None},
        "text": figures.__getitem__,
        "lengths": lengths,
    }
