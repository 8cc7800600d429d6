"""DeBERTa, version 3 (transformers' DebertaV2ForMaskedLM), whose class has eager attention only.

Source: transformers (models/deberta_v2/modeling_deberta_v2.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32, INT64
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, size
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.errors import InputError
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.heads import FirstToken, Heads, Pooled
from calculator.layers.layer import Buffer, Layer
from calculator.layers.pairs import task_heads
from calculator.layers.stack import Block, Stack
from calculator.models.bert import Output
from calculator.models.masked import MaskedModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, VOCABULARY

BUCKETS, POSITIONS = size("position_buckets"), size("own_positions")
DISTANCES = 2 * BUCKETS  # to both sides
KINDS = ["c2p", "p2c"]  # content to position, and back


@dataclass(frozen=True, slots=True)
class Shared:
    """Tensors shared by all layers: a mask of ones, distances, and their embeddings."""

    mask: Tensor
    distances: Tensor
    embeddings: Tensor


@dataclass(eq=False)
class Disentangled(Layer):
    """Scores from content to content, from content to position and from position to content."""

    def __post_init__(self) -> None:
        self.query = Linear(HIDDEN, HEADS * HEAD, name="query_proj")
        self.key = Linear(HIDDEN, HEADS * HEAD, name="key_proj")
        self.value = Linear(HIDDEN, HEADS * HEAD, name="value_proj")

    def __call__(self, x: Tensor, shared: Shared) -> Tensor:
        """(batch, length, hidden) -> (batch, length, heads * head)."""
        q, k, v = (heads_of(layer(x)) for layer in (self.query, self.key, self.value))
        scores = product(q, op.scale(op.transpose(k, 2, 3)))
        embeddings = op.dropout(shared.embeddings)
        bias = self.bias(q, k, shared, embeddings)
        scores = op.add(scores, bias)
        mask = x.tape.empty((x.shape[0], ONE, SEQUENCE, SEQUENCE), BOOL)
        scores = op.masked_fill(scores, x.tape.like(mask))
        probabilities = op.softmax(scores)
        probabilities = op.dropout(probabilities)
        out = product(probabilities, v)
        out = op.copy(op.transpose(op.regrouped(out, *out.shape), 1, 2))
        del mask, embeddings, bias, scores, probabilities  # held until here
        return op.view(out, *x.shape[:-1], HEADS * HEAD)

    def bias(self, q: Tensor, k: Tensor, shared: Shared, embeddings: Tensor) -> Tensor:
        """Scores between content and positions, gathered by distances."""
        t, batch = q.tape, q.shape[0]
        every = op.view(op.part(embeddings, DISTANCES, HIDDEN), ONE, DISTANCES, HIDDEN)
        places = (batch, HEADS, DISTANCES, HEAD)
        place_q = op.repeated(heads_of(self.query(every)), *places)
        place_k = op.repeated(heads_of(self.key(every)), *places)
        near = product(q, op.transpose(place_k, 2, 3))
        moved = t.like(shared.distances)
        indices = t.like(moved)
        del moved
        near = gather(near, indices)
        score = op.shift(op.scale(near))
        turned = t.like(shared.distances)
        moved = t.like(turned)
        del turned
        back = t.like(moved)
        del moved
        far = product(k, op.transpose(place_q, 2, 3))
        far = gather(far, back)
        score = op.add_in_place(score, op.scale(far))
        del near, far, indices, back, place_q, place_k  # held until here
        return score


def heads_of(x: Tensor) -> Tensor:
    """(batch, length, hidden) -> (batch, heads, length, head), copied."""
    return op.copy(op.transpose(op.regrouped(x, *x.shape[:-1], HEADS, HEAD), 1, 2))


def product(a: Tensor, b: Tensor) -> Tensor:
    """`torch.bmm`: keeps both factors."""
    a, b = a.tape.lower(a), b.tape.lower(b)
    return a.tape.operation([a, b], (*a.shape[:-1], b.shape[-1]), a.dtype, saves=op.factors(a, b))


def gather(x: Tensor, indices: Tensor) -> Tensor:
    """A number of each row for each key: keeps x and the indices."""
    shape = (*x.shape[:-1], SEQUENCE)
    return x.tape.operation([x], shape, x.dtype, saves=[x, indices])


@dataclass(eq=False)
class DebertaBlock(Block):
    """Attention, sum and norm; feed-forward layer, sum and norm."""

    def __post_init__(self) -> None:
        self.attention = Disentangled()
        self.attention_output = Output(HEADS * HEAD, "attention.output.dense")
        self.expand = Linear(HIDDEN, FEED, name="intermediate.dense")
        self.output = Output(FEED, "output.dense")

    def __call__(self, x: Tensor, shared: Shared) -> Tensor:
        """The residual stream after the layer."""
        out = self.attention(x, shared)
        attended = self.attention_output(out, x)
        del out
        h = self.expand(attended)
        h = op.gelu(h)
        return self.output(h, attended)


@dataclass(eq=False)
class KeepingStack(Stack[DebertaBlock]):
    """All layers, whose outputs are held to the end, as the class always does."""

    def after(self, x: Tensor, shared: Shared) -> Tensor:
        """The last layer's output."""
        t = x.tape
        held = [x]
        for position, block in enumerate(self.blocks):
            with t.in_layer(self.name, position):
                run: Callable[[Tensor], Tensor] = partial(block, shared=shared)
                if self.is_checkpointed(t, position):
                    run = partial(t.checkpoint, run)
                x = self.gathered(t, position, run)(x)
            held.append(x)
        t.ledger.mark(self.name, len(self.blocks), backward=False)
        del held
        return x


