"""Names that people have for models: addresses, nicknames, and variants of one shape."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_ADDRESS: Final = re.compile(r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/")
_HUB_ID: Final = re.compile(r"(?!.*(?:--|\.\.))[\w.-]{1,96}(?:/[\w.-]{1,96})?", re.ASCII)
# words in names of variants whose tensors have the same shapes: how they were trained further, the
# form in which their weights are stored, and months of the same model
VARIANTS: Final = re.compile(
    r"instruct|it|chat|pt|hf|thinking|2507|meta|dpo|sft|rlhf|unsloth|dynamic|deduped|qat|ud|i1|"
    r"abliterated|bnb|nf4|gguf|awq|gptq|aqlm|mlx|exl[23]|hqq|autoround|fp8|bf16|fp16|f16|(?:nv|mx)fp4|"
    r"quantized(?:\.w\d+a\d+)?|(?:int)?[2-8]bits?|int[48]|w\d+a\d+|i?q\d(?:_\w+)?"
)
_SHORTEST: Final = 2  # signs of a name that many others begin with
_RUN: Final = re.compile(r"(?:ollama (?:run|pull) )?(.*?)(?:\.gguf)?", re.IGNORECASE | re.DOTALL)
_PACKED: Final = re.compile(
    r"\b(?:bnb|4bit|awq|gptq|int4|fp8|int8|8bit|gguf|mlx|nvfp4|mxfp4|exl[23]|quantized|q\d\w*)\b",
    re.IGNORECASE,
)
_SIZE: Final = re.compile(
    r"(?<!\d)(?<!\d\.)\d+(?:\.\d+)?x?\d*\.?\d*[bm](?![a-z])|"
    r"\b(?:nano|micro|tiny|mini|small|medium|large|xl|xxl)\b"
)


def hub_id(text: str) -> str:
    """The name on the Hub that a text is, or an address there has; empty if it is neither.

    >>> hub_id("https://huggingface.co/Qwen/Qwen2.5-7B/tree/main")
    'Qwen/Qwen2.5-7B'
    >>> hub_id("../models/mine")
    ''
    """
    begun = _ADDRESS.match(text)
    if begun:
        text = "/".join(re.split(r"[/?#]", text[begun.end() :])[:2]).rstrip("/")
        owner, _, name = text.partition("/")
        text = owner if name in ("tree", "blob", "resolve", "raw", "discussions") else text
    return text if _HUB_ID.fullmatch(text) else ""


def same_shape(text: str, known: Iterable[str]) -> str | None:
    """A known name with the same shapes of weights, if the text names a variant of one.

    >>> same_shape("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", ["meta-llama/Llama-3.1-8B"])
    'meta-llama/Llama-3.1-8B'
    >>> same_shape("Llama-3.1-8B-Instruct", ["meta-llama/Llama-3.3-70B-Instruct"])
    """
    return _index(tuple(known)).get(shape_key(hub_id(text) or text))


@lru_cache(maxsize=2)
def _index(known: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in known:
        found.setdefault(shape_key(name), name)
    return found


def shape_key(name: str) -> str:
    """A name without owner, signs, and the words of variants; "base" may be a size, as in BERT's.

    >>> shape_key("Qwen/Qwen2.5-7B-Instruct-GGUF"), shape_key("qwen 2.5 7b")
    ('qwen2.57b', 'qwen2.57b')
    """
    found = _RUN.fullmatch(name.lower().rpartition("/")[2])
    words = re.split(r"[-\s:]+", found[1] if found else "")
    sized = any(re.fullmatch(r"(?:\d+x)?\d+(?:\.\d+)?[bm]|\d{4}", word) for word in words)
    kept = (w for w in words if not VARIANTS.fullmatch(w) and (w != "base" or not sized))
    return "".join(kept).replace("_", "")


def describe_shape(text: str, name: str) -> str:
    """A sentence on the model that is counted for another of the same shape."""
    said = hub_id(text) or text
    words = f"{said} has the same shape as {name}, which is counted."
    if _PACKED.search(said):
        words += " Its packed weights are a choice of the plan (quantization)."
    return words


def of_the_same_size(text: str, known: Iterable[str]) -> list[str]:
    """The known names that have no other size than a text.

    >>> of_the_same_size("Llama-3.1-8B-Chat", ["Llama-3.3-70B", "Meta-Llama-3-8B", "phi-4"])
    ['Meta-Llama-3-8B']
    """
    sizes = set(_SIZE.findall(text.lower()))
    return [name for name in known if not sizes or sizes == set(_SIZE.findall(name.lower()))]


def is_of_the_line(text: str, name: str) -> bool:
    """True if a text has the first word of a known name, with no other version of it.

    The word may begin the text misspelled: two letters changed places, or one is missing or more.

    >>> [is_of_the_line(text, "google/gemma-2-9b") for text in ("gemma-9b", "glm-4-9b", "gemma3n")]
    [True, False, False]
    >>> [is_of_the_line(text, "bert-large") for text in ("bret-large", "bertt-large", "bart-large")]
    [True, True, False]
    """
    known, version = _line(name.lower().rpartition("/")[2].removeprefix("meta-"))
    typed = (hub_id(text) or text).lower().rpartition("/")[2]
    if not known:
        return False
    if found := re.search(rf"(?<![a-z]){known}(?![a-z]).*", typed):
        return _line(found[0])[1] in ("", version)
    letters, typed_version = _line(typed)
    return _is_misspelled(letters, known) and typed_version in ("", version)


def _is_misspelled(word: str, known: str) -> bool:
    shorter, longer = sorted((word, known), key=len)
    if len(shorter) < _SHORTEST or len(longer) - len(shorter) > 1:
        return False
    one_less = (longer[:place] + longer[place + 1 :] for place in range(len(longer)))
    return sorted(word) == sorted(known) or shorter in one_less


def _line(name: str) -> tuple[str, str]:
    """The letters that a name begins with, and its version."""
    words = re.match(r"([a-z]*)[-_\s]?v?(\d[\d.]*[a-z]?(?![a-z])|)", name)
    letters, version = words.groups() if words else ("", "")
    return letters, "" if _SIZE.fullmatch(version) else version


def begins_so(text: str, name: str) -> bool:
    """True if a known name begins with a text, where the signs do not count.

    >>> begins_so("llama 3", "meta-llama/Meta-Llama-3-8B"), begins_so("p", "microsoft/phi-4")
    (True, False)
    """
    key = shape_key(text)
    return len(key) >= _SHORTEST and shape_key(name).startswith(key)


def has_size(text: str) -> bool:
    """True if a name says how many parameters its model has."""
    return bool(_SIZE.search(text.lower()))
