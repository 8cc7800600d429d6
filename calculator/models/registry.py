"""The model types that the calculator knows, by name: a literal table."""

from functools import lru_cache
from typing import Final

from calculator.architecture import Architecture
from calculator.models.bart import Bart
from calculator.models.bert import Bert
from calculator.models.bloom import Bloom
from calculator.models.codegen import CodeGen
from calculator.models.cohere2 import Cohere2
from calculator.models.dalle import Dalle
from calculator.models.deberta import Deberta
from calculator.models.deepseek_v2 import DeepseekV2
from calculator.models.deepseek_v3 import DeepseekV3
from calculator.models.distilbert import DistilBert
from calculator.models.falcon import Falcon
from calculator.models.gemma import Gemma
from calculator.models.gemma2 import Gemma2
from calculator.models.gemma3 import Gemma3
from calculator.models.gemma4 import Gemma4
from calculator.models.glm4_moe import Glm4Moe
from calculator.models.gpt2 import GPT2
from calculator.models.gpt_neox import GPTNeoX
from calculator.models.gpt_oss import GptOss
from calculator.models.gptj import GPTJ
from calculator.models.granite import Granite
from calculator.models.llama import Llama
from calculator.models.measured import Technique
from calculator.models.ministral3 import Ministral3
from calculator.models.mistral import Mistral
from calculator.models.mixtral import Mixtral
from calculator.models.model import Model
from calculator.models.modernbert import ModernBert
from calculator.models.mpt import Mpt
from calculator.models.olmo2 import Olmo2
from calculator.models.opt import OPT
from calculator.models.phi import Phi
from calculator.models.phi3 import Phi3
from calculator.models.qwen2 import Qwen2
from calculator.models.qwen3 import Qwen3
from calculator.models.qwen3_5 import Qwen3_5
from calculator.models.qwen3_5_moe import Qwen3_5Moe
from calculator.models.qwen3_moe import Qwen3Moe
from calculator.models.qwen3_next import Qwen3Next
from calculator.models.roberta import Roberta, XLMRoberta
from calculator.models.smollm3 import SmolLM3
from calculator.models.starcoder2 import Starcoder2
from calculator.models.t5 import MT5, T5
from calculator.models.vit import ViT
from calculator.models.whisper import Whisper

TYPES: Final[dict[str, type[Model]]] = {
    "bert": Bert,
    "t5": T5,
    "gpt2": GPT2,
    "gptj": GPTJ,
    "dalle": Dalle,
    "llama": Llama,
    "mistral": Mistral,
    "ministral3": Ministral3,
    "qwen2": Qwen2,
    "qwen3": Qwen3,
    "bloom": Bloom,
    "codegen": CodeGen,
    "distilbert": DistilBert,
    "gpt_neox": GPTNeoX,
    "mpt": Mpt,
    "mt5": MT5,
    "opt": OPT,
    "phi": Phi,
    "roberta": Roberta,
    "starcoder2": Starcoder2,
    "xlm-roberta": XLMRoberta,
    "phi3": Phi3,
    "smollm3": SmolLM3,
    "granite": Granite,
    "olmo2": Olmo2,
    "gemma": Gemma,
    "gemma2": Gemma2,
    "gemma3_text": Gemma3,
    "gemma4_text": Gemma4,
    "cohere2": Cohere2,
    "falcon": Falcon,
    "bart": Bart,
    "vit": ViT,
    "deberta-v2": Deberta,
    "whisper": Whisper,
    "modernbert": ModernBert,
    "mixtral": Mixtral,
    "qwen3_moe": Qwen3Moe,
    "qwen3_next": Qwen3Next,
    "qwen3_5_text": Qwen3_5,
    "qwen3_5_moe_text": Qwen3_5Moe,
    "glm4_moe": Glm4Moe,
    "gpt_oss": GptOss,
    "deepseek_v2": DeepseekV2,
    "deepseek_v3": DeepseekV3,
}


def type_of(architecture: Architecture) -> type[Model]:
    """The class of an architecture's model."""
    return TYPES[architecture.family]


def not_measured(technique: Technique, family: str) -> str:
    """Words for a refusal: the types that a technique was measured for, if this one is none."""
    if technique in TYPES[family].measured:
        return ""
    names = [name for name, kind in TYPES.items() if technique in kind.measured]
    return f"measured for {', '.join(names)}, not for {family}"


@lru_cache(maxsize=512)
def build(architecture: Architecture, tied: bool) -> Model:
    """The model of an architecture as a tree of layers."""
    return type_of(architecture).build(architecture, tied)
