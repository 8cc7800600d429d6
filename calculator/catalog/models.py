"""The project's original models, by their short names: data only."""

from typing import Final

from calculator.architecture import Architecture


def _bert(name: str, title: str, layers: int, hidden_size: int, heads: int) -> Architecture:
    return Architecture(
        name=name,
        title=title,
        family="bert",
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
        family="t5",
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
        family="gpt2",
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
            family="gptj",
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
            family="dalle",
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
            title="DALL-E of the 2021 run",
            family="dalle",
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

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "BERT": ("bert-base", "bert-large"),
    "T5": ("t5-small", "t5-base", "t5-large", "t5-3b", "t5-11b"),
    "GPT-2": ("gpt2-s", "gpt2-m", "gpt2-l", "gpt2-xl"),
    "GPT-3": (
        *("gpt3-s", "gpt3-m", "gpt3-l", "gpt3-xl"),
        *("gpt3-3b", "gpt3-7b", "gpt3-13b", "gpt3-175b"),
    ),
    "GPT-J": ("gpt-j-6b",),
    "DALL-E": ("dalle-12b", "dalle-together"),
}
