"""The models, GPUs and sources that the calculator knows by name: data only."""

from dataclasses import dataclass
from typing import Final

from calculator.architecture import Architecture, Family
from calculator.errors import unknown_name
from calculator.units import MiB


@dataclass(frozen=True, slots=True)
class Source:
    """Where a formula or figure comes from."""

    title: str
    address: str


SOURCES: Final[dict[str, Source]] = {
    "bert": Source(
        "Devlin et al., 2018. BERT: Pre-training of Deep Bidirectional Transformers",
        "https://arxiv.org/abs/1810.04805",
    ),
    "t5": Source(
        "Raffel et al., 2019. Exploring the Limits of Transfer Learning with a Unified "
        "Text-to-Text Transformer",
        "https://arxiv.org/abs/1910.10683",
    ),
    "gpt2": Source(
        "Radford et al., 2019. Language Models are Unsupervised Multitask Learners",
        "https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf",
    ),
    "gpt3": Source(
        "Brown et al., 2020. Language Models are Few-Shot Learners, table 2.1",
        "https://arxiv.org/abs/2005.14165",
    ),
    "gptj": Source(
        "Wang and Komatsuzaki, 2021. GPT-J-6B: A 6 Billion Parameter Autoregressive Language Model",
        "https://github.com/kingoflolz/mesh-transformer-jax",
    ),
    "dalle": Source(
        "Ramesh et al., 2021. Zero-Shot Text-to-Image Generation, appendix B",
        "https://arxiv.org/abs/2102.12092",
    ),
    "together": Source(
        "Borzunov et al., 2022. Training Transformers Together, section 3.1",
        "https://arxiv.org/abs/2207.03481",
    ),
    "transformers": Source(
        "Hugging Face transformers 5.23, the models' source code",
        "https://github.com/huggingface/transformers",
    ),
    "torch": Source(
        "PyTorch 2.13, source code: derivatives.yaml, autograd, torch.optim, the caching allocator",
        "https://github.com/pytorch/pytorch",
    ),
    "autocast": Source(
        "PyTorch documentation, Automatic Mixed Precision: operations by number format",
        "https://docs.pytorch.org/docs/stable/amp.html",
    ),
    "korthikanti": Source(
        "Korthikanti et al., 2022. Reducing Activation Recomputation in Large Transformer Models",
        "https://arxiv.org/abs/2205.05198",
    ),
    "checkpointing": Source(
        "Chen et al., 2016. Training Deep Nets with Sublinear Memory Cost",
        "https://arxiv.org/abs/1604.06174",
    ),
    "revnet": Source(
        "Gomez et al., 2017. The Reversible Residual Network: Backpropagation Without Storing "
        "Activations",
        "https://arxiv.org/abs/1707.04585",
    ),
    "albert": Source(
        "Lan et al., 2019. ALBERT: A Lite BERT, on sharing weights between layers",
        "https://arxiv.org/abs/1909.11942",
    ),
    "flash": Source(
        "Dao et al., 2022. FlashAttention: Fast and Memory-Efficient Exact Attention",
        "https://arxiv.org/abs/2205.14135",
    ),
    "mixed": Source(
        "Micikevicius et al., 2017. Mixed Precision Training",
        "https://arxiv.org/abs/1710.03740",
    ),
    "adam": Source(
        "Kingma and Ba, 2014. Adam: A Method for Stochastic Optimization",
        "https://arxiv.org/abs/1412.6980",
    ),
    "lamb": Source(
        "You et al., 2019. Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
        "https://arxiv.org/abs/1904.00962",
    ),
    "adafactor": Source(
        "Shazeer and Stern, 2018. Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
        "https://arxiv.org/abs/1804.04235",
    ),
    "lion": Source(
        "Chen et al., 2023. Symbolic Discovery of Optimization Algorithms",
        "https://arxiv.org/abs/2302.06675",
    ),
    "8bit": Source(
        "Dettmers et al., 2021. 8-bit Optimizers via Block-wise Quantization",
        "https://arxiv.org/abs/2110.02861",
    ),
    "bitsandbytes": Source(
        "bitsandbytes 0.50, source code: optim/optimizer.py",
        "https://github.com/bitsandbytes-foundation/bitsandbytes",
    ),
    "offload": Source(
        "Ren et al., 2021. ZeRO-Offload: Democratizing Billion-Scale Model Training",
        "https://arxiv.org/abs/2101.06840",
    ),
    "hivemind": Source(
        "hivemind 1.1.12, source code: averaging, optim",
        "https://github.com/learning-at-home/hivemind",
    ),
    "karimireddy": Source(
        "Karimireddy, He and Jaggi, 2021. Learning from History for Byzantine Robust Optimization, "
        "centered clipping",
        "https://arxiv.org/abs/2012.10333",
    ),
    "gorbunov": Source(
        "Gorbunov et al., 2022. Secure Distributed Training at Scale, CenteredClip",
        "https://arxiv.org/abs/2106.11257",
    ),
    "yin": Source(
        "Yin et al., 2018. Byzantine-Robust Distributed Learning: Towards Optimal Statistical "
        "Rates",
        "https://arxiv.org/abs/1803.01498",
    ),
    "diskin": Source(
        "Diskin et al., 2021. Distributed Deep Learning in Open Collaborations",
        "https://arxiv.org/abs/2106.10207",
    ),
    "nvidia": Source(
        "NVIDIA's product pages and data sheets, memory size",
        "https://www.nvidia.com/en-us/data-center/products/",
    ),
}


