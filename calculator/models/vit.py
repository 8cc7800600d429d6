"""ViT (transformers' ViTForImageClassification).

Source: transformers (models/vit/modeling_vit.py).
"""

from dataclasses import dataclass, replace
from functools import partial

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64, DType
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.mode import SEQUENCE, Mode
from calculator.autograd.sizes import ONE, Shape, size, without
from calculator.configuration import LONGEST_SEQUENCE, Configuration, labels_of
from calculator.errors import InputError
from calculator.layers.attention import Attended, attend, eager_core, heads_of, joined
from calculator.layers.basic import LayerNorm, Linear
from calculator.layers.convolution import Convolution
from calculator.layers.feed_forward import FeedForward
from calculator.layers.layer import Layer
from calculator.layers.loss import masked_loss
from calculator.layers.stack import Block, Stack
from calculator.models.keys import read_shape
from calculator.models.model import Model
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN
from calculator.task import Task

CLASSES = size("vocabulary_size")
CHANNELS = size("channels")
SIDE = size("image_size")
PATCH = size("patch_size")
PATCHES = without(SEQUENCE, ONE)
LONGEST_SIDE = int(LONGEST_SEQUENCE**0.5)


@dataclass(eq=False)
class ViTBlock(Block):
    """Norm and attention, norm and feed-forward layer."""

    biased: bool

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN)
        self.query = Linear(HIDDEN, HEADS * HEAD, self.biased, name="q_proj")
        self.key = Linear(HIDDEN, HEADS * HEAD, self.biased, name="k_proj")
        self.value = Linear(HIDDEN, HEADS * HEAD, self.biased, name="v_proj")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="o_proj")
        self.norm_2 = LayerNorm(HIDDEN)
        self.feed_forward = FeedForward(HIDDEN, FEED, ("fc1", "fc2"), op.gelu)

    def __call__(self, x: Tensor) -> Tensor:
        """The residual stream after the layer; eager code's probabilities are held to its end."""
        h = self.norm_1(x)
        h, _probabilities = self.attention(h)
        h = op.dropout(h)
        x = h = op.add(h, x)
        h = self.norm_2(h)
        h = self.feed_forward(h)
        return op.add(h, x)

    def attention(self, x: Tensor) -> Attended:
        """The weighted sum, and the probabilities."""
        q, k, v = (heads_of(layer(x), HEADS, HEAD) for layer in (self.query, self.key, self.value))
        out, probabilities = attend(q, k, v, partial(eager_core, wide=True), causal=False)
        out = self.output(joined(out))
        del q, k, v  # held until here
        return out, probabilities


@dataclass(eq=False)
class Embeddings(Layer):
    """Patches by a convolution, a token for the class before them, and learned positions."""

    def __post_init__(self) -> None:
        whole = (ONE, SEQUENCE, HIDDEN)
        self.first = Parameter((ONE, ONE, HIDDEN), inside=whole)
        self.positions = Parameter(whole)
        self.patches = Convolution(CHANNELS, HIDDEN, (PATCH, PATCH), reads_input=True)

    def __call__(self, pixels: Tensor) -> Tensor:
        """(batch, channels, side, side) -> (batch, length, hidden)."""
        t, batch = pixels.tape, pixels.shape[0]
        x = op.transpose(self.patches(pixels, PATCHES), 1, 2)
        first: Tensor = t.weight(self.first)
        if not t.mode.one_sequence:
            first = op.expand(first, batch, ONE, HIDDEN)
        x = op.concatenate([first, x], batch, SEQUENCE, HIDDEN)
        x = op.add(x, t.weight(self.positions))
        return op.dropout(x)


@dataclass(eq=False)
class ViT(Model):
    """Embeddings, blocks, norm, and the classes' layer on the first token."""

    embeddings: Embeddings
    layers: Stack[ViTBlock]

    can_untie = False
    own_task = Task.IMAGE
    language_head = ("head",)
    fixed_length = "an image's patches and one token for the class"
    has_reversible_class = False

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.head = Linear(HIDDEN, CLASSES, name="classifier")

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        found = read_shape(cls, c, name)
        side, patch = c.size("image_size", 224, most=LONGEST_SIDE), found.numbers["patch_size"]
        if side < patch:
            raise InputError("patch_size", patch, f"must be at most the image's {side}")
        return replace(
            found,
            vocabulary_size=labels_of(c),
            sequence_length=(side // patch) ** 2 + 1,
            more=(("image_size", side), *found.more),
        )

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "ViT":
        """The tree for an architecture; nothing could be tied."""
        assert tied
        return cls(
            Embeddings(), Stack((ViTBlock(architecture.has("qkv_bias")),), architecture.layers)
        )

    def inputs(self, mode: Mode) -> tuple[Shape, Shape]:
        """Pixels and classes."""
        return (mode.batch, CHANNELS, SIDE, SIDE), (mode.batch,)

    def formats(self, mode: Mode) -> tuple[DType, DType]:
        """Pixels in the weights' format."""
        return mode.weights, INT64

    def forward(self, pixels: Tensor, labels: Tensor) -> Tensor:
        """The loss of one micro-batch."""
        embedded = self.embeddings(pixels)
        x = self.layers(embedded)
        x = self.norm(x)
        del embedded  # held until here
        with x.tape.in_layer("head", 0):
            logits = self.head(op.part(x, pixels.shape[0], HIDDEN))
        return masked_loss(logits, labels)
