"""The options of the command that trains in a shell script, read and never run."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from calculator.doors.names import COMPUTED

# what starts a program once for each GPU, and its options that say so
_LAUNCHERS: Final = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run")
_PROCESSES: Final = ("nproc_per_node", "num_gpus", "num_processes")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?:\[@\])?(?::?-([^}]*))?\}|(\w+))")
_SET: Final = re.compile(
    r"^\s*(?:export\s+|local\s+)?(\w+)=(?:\(([^)]*)\)|(\S*|\"[^\"]*\"))", re.MULTILINE
)
Words = list[str]


def read_command(text: str) -> dict[str, object]:
    """The options of the command with the most of them, by name, and the processes it starts.

    Variables stand for the values that the script gives them, or for their defaults; what is
    computed is `COMPUTED`.

    >>> read_command("torchrun --nproc_per_node 2 train.py --bf16 True --optim $OPTIM")
    {'num_processes': '2', 'bf16': 'True', 'optim': '(computed)'}

    Raises:
        ValueError: without a command that has options.
    """
    whole = re.sub(r"\\\r?\n", " ", text)
    values = {name: items or one for name, items, one in _SET.findall(whole)}
    commands = [words for line in whole.splitlines() if (words := _words(line, values))]
    command = max(commands, key=_options, default=[])
    if not _options(command):
        raise ValueError("has no command with options")
    return dict(_parts(command))


def _options(words: Words) -> int:
    return sum(word.startswith("--") for word in words)


def _words(line: str, values: Mapping[str, str]) -> Words:
    """A line's words with the values of variables; none for a line that is no command."""
    try:
        given = shlex.split(line, comments=True)
        return [word for one in given for word in _filled(one, values)]
    except ValueError:
        return []


def _filled(word: str, values: Mapping[str, str], depth: int = 3) -> Words:
    """A word whose variables have values: those of a list are words of their own."""
    if whole := _VARIABLE.fullmatch(word):
        found = values.get(whole[1] or whole[3], whole[2])
        if found and depth and not found.startswith("$("):
            inner = shlex.split(found, comments=True)
            return [one for item in inner for one in _filled(item, values, depth - 1)]
        return [COMPUTED]
    if "$(" in word or "`" in word:
        return [COMPUTED]
    return [_VARIABLE.sub(lambda one: " ".join(_filled(one[0], values, depth)), word)]


def _parts(command: Words) -> Iterator[tuple[str, object]]:
    """The launcher's options that matter, and all of the program."""
    starts = [at for at, word in enumerate(command) if word.rpartition("/")[2] in _LAUNCHERS]
    at = starts[0] + 1 if starts else 0
    program = next(
        (n for n, word in enumerate(command[at:], at) if word.endswith(".py") or word == "-m"), at
    )
    launcher = options_of(command[at:program]) if starts else {}
    settings = (word.partition("=") for word in command if re.match(r"[A-Z_]+=", word))
    launcher = {**{name.lower(): value for name, _, value in settings}, **launcher}
    counts = [launcher[name] for name in _PROCESSES if name in launcher]
    if counts:
        yield "num_processes", _times(counts[0], launcher.get("nnodes", 1))
    if "config_file" in launcher:
        yield "deepspeed", launcher["config_file"]
    if launcher.get("mixed_precision") in ("bf16", "fp16"):
        yield str(launcher["mixed_precision"]), "true"
    yield from options_of(command[program if starts else 0 :]).items()


def _times(processes: object, machines: object) -> object:
    """All processes, where both numbers are."""
    both = f"{processes} {machines}".split()
    return str(int(both[0]) * int(both[1])) if all(map(str.isdigit, both)) else processes


def options_of(words: Sequence[str]) -> dict[str, object]:
    """Keys and values of options, as Python's names; one without a value is true.

    >>> options_of(["--bf16", "--lora_target_modules", "q_proj", "v_proj", "--max-steps=3"])
    {'bf16': True, 'lora_target_modules': ['q_proj', 'v_proj'], 'max_steps': '3'}
    """
    found: dict[str, Words] = {}
    values: Words = []
    for word in words:
        if word.startswith("--"):
            key, _, value = word[2:].partition("=")
            found[key.replace("-", "_")] = values = [value] if value else []
        elif word in ("|", ">", ">>", "2>&1", "&", "&&", ";", "2>"):
            break
        else:
            values.append(word)
    return {name: it if len(it) > 1 else it[0] if it else True for name, it in found.items()}
