"""BERT's step (transformers' BertForMaskedLM).

Source: transformers (models/bert/modeling_bert.py).
"""

from functools import partial

from calculator import operations as op
from calculator.families import reversible
from calculator.families.cores import Attended, attend, eager_core
from calculator.families.loss import cross_entropy
from calculator.families.reversible import Coupling, split_weights
from calculator.families.stacks import run_stack
from calculator.families.structure import Structure, self_heads
from calculator.graph import Tensor, Weight
from calculator.ledger import Moment
from calculator.tape import Tape

Layer = dict[str, Weight]


def layer_weights(t: Tape) -> Layer:
    """The weights of one layer."""
    weights: Layer = {}
    for name in ("query", "key", "value"):
        weights[name] = t.weight("a*d")
        weights[f"{name}.bias"] = t.weight("a")
    weights |= {"output": t.weight("a*d"), "output.bias": t.weight("d")}
    weights |= {"attention_norm": t.weight("d"), "attention_norm.bias": t.weight("d")}
    weights |= {"intermediate": t.weight("d*f"), "intermediate.bias": t.weight("f")}
    weights |= {"contract": t.weight("d*f"), "contract.bias": t.weight("d")}
    return weights | {"output_norm": t.weight("d"), "output_norm.bias": t.weight("d")}


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
    ws = [layers[slot] for slot in s.layer_slots()]
    if s.reversible:
        return reversible.run(t, [couplings(t, s, w) for w in ws], x, "layers")
    return run_stack(t, s, [partial(block, t, s, w) for w in ws], x)


def couplings(t: Tape, s: Structure, w: Layer) -> list[Coupling]:
    """The layer as two branches of reversible streams, each with its own norm at the end."""
    first, second = split_weights(w, "intermediate")
    return [
        Coupling(lambda x: attention(t, s, w, x, alone=True)[0], first),
        Coupling(lambda x: feed_forward(t, s, w, x, alone=True), second),
    ]


def block(t: Tape, s: Structure, w: Layer, x: Tensor) -> Tensor:
    """One layer; its norms come after the sums."""
    attended, _probabilities = attention(t, s, w, x)
    return feed_forward(t, s, w, attended)


def attention(t: Tape, s: Structure, w: Layer, x: Tensor, alone: bool = False) -> Attended:
    """Self-attention, its output layer, sum with the input (unless `alone`) and norm."""
    heads = self_heads(s)
    q, k, v = (op.linear(t, x, w[n], "N*a", w[f"{n}.bias"]) for n in ("query", "key", "value"))

    def eager(q: Tensor, k: Tensor, v: Tensor) -> Attended:
        return eager_core(t, s, heads, q, k, v)

    out, probabilities = attend(t, s, heads, q, k, v, eager, causal=False)
    del q, k, v
    return output(t, s, w, "output", "attention_norm", out, None if alone else x), probabilities


def output(
    t: Tape, s: Structure, w: Layer, dense: str, norm: str, h: Tensor, x: Tensor | None
) -> Tensor:
    """LayerNorm(dropout(W h) + x)."""
    out = op.linear(t, h, w[dense], "N*d", w[f"{dense}.bias"])
    out = op.dropout(t, out, s.dropout)
    total = out if x is None else op.add(t, out, x)
    return op.layer_norm(t, total, w[norm], w[f"{norm}.bias"], "N")


def feed_forward(t: Tape, s: Structure, w: Layer, x: Tensor, alone: bool = False) -> Tensor:
    """Two products with GELU between, sum with the input (unless `alone`) and norm."""
    h = op.linear(t, x, w["intermediate"], "N*f", w["intermediate.bias"])
    h = op.keep_input(t, h)
    return output(t, s, w, "contract", "output_norm", h, None if alone else x)


def predict(t: Tape, transform: list[Weight], decoder: Weight, bias: Weight, x: Tensor) -> Tensor:
    """The masked-language-model head: dense, GELU, norm, and the product with all words."""
    dense, dense_bias, norm, norm_bias = transform
    h = op.linear(t, x, dense, "N*d", dense_bias)
    h = op.keep_input(t, h)
    h = op.layer_norm(t, h, norm, norm_bias, "N")
    return op.linear(t, h, decoder, "N*V", bias)
