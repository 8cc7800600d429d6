"""BERT's step (transformers' BertForMaskedLM).

Source: transformers (models/bert/modeling_bert.py).
"""

from calculator import operations as op
from calculator.families.cores import Attended, attend, eager_core
from calculator.families.loss import cross_entropy
from calculator.families.structure import Structure, self_heads
from calculator.tape import Moment, Tape, Tensor, Weight
from calculator.techniques import Checkpointing

Layer = dict[str, Weight]


def layer_weights(t: Tape) -> Layer:
    """The weights of one layer."""
    weights = {}
    for name in ("query", "key", "value"):
        weights[name] = t.weight("a*d")
        weights[f"{name}.bias"] = t.weight("a")
    for name, shape in (("output", "a*d"), ("intermediate", "d*f"), ("contract", "d*f")):
        weights[name] = t.weight(shape)
        weights[f"{name}.bias"] = t.weight("f" if name == "intermediate" else "d")
    for name in ("attention_norm", "output_norm"):
        weights[name], weights[f"{name}.bias"] = t.weight("d"), t.weight("d")
    return weights


def forward(t: Tape, s: Structure) -> Tensor:
    """The loss of one micro-batch."""
    ids, labels = t.inputs
    words = t.weight("V*d")
    embeddings = [words, t.weight("P*d"), t.weight("U*d"), t.weight("d"), t.weight("d")]
    layers = [layer_weights(t) for _ in range(max(s.layer_slots()) + 1)]
    transform = [t.weight("d*d"), t.weight("d"), t.weight("d"), t.weight("d")]
    decoder = words if s.tied else t.weight("V*d")
    bias = t.weight("V")
    x = embed(t, s, embeddings, ids)
    x = stack(t, s, layers, x)
    with t.in_layer("head", 0):
        logits = predict(t, transform, decoder, bias, x)
    t.ledger.begin(Moment.LOSS)
    return cross_entropy(t, logits, labels)


def embed(t: Tape, s: Structure, weights: list[Weight], ids: Tensor) -> Tensor:
    """Words, kinds and positions, added and normed."""
    words, positions, kinds, norm, norm_bias = weights
    word_part = op.embedding(t, words, ids, "N*d")
    kind_part = op.embedding(t, kinds, t.empty("S", 8), "N*d")
    x = op.add(t, word_part, kind_part)
    # the table of positions is a buffer, so its indices take no bytes of their own
    indices = Tensor(norm.storage, "S", 8)
    place_part = op.embedding(t, positions, indices, "N*d" if s.one_sequence else "S*d")
    x = op.add(t, x, place_part)
    x = op.layer_norm(t, x, norm, norm_bias, "N")
    return op.dropout(t, x, s.dropout)


def stack(t: Tape, s: Structure, layers: list[Layer], x: Tensor) -> Tensor:
    """All layers."""
    for position, slot in enumerate(slots := s.layer_slots()):
        weights = layers[slot]
        with t.in_layer("layers", position):
            if s.checkpointing is Checkpointing.FULL:
                x = t.checkpoint(lambda y, w=weights: block(t, s, w, y), x)
            else:
                x = block(t, s, weights, x)
    t.ledger.mark("layers", len(slots), backward=False)
    return x


def block(t: Tape, s: Structure, w: Layer, x: Tensor) -> Tensor:
    """One layer; its norms come after the sums."""
    attended, _probabilities = attention(t, s, w, x)
    return feed_forward(t, s, w, attended)


def attention(t: Tape, s: Structure, w: Layer, x: Tensor) -> Attended:
    """Self-attention, its output layer, sum and norm."""
    heads = self_heads(s)
    q, k, v = (op.linear(t, x, w[n], "N*a", w[f"{n}.bias"]) for n in ("query", "key", "value"))

    def eager(q: Tensor, k: Tensor, v: Tensor) -> Attended:
        return eager_core(t, s, heads, q, k, v)

    out, probabilities = attend(t, s, heads, q, k, v, eager, causal=False)
    del q, k, v
    return output(t, s, w, "output", "attention_norm", out, x), probabilities


def output(
    t: Tape, s: Structure, w: Layer, dense: str, norm: str, h: Tensor, x: Tensor
) -> Tensor:
    """LayerNorm(dropout(W h) + x)."""
    out = op.linear(t, h, w[dense], "N*d", w[f"{dense}.bias"])
    out = op.dropout(t, out, s.dropout)
    return op.layer_norm(t, op.add(t, out, x), w[norm], w[f"{norm}.bias"], "N")


def feed_forward(t: Tape, s: Structure, w: Layer, x: Tensor) -> Tensor:
    """Two products with GELU between, sum and norm."""
    h = op.linear(t, x, w["intermediate"], "N*f", w["intermediate.bias"])
    h = op.keep_input(t, h)
    return output(t, s, w, "contract", "output_norm", h, x)


def predict(t: Tape, transform: list[Weight], decoder: Weight, bias: Weight, x: Tensor) -> Tensor:
    """The masked-language-model head: dense, GELU, norm, and the product with all words."""
    dense, dense_bias, norm, norm_bias = transform
    h = op.linear(t, x, dense, "N*d", dense_bias)
    h = op.keep_input(t, h)
    h = op.layer_norm(t, h, norm, norm_bias, "N")
    return op.linear(t, h, decoder, "N*V", bias)
