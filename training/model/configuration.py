"""The shape of a text-to-image transformer, saved beside its weights as `config.json`."""

from typing import Any, ClassVar

from transformers import PreTrainedConfig

from calculator.errors import InputError
from training.model.attention import AttentionKind
from training.model.layout import Layout
from training.run import tables


class TextToImageConfig(PreTrainedConfig):
    """Shape of a `TextToImageTransformer`; the defaults are the 2021 run's.

    Attributes:
        text_vocabulary_size: words the tokenizer knows; the model adds one token for each text
            position, which stands for padding there.
        text_length: text tokens T in every sequence, padding included.
        image_vocabulary_size: codes in the VQ-GAN's codebook.
        image_side: codes in a row and in a column; a picture is `image_side ** 2` codes.
        hidden_size: width D of each of the two residual streams.
        num_hidden_layers: depth, counting layers that share weights once each time they run.
        num_attention_heads: heads H of `head_size` channels.
        feed_forward_multiplier: inner width of the feed-forward, in hidden sizes.
        attention_kinds: kinds of attention, repeated until the last layer.
        last_attention_kind: kind of the last layer.
        convolution_kernel: side of the window of convolutional attention, odd.
        sharing_groups: distinct layers used in turn by all but the last layer, which has weights
            of its own; None gives each layer its own.
        token_shift: mix a part of the channels with the token before, above and to the left.
        reversible: recompute activations from the outputs in the backward pass.
        image_loss_weight: weight of the image loss against the text loss's 1.
        layer_scale: initial factor of every branch; None goes by the layer's own number, see
            `initial_scale`.
        initializer_range: standard deviation of the initial matrices.
        begin_id: text token that opens each sequence.
        padding_id: text token that stands for "no word".
        recipe: name of the run's recipe, which knows the tokenizer; empty where there is none.

    Raises:
        InputError: a value outside its range.
    """

    model_type = "text-to-image-transformer"
    attribute_map: ClassVar[dict[str, str]] = {"vocab_size": "vocabulary_size"}

    text_vocabulary_size: int = 32100
    text_length: int = 256
    image_vocabulary_size: int = 8192
    image_side: int = 32
    hidden_size: int = 1024
    num_hidden_layers: int = 64
    num_attention_heads: int = 16
    head_size: int = 64
    feed_forward_multiplier: int = 4
    attention_kinds: tuple[str, ...] | list[str] = ("row", "column", "row", "row")
    last_attention_kind: str = "convolutional"
    convolution_kernel: int = 5
    sharing_groups: int | None = 4
    token_shift: bool = True
    reversible: bool = True
    image_loss_weight: float = 7.0
    layer_scale: float | None = None
    initializer_range: float = 0.02
    begin_id: int = 0
    padding_id: int = 0
    recipe: str = ""

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call]
        self.attention_kinds = tuple(AttentionKind(kind) for kind in self.attention_kinds)
        self.last_attention_kind = AttentionKind(self.last_attention_kind)
        for field in _POSITIVE:
            if getattr(self, field) < 1:
                raise InputError(field, getattr(self, field), "must be at least 1")
        if self.convolution_kernel < 1 or self.convolution_kernel % 2 == 0:
            raise InputError("convolution_kernel", self.convolution_kernel, "must be odd")
        if not self.attention_kinds:
            raise InputError("attention_kinds", self.attention_kinds, "must name one or more")
        if self.head_size % 2:
            raise InputError("head_size", self.head_size, "must be even, to rotate pairs")
        if self.hidden_size % 4:
            raise InputError("hidden_size", self.hidden_size, "must be a multiple of 4")
        if self.sharing_groups is not None and self.sharing_groups < 1:
            raise InputError("sharing_groups", self.sharing_groups, "must be at least 1, or none")

    @property
    def layout(self) -> Layout:
        """Positions of text and image in a sequence."""
        return Layout(self.text_length, self.image_side)

    @property
    def vocabulary_size(self) -> int:
        """All tokens that have an embedding: words, padding of each position, image codes."""
        return self.text_vocabulary_size + self.text_length + self.image_vocabulary_size

    def attention_kind(self, depth: int) -> AttentionKind:
        """Kind of attention of the layer at `depth`, counted from 0."""
        if depth == self.num_hidden_layers - 1:
            return AttentionKind(self.last_attention_kind)
        return AttentionKind(self.attention_kinds[depth % len(self.attention_kinds)])

    def group(self, depth: int) -> int:
        """Index of the shared weights that the layer at `depth` uses."""
        if self.sharing_groups is None or depth < self.num_hidden_layers - 1:
            return depth if self.sharing_groups is None else depth % self.sharing_groups
        return self.group_count - 1

    @property
    def group_count(self) -> int:
        """Distinct layers: the groups in use, and the last layer's own."""
        if self.sharing_groups is None:
            return self.num_hidden_layers
        return min(self.sharing_groups, self.num_hidden_layers - 1) + 1

    def initial_scale(self, depth: int) -> float:
        """Initial value of the layer scales at `depth`, counted from 0.

        Where `layer_scale` is None: 0.1 in the first 18 layers, 1e-5 in the next 6, then 1e-6.
        CaiT (arXiv:2103.17239, section 4) chooses one of the three for a whole model, by its
        depth; DALLE-pytorch, and so the 2021 run, by each layer's number. It matters: LAMB changes
        a tensor by about its learning rate, relative to its norm, so that a branch at 1e-6 takes
        some 4,600 steps at 2.5e-3 to reach 0.1.
        """
        if self.layer_scale is not None:
            return self.layer_scale
        if depth < 18:
            return 0.1
        return 1e-5 if depth < 24 else 1e-6


def make_config(values: dict[str, Any]) -> TextToImageConfig:
    """The configuration that a ``config.json`` describes: the model's shape, and nothing else.

    Whatever it names of code, kernels or other files is not looked at.

    Raises:
        InputError: a field is not as it must be.
    """
    shape = {
        name: tables.read_value(kind, values[name], name)
        for name, kind in _KINDS.items()
        if name in values
    }
    try:
        config = TextToImageConfig(**shape)
    except InputError:
        raise
    except (TypeError, ValueError) as error:  # such as a kind of attention that there is not
        raise InputError("config", "the file", f"must be of this model ({error})") from error
    _check_sizes(config)
    return config


def _check_sizes(config: TextToImageConfig) -> None:
    for name in _POSITIVE:
        if getattr(config, name) > LARGEST_SIZE:
            raise InputError(name, getattr(config, name), f"must be at most {LARGEST_SIZE:,}")
    if config.layout.positions > LONGEST_SEQUENCE:
        rule = f"must be of at most {LONGEST_SEQUENCE:,} positions with the text"
        raise InputError("image_side", config.image_side, rule)
    for name in ("begin_id", "padding_id"):
        if not 0 <= getattr(config, name) < config.text_vocabulary_size:
            raise InputError(name, getattr(config, name), "must be in the vocabulary")


# What is above these is no model, but a waste of the reader's time and memory.
LARGEST_SIZE = 2**20  # of each field
LONGEST_SEQUENCE = 2**16
_KINDS: dict[str, Any] = {
    name: kind
    for name, kind in TextToImageConfig.__annotations__.items()
    if name != "attribute_map"
} | {"attention_kinds": tuple[str, ...]}

_POSITIVE = (
    "text_vocabulary_size",
    "text_length",
    "image_vocabulary_size",
    "image_side",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "head_size",
    "feed_forward_multiplier",
)
