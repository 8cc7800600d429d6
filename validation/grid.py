"""The measured configurations: a covering array drawn from the fields of `Plan`.

Every type is measured with every value of every option once, and every pair of values of two
options on three types; a row has several of them. What people choose first, the presets, is
measured as it is, on every type. A new type needs a small odd `configs/TYPE.json`
alone; `python -m validation grid --kind TYPE` measures its rows. What PyTorch cannot run has none.
"""

import random
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from itertools import combinations, product
from typing import Any, Final

from calculator.cards import CARDS
from calculator.plan import Plan
from calculator.presets import Preset, options_with
from validation.configuration import COUNTED, Configuration
from validation.drawn import (
    BRINGS,
    INTEGERS,
    LAYERS_OF_OLDER,
    NAMES,
    OLDER,
    SIZES,
    TASKS,
    meaningless,
    models,
    sized,
)
from validation.subject import find_subject
from validation.task_rows import task_rows

SEED: Final = 2021
TOGETHER: Final = 3  # options of a row, and types of a pair
Choice = tuple[str, Any]
PRESETS: Final = (
    *((Preset.FULL, COUNTED), (Preset.FULL, CARDS["t4"])),
    *((Preset.LORA, CARDS["t4"]), (Preset.QLORA, COUNTED)),
)

# What `measure` runs on a reader's card in about a minute, from what any card holds to what a large
# one does; each shows something that the others do not.
CARD_STEPS: Final = (
    "gpt2-s --batch-size 4 --attention eager",
    "bert-large --batch-size 8 --optimizer adam --optimizer-bits 8",
    "gpt2-m --batch-size 4 --precision half --checkpointing full",
    "Qwen/Qwen3-0.6B --checkpointing full --sequence-length 1024",
    "Qwen/Qwen3-1.7B --lora 16 --quantization nf4 --checkpointing full --sequence-length 1024",
    "Qwen/Qwen3-1.7B --checkpointing full --sequence-length 2048",
    "meta-llama/Llama-3.1-8B --precision half --checkpointing full --sequence-length 4096",
)


def grid() -> list[Configuration]:
    """All configurations, in an order that never changes and soon shows all types.

    Nothing is drawn in one sequence: a new type leaves the rows of others, but for those pairs that
    it takes.
    """
    found = {each.command: each for each in (*_alone(), *_pairs())}
    configurations = [found[command] for command in sorted(found, key=_place)]
    return [*configurations, *_presets(), *task_rows()]


def _place(*of: object) -> bytes:
    """A random place in an order, which follows from these alone."""
    return blake2b(str((SEED, *of)).encode()).digest()


def choices(without: set[str]) -> list[Choice]:
    """Every value of every option, but for those that are left out and the defaults."""
    default = Plan()
    found: list[Choice] = []
    for name, option in Plan.options().items():
        match option.kind:
            case _ if name in without or name in (*SIZES, *TASKS):
                values: tuple[Any, ...] = ()
            case "choice":
                values = tuple(value for value, _ in option.values)
            case "flag":
                values = (True,) if name != "tied_embeddings" else (True, False)
            case "number":
                values = (0.1,)
            case "integer":
                values = INTEGERS[name][:1]
            case _:
                values = NAMES[name]
        found += [(name, value) for value in values if value != getattr(default, name)]
    return found


def _presets() -> Iterator[Configuration]:
    """Each model with each preset, on a card that computes bf16 and on one that does not."""
    for name, (preset, card) in product(models(), PRESETS):
        depth = LAYERS_OF_OLDER[0] if name in OLDER else None
        shape = find_subject(name, depth).architecture
        draw = random.Random(_place(name, preset.name, card.name))
        values = sized(draw, name, options_with(preset, shape, card, {}))
        yield Configuration(name, Plan.parse(values).on(card), depth)


def _alone() -> Iterator[Configuration]:
    """Each model at its defaults, and with every choice, a few of them in a row."""
    for name in models():
        yield _configuration(name, [])
        left = choices({*meaningless(name)})
        random.Random(_place(name)).shuffle(left)
        while left:
            taken = [left.pop()]
            for each in [*left]:
                if len(taken) < TOGETHER and _agree(each, taken):
                    left.remove(each)
                    taken.append(each)
            yield _configuration(name, taken)


def _pairs() -> Iterator[Configuration]:
    """Every pair of choices on a few models; a third choice brings two more pairs to a row."""
    names = models()
    allowed = {name: choices({*meaningless(name)}) for name in names}
    every = choices(set())
    seen: dict[frozenset[Choice], set[str]] = {
        frozenset((one, other)): set()
        for one, other in combinations(every, 2)
        if _agree(one, [other])
    }
    for pair, on in seen.items():
        fit = [name for name in names if name not in on and {*allowed[name]} >= pair]
        taken = [each for each in every if each in pair]
        fit.sort(key=partial(_place, taken))
        for name in fit[: max(0, TOGETHER - len(on))]:
            row = [*taken, *_third(name, taken, allowed[name], seen)]
            for each in combinations(row, 2):
                seen[frozenset(each)].add(name)
            yield _configuration(name, row)


def _third(
    name: str,
    pair: list[Choice],
    allowed: list[Choice],
    seen: dict[frozenset[Choice], set[str]],
) -> list[Choice]:
    """A choice whose pairs with both are still wanted on some model, if there is one."""

    def is_wanted(each: Choice) -> bool:
        found = [seen.get(frozenset((each, other))) for other in pair]
        return all(on is not None and len(on) < TOGETHER and name not in on for on in found)

    wanted = [each for each in allowed if each not in pair and is_wanted(each)]
    return [min(wanted, key=partial(_place, name, pair))] if wanted else []


def _agree(choice: Choice, others: list[Choice]) -> bool:
    """True if neither is another value of an option that the others have or bring."""
    wanted = {**_brought(choice[0]), choice[0]: (choice[1],)}
    for name, value in others:
        theirs = {**_brought(name), name: (value,)}
        if any(not {*wanted[each]} & {*theirs[each]} for each in wanted.keys() & theirs.keys()):
            return False
    return True


def _brought(name: str) -> dict[str, tuple[Any, ...]]:
    """Options that one says nothing without, and theirs."""
    found: dict[str, tuple[Any, ...]] = {}
    asked = [name]
    for each in asked:
        for other, values in BRINGS.get(each, {}).items():
            if other not in found and other != name:
                found[other] = values
                asked.append(other)
    return found


def _configuration(name: str, taken: list[Choice]) -> Configuration:
    """A model with these choices and what they bring, at drawn sizes."""
    brought = {each: values[0] for field, _ in taken for each, values in _brought(field).items()}
    draw = random.Random(_place(name, taken))
    values = sized(draw, name, {**brought, **dict(taken)})
    depth = LAYERS_OF_OLDER[0] if name in OLDER else None
    return Configuration(name, Plan.parse(values), depth)