def _bert(name: str, title: str, layers: int, hidden_size: int, heads: int) -> Architecture:
    return Architecture(
        name=name,
        title=title,
        family=Family.BERT,
        layers=layers,
        hidden_size=hidden_size,
        heads=heads,
        head_size=64,
        feed_forward_size=4 * hidden_size,
        vocabulary_size=30_522,
        positions=512,
        sequence_length=512,
        dropout=0.1,
        token_types=2,
        source="bert",
        note="Counted with the masked-language-model head (BertForMaskedLM).",
    )


def _t5(
    name: str, title: str, layers: int, hidden_size: int, heads: int, head_size: int, ff: int
) -> Architecture:
    return Architecture(
        name=name,
        title=title,
        family=Family.T5,
        layers=layers,
        decoder_layers=layers,
        hidden_size=hidden_size,
        heads=heads,
        head_size=head_size,
        feed_forward_size=ff,
        vocabulary_size=32_128,
        positions=0,
        sequence_length=512,
        target_length=512,
        dropout=0.1,
        relative_buckets=32,
        source="t5",
        note="Version 1.0: ReLU, tied embeddings.",
    )


def _gpt(
    name: str,
    title: str,
    layers: int,
    hidden_size: int,
    heads: int,
    positions: int,
    source: str,
    note: str = "",
) -> Architecture:
    return Architecture(
        name=name,
        title=title,
        family=Family.GPT2,
        layers=layers,
        hidden_size=hidden_size,
        heads=heads,
        head_size=hidden_size // heads,
        feed_forward_size=4 * hidden_size,
        vocabulary_size=50_257,
        positions=positions,
        sequence_length=positions,
        dropout=0.1,
        source=source,
        note=note,
    )


def _gpt3(
    name: str, title: str, layers: int, hidden_size: int, heads: int, note: str = ""
) -> Architecture:
    counted = "Counted as transformers' GPT-2 class with GPT-3's sizes: dense attention throughout."
    return _gpt(name, title, layers, hidden_size, heads, 2048, "gpt3", f"{counted} {note}".strip())


_GPT3_XL_NOTE = (
    "The paper's table gives 24 heads of 128 at a width of 2,048, which do not multiply; "
    "16 heads of 128 are counted."
)
_GPT3_13B_NOTE = (
    "The paper's table gives a width of 5,140 with 40 heads of 128; 5,120 = 40 x 128 is counted."
)

