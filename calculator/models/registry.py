"""The model types that the calculator knows, by name: a literal table."""

from collections.abc import Iterator, MutableMapping
from functools import lru_cache
from importlib import import_module
from typing import Final

from calculator.architecture import Architecture
from calculator.models.model import Model

# Each name's module in this folder, and the class in it.
PLACES: Final = {
    "bert": "bert.Bert",
    "t5": "t5.T5",
    "gpt2": "gpt2.GPT2",
    "gptj": "gptj.GPTJ",
    "dalle": "dalle.Dalle",
    "llama": "llama.Llama",
    "mistral": "mistral.Mistral",
    "ministral3": "mistral.Ministral3",
    "qwen2": "qwen.Qwen2",
    "qwen3": "qwen.Qwen3",
    "albert": "albert.Albert",
    "bloom": "alibi.Bloom",
    "codegen": "gptj.CodeGen",
    "electra": "electra.Electra",
    "esm": "esm.Esm",
    "distilbert": "bert.DistilBert",
    "gpt_neo": "gpt_neo.GPTNeo",
    "gpt_neox": "gpt_neox.GPTNeoX",
    "mpnet": "mpnet.MPNet",
    "mpt": "alibi.Mpt",
    "mt5": "t5.MT5",
    "nemotron": "nemotron.Nemotron",
    "opt": "opt.OPT",
    "phi": "gpt_neox.Phi",
    "roberta": "bert.Roberta",
    "starcoder2": "mistral.Starcoder2",
    "xlm-roberta": "bert.XLMRoberta",
    "phi3": "mistral.Phi3",
    "smollm3": "llama.SmolLM3",
    "granite": "llama.Granite",
    "granitemoe": "granite_moe.GraniteMoe",
    "olmoe": "olmoe.Olmoe",
    "olmo2": "norms_after.Olmo2",
    "olmo3": "norms_after.Olmo3",
    "apertus": "apertus.Apertus",
    "arcee": "llama.Arcee",
    "seed_oss": "llama.SeedOss",
    "ernie4_5": "neighbours.Ernie45",
    "exaone4": "norms_after.Exaone4",
    "gemma": "gemma.Gemma",
    "gemma2": "gemma.Gemma2",
    "gemma3_text": "gemma.Gemma3",
    "gemma4_text": "gemma4.Gemma4",
    "cohere": "neighbours.Cohere",
    "cohere2": "neighbours.Cohere2",
    "glm": "glm.Glm",
    "glm4": "glm.Glm4",
    "hunyuan_v1_dense": "llama.HunyuanDense",
    "olmo": "llama.Olmo",
    "qwen2_moe": "qwen.Qwen2Moe",
    "stablelm": "gpt_neox.StableLm",
    "falcon": "falcon.Falcon",
    "bart": "bart.Bart",
    "mbart": "mbart.MBart",
    "m2m_100": "mbart.M2M100",
    "pegasus": "mbart.Pegasus",
    "marian": "mbart.Marian",
    "vit": "vit.ViT",
    "deberta-v2": "deberta.Deberta",
    "whisper": "bart.Whisper",
    "modernbert": "modernbert.ModernBert",
    "mixtral": "mistral.Mixtral",
    "qwen3_moe": "qwen.Qwen3Moe",
    "qwen3_next": "qwen3_next.Qwen3Next",
    "qwen3_5_text": "qwen3_next.Qwen3_5",
    "qwen3_5_moe_text": "qwen3_next.Qwen3_5Moe",
    "glm4_moe": "deepseek.Glm4Moe",
    "gpt_oss": "gpt_oss.GptOss",
    "deepseek_v2": "deepseek.DeepseekV2",
    "deepseek_v3": "deepseek.DeepseekV3",
}

# Types with the layers of another one, key for key; counted is that one's class.
ALIKE: Final = {
    "camembert": "roberta",
    "kimi_k2": "deepseek_v3",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}


class Types(MutableMapping[str, type[Model]]):
    """Classes by name; a module is imported when its class is asked for: most visits need one."""

    def __init__(self, places: dict[str, str]) -> None:
        self._classes: dict[str, str | type[Model]] = dict(places)

    def __getitem__(self, name: str) -> type[Model]:
        found = self._classes[name]
        if isinstance(found, str):
            module, _, title = found.partition(".")
            kind: type[Model] = getattr(import_module(f"calculator.models.{module}"), title)
            found = self._classes[name] = kind
        return found

    def __setitem__(self, name: str, kind: type[Model]) -> None:
        self._classes[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


TYPES: Final = Types(PLACES)


def type_of(architecture: Architecture) -> type[Model]:
    """The class of an architecture's model."""
    return TYPES[architecture.family]


@lru_cache(maxsize=512)
def build(architecture: Architecture, tied: bool) -> Model:
    """The model of an architecture as a tree of layers."""
    return type_of(architecture).build(architecture, tied)