@dataclass(eq=False)
class Deberta(MaskedModel):
    """Words and their norm, blocks, and the masked-language-model head."""

    layers: KeepingStack

    heads: ClassVar[Heads] = task_heads(lambda _: FirstToken(Pooled(activation="gelu")))
    unused = "bias"
    kernels = (Attention.EAGER, Attention.SDPA)
    has_attention_core = False

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.word_norm = LayerNorm(HIDDEN)
        self.position_indices = Buffer((ONE, POSITIONS), INT64)
        self.distances = Parameter((DISTANCES, HIDDEN), table=True)
        self.distance_norm = LayerNorm(HIDDEN)
        self.make_head(self.words)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        _check_version(c)
        found = super().read(c, name)
        c.only("embedding_size", found.hidden_size)
        c.only("attention_head_size", found.head_size)
        buckets = c.size("position_buckets", 0, most=LONGEST_SEQUENCE)
        if not buckets:
            rule = "must be given: only distances in buckets are counted"
            raise InputError("position_buckets", "", rule)
        return replace(
            found,
            more=(("position_buckets", buckets), ("own_positions", found.sequence_length)),
        )

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Deberta":
        """The tree for an architecture."""
        return cls(tied, KeepingStack((DebertaBlock(),), architecture.layers))

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; ones for a mask and kinds of tokens are held to the end."""
        t = ids.tape
        ones = t.empty(ids.shape, FLOAT32)
        kinds = t.empty(ids.shape, INT64)
        embedded = self.embedded(ids, ones)
        square = (SEQUENCE, SEQUENCE)
        mask = t.empty((t.mode.batch, ONE, *square), FLOAT32)
        distances = t.empty(square, INT64)
        embeddings = self.distance_norm(t.weight(self.distances))
        x = self.layers.after(embedded, Shared(mask, distances, embeddings))
        del ones, kinds, embedded  # held until here
        return x

    def embedded(self, ids: Tensor, ones: Tensor) -> Tensor:
        """Words, normed, and times the mask of ones; zeros stand for positions."""
        t = ids.tape
        words = self.words(ids)
        zeros = t.like(words)
        x = self.word_norm(words)
        kept = op.view(op.cast(ones, x.dtype), *ids.shape, ONE)
        x = op.multiply(x, kept)
        x = op.dropout(x)
        del words, zeros  # held until here
        return x


def _check_version(c: Configuration) -> None:
    """Refuse what the third version does not have."""
    kinds = c.value("pos_att_type")
    given = kinds.split("|") if isinstance(kinds, str) else kinds
    if not isinstance(given, list) or sorted(map(str, given)) != KINDS:
        raise InputError("pos_att_type", kinds, f"must be {' and '.join(KINDS)}")
    wanted = {
        "relative_attention": True,
        "share_att_key": True,
        "position_biased_input": False,
        "norm_rel_ebd": "layer_norm",
    }
    for key, counted in wanted.items():
        if c.value(key) != counted:
            raise InputError(key, c.value(key), f"must be {counted}, as in version 3")
    for key, unused in {"legacy": True, "conv_kernel_size": 0, "type_vocab_size": 0}.items():
        c.only(key, unused)
