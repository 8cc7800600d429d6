"""ESM-2 (transformers' EsmForMaskedLM): an encoder of proteins with rotary positions.

Source: transformers (models/esm/modeling_esm.py).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32, INT64, wider
from calculator.autograd.graph import Made, Parameter, Tensor
from calculator.autograd.mode import Attention
from calculator.autograd.sizes import ONE, size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, eager_core, heads_of, joined, selectively
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.grouped import Held, Shared
from calculator.layers.heads import FirstToken, Heads, Pooled
from calculator.layers.layer import Buffer, Layer, parameters_of
from calculator.layers.pairs import task_heads
from calculator.layers.rotary import Rotary, positions_of
from calculator.layers.stack import Block, Stack
from calculator.models.masked import MaskedModel
from calculator.models.modernbert import attended, turned
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, VOCABULARY
from calculator.parts import Phase

PLACES = size("own_positions")


def gelu(x: Tensor) -> Tensor:
    """x / 2 (1 + erf(x / sqrt 2)), in plain operations."""
    return op.multiply(op.scale(x), op.shift(error_function(op.scale(x))))


def error_function(x: Tensor) -> Tensor:
    """erf(x): keeps its input; backward makes the bell's square, sign, power and height."""
    made = Made(x.shape, x.dtype)
    return x.tape.operation([x], x.shape, x.dtype, saves=[x], scratch=[made] * 4)


@dataclass(eq=False)
class EsmAttention(Layer):
    """Norm, attention of scaled and turned heads, its output layer and sum with the stream."""

    def __post_init__(self) -> None:
        self.query = Linear(HIDDEN, HEADS * HEAD, name="query")
        self.key = Linear(HIDDEN, HEADS * HEAD, name="key")
        self.value = Linear(HIDDEN, HEADS * HEAD, name="value")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="attention.output.dense")
        self.norm = LayerNorm(HIDDEN)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """(batch, length, hidden) -> the same."""
        normed = self.norm(x)
        out, _probabilities = self.mixed(normed, held)
        out = self.output(out)
        out = op.dropout(out)
        out = op.add(out, x)
        del normed  # held until here
        return out

    def mixed(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        q, k, v = (heads_of(layer(x), HEADS, HEAD) for layer in (self.query, self.key, self.value))
        q = op.scale(q)
        turned_q, turned_k = turned(q, held.tables), turned(k, held.tables)
        q, k = op.cast(turned_q, q.dtype), op.cast(turned_k, k.dtype)
        del turned_q, turned_k
        out, probabilities = selectively(core, q, k, v)
        out = joined(out)
        del q, k, v  # held until here
        return out, probabilities


def core(q: Tensor, k: Tensor, v: Tensor) -> Attended:
    """Attention to both sides; eager code's softmax is in the format of the scores."""
    if q.tape.mode.attention is Attention.EAGER:
        return eager_core(q, k, v)
    return attended(q, k, v, None)


@dataclass(eq=False)
class EsmBlock(Block):
    """Norm and attention, norm and feed-forward layer."""

    def __post_init__(self) -> None:
        self.attention = EsmAttention()
        self.expand = Linear(HIDDEN, FEED, name="intermediate.dense")
        self.contract = Linear(FEED, HIDDEN, name="output.dense")
        self.norm = LayerNorm(HIDDEN)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer."""
        x = self.attention(x, held)
        normed = self.norm(x)
        h = self.expand(normed)
        h = gelu(h)
        out = op.dropout(self.contract(h))
        out = op.add(out, x)
        del normed, h  # held until here
        return out

    def handed(self, shared: Shared) -> tuple[Held]:
        """The rotary tables."""
        return (shared.of(False),)


@dataclass(eq=False)
class EsmEmbeddings(Layer):
    """Words, scaled for the share of masked ones, which are zeros."""

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.position_indices = Buffer((ONE, PLACES), INT64)

    def __call__(self, ids: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, hidden)."""
        t = ids.tape
        places = t.empty(ids.shape, INT64)  # counted from the token ids, held to the end
        words = self.words(ids)
        x = op.masked_fill(words, t.empty((*ids.shape, ONE), BOOL))
        share = t.empty((ids.shape[0],), FLOAT32)
        x = divided(op.scale(x), t.like(share))
        x = op.cast(x, words.dtype)
        del places, words, share  # held until here
        return x


def divided(x: Tensor, numbers: Tensor) -> Tensor:
    """x divided by a number in 32 bits of each sequence: keeps the numbers."""
    out = Made(x.shape, wider(x.dtype, numbers.dtype))
    rules = [Made(x.shape, x.dtype)]
    return x.tape.operation([x], out.shape, out.dtype, saves=[numbers], rules=rules)


class OneTable(Rotary):
    """Frequencies without a copy beside them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.originals = ()


@dataclass(eq=False)
class Esm(MaskedModel):
    """Embeddings, blocks, norm, and the masked-language-model head with a bias of its own."""

    embeddings: EsmEmbeddings
    layers: Stack[EsmBlock]

    heads: ClassVar[Heads] = task_heads(
        lambda _: FirstToken(Pooled("head.whole", before=True), whole=True),
        questions=None,
        idle=True,
    )
    transform = "lm_head.dense"
    unread_part = "contact head"
    listed_first = ("embeddings", "rotary", "layers", "last_norm", "contact", "bias")
    language_head = ("bias", *MaskedModel.language_head)

    def __post_init__(self) -> None:
        self.rotary = OneTable(HEAD)
        self.last_norm = LayerNorm(HIDDEN)
        self.contact = Linear(size("layers") * HEADS, ONE, name="contact_head.regression")
        for parameter in parameters_of(self.contact):
            parameter.trained, parameter.idle = False, True
        self.bias = Parameter((VOCABULARY,))  # of the head, beside its product
        self.make_head(self.embeddings.words, product=False)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        for key, counted in {"position_embedding_type": "rotary", "token_dropout": True}.items():
            if c.value(key) != counted:
                raise InputError(key, c.value(key), f"must be {counted}, as in ESM-2")
        if c.value("vocab_size") is None:
            raise InputError("vocab_size", None, "must be there: the class has no default")
        found = super().read(c, name)
        if found.head_size % 2:
            rule = "must give an even head: pairs are turned"
            raise InputError("hidden_size", found.hidden_size, rule)
        return replace(found, more=(("own_positions", found.sequence_length),))

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Esm":
        """The tree for an architecture."""
        return cls(tied, EsmEmbeddings(), Stack((EsmBlock(),), architecture.layers))

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; the embeddings, places and tables are held to the end."""
        t = ids.tape
        embedded = self.embeddings(ids)
        positions = positions_of(t)
        tables = self.rotary(t, positions, embedded.dtype)
        held += [embedded, positions, *tables]
        x = self.layers(embedded, Shared(None, {False: tables}, {False: None}))
        return self.last_norm(x)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of one micro-batch; the bias is added to the logits."""
        held: list[Tensor] = []
        last = [self.hidden(ids, held)]
        if self.task_head is not None:
            return self.task_loss(ids, last, labels, held)
        held.clear()
        (x,), t = last, ids.tape
        with t.in_layer("head", 0):
            h = self.dense(x)
            h = gelu(h)
            h = self.norm(h)
            product = self.head.unembed(h, copy=self.head_copy)
        t.ledger.begin(Phase.LOSS)
        logits = op.add(product, t.weight(self.bias))
        del h, product  # die here
        t.hand_out(logits)
        return op.cross_entropy(logits, labels)