MODELS: Final[dict[str, Architecture]] = {
    model.name: model
    for model in (
        _bert("bert-base", "BERT Base", 12, 768, 12),
        _bert("bert-large", "BERT Large", 24, 1024, 16),
        _t5("t5-small", "T5 Small", 6, 512, 8, 64, 2048),
        _t5("t5-base", "T5 Base", 12, 768, 12, 64, 3072),
        _t5("t5-large", "T5 Large", 24, 1024, 16, 64, 4096),
        _t5("t5-3b", "T5 3B", 24, 1024, 32, 128, 16_384),
        _t5("t5-11b", "T5 11B", 24, 1024, 128, 128, 65_536),
        _gpt("gpt2-s", "GPT-2 Small", 12, 768, 12, 1024, "gpt2"),
        _gpt("gpt2-m", "GPT-2 Medium", 24, 1024, 16, 1024, "gpt2"),
        _gpt("gpt2-l", "GPT-2 Large", 36, 1280, 20, 1024, "gpt2"),
        _gpt("gpt2-xl", "GPT-2 XL", 48, 1600, 25, 1024, "gpt2"),
        _gpt3("gpt3-s", "GPT-3 Small", 12, 768, 12),
        _gpt3("gpt3-m", "GPT-3 Medium", 24, 1024, 16),
        _gpt3("gpt3-l", "GPT-3 Large", 24, 1536, 16),
        _gpt3("gpt3-xl", "GPT-3 XL", 24, 2048, 16, _GPT3_XL_NOTE),
        _gpt3("gpt3-3b", "GPT-3 2.7B", 32, 2560, 32),
        _gpt3("gpt3-7b", "GPT-3 6.7B", 32, 4096, 32),
        _gpt3("gpt3-13b", "GPT-3 13B", 40, 5120, 40, _GPT3_13B_NOTE),
        _gpt3("gpt3-175b", "GPT-3 175B", 96, 12_288, 96),
        Architecture(
            name="gpt-j-6b",
            title="GPT-J 6B",
            family=Family.GPTJ,
            layers=28,
            hidden_size=4096,
            heads=16,
            head_size=256,
            feed_forward_size=16_384,
            vocabulary_size=50_400,
            positions=0,
            sequence_length=2048,
            dropout=0.0,
            tied_embeddings=False,
            rotary_size=64,
            source="gptj",
        ),
        Architecture(
            name="dalle-12b",
            title="DALL-E 12B",
            family=Family.DALLE,
            layers=64,
            hidden_size=3968,
            heads=62,
            head_size=64,
            feed_forward_size=4 * 3968,
            vocabulary_size=16_384,
            positions=0,
            sequence_length=1280,
            dropout=0.0,
            text_length=256,
            image_side=32,
            image_vocabulary_size=8192,
            source="dalle",
            note="OpenAI's sizes in our own class, with a plain GELU feed-forward layer; the "
            "original's code is not public.",
        ),
        Architecture(
            name="dalle-together",
            title="DALL-E of Training Transformers Together",
            family=Family.DALLE,
            layers=64,
            hidden_size=1024,
            heads=16,
            head_size=64,
            feed_forward_size=4096,
            vocabulary_size=32_100,
            positions=0,
            sequence_length=1280,
            dropout=0.0,
            text_length=256,
            image_side=32,
            image_vocabulary_size=8192,
            gated=True,
            own_last_layer=True,
            sharing_groups=4,
            reversible=True,
            source="together",
            note="4 groups of shared layers and a last layer of its own; reversible by default.",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics card: its memory in bytes and its generation."""

    name: str
    title: str
    memory: int
    generation: str
    note: str = ""


GPUS: Final[dict[str, Gpu]] = {
    name: Gpu(name, title, mebibytes * MiB, generation, note)
    for name, title, mebibytes, generation, note in (
        ("t4", "Tesla T4 16 GB", 15_360, "Turing", "free in Colab and Kaggle notebooks"),
        ("p100", "Tesla P100 16 GB", 16_384, "Pascal", "free in Kaggle notebooks"),
        ("v100-16", "Tesla V100 16 GB", 16_384, "Volta", ""),
        ("v100-32", "Tesla V100 32 GB", 32_768, "Volta", ""),
        ("gtx-1060", "GeForce GTX 1060 6 GB", 6_144, "Pascal", ""),
        ("gtx-1080-ti", "GeForce GTX 1080 Ti 11 GB", 11_264, "Pascal", ""),
        ("rtx-2080-ti", "GeForce RTX 2080 Ti 11 GB", 11_264, "Turing", ""),
        ("rtx-3060", "GeForce RTX 3060 12 GB", 12_288, "Ampere", ""),
        ("rtx-3070", "GeForce RTX 3070 8 GB", 8_192, "Ampere", ""),
        ("rtx-3090", "GeForce RTX 3090 24 GB", 24_576, "Ampere", ""),
        ("rtx-4060", "GeForce RTX 4060 8 GB", 8_188, "Ada", ""),
        ("rtx-4060-ti-16", "GeForce RTX 4060 Ti 16 GB", 16_380, "Ada", ""),
        ("rtx-4070", "GeForce RTX 4070 12 GB", 12_282, "Ada", ""),
        ("rtx-4080", "GeForce RTX 4080 16 GB", 16_376, "Ada", ""),
        ("rtx-4090", "GeForce RTX 4090 24 GB", 24_564, "Ada", ""),
        ("rtx-5090", "GeForce RTX 5090 32 GB", 32_607, "Blackwell", ""),
        ("l4", "L4 24 GB", 23_034, "Ada", "in paid Colab"),
        ("a10g", "A10G 24 GB", 23_028, "Ampere", ""),
        ("a6000", "RTX A6000 48 GB", 49_140, "Ampere", ""),
        ("l40s", "L40S 48 GB", 46_068, "Ada", ""),
        ("a100-40", "A100 40 GB", 40_960, "Ampere", "in paid Colab"),
        ("a100-80", "A100 80 GB", 81_920, "Ampere", ""),
        ("h100", "H100 80 GB", 81_559, "Hopper", ""),
        ("h200", "H200 141 GB", 143_771, "Hopper", ""),
    )
}


def find_model(name: str) -> Architecture:
    """The model of that name, or `InputError` with the closest name that exists."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    return MODELS[name]


def find_gpu(name: str) -> Gpu:
    """The GPU of that name, or `InputError` with the closest name that exists."""
    if name not in GPUS:
        raise unknown_name("gpu", name, GPUS)
    return GPUS[name]
