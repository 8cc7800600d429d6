"""GPT-J's step (transformers' GPTJForCausalLM), whose class has eager attention only.

Source: transformers (models/gptj/modeling_gptj.py).
"""

from functools import partial

from calculator import operations as op
from calculator.families import reversible
from calculator.families.cores import Attended, selectively
from calculator.families.gpt2 import gelu_new
from calculator.families.loss import causal_loss
from calculator.families.reversible import Coupling
from calculator.families.stacks import run_stack
from calculator.families.structure import Structure, self_heads
from calculator.graph import Tensor, Weight
from calculator.operations import Heads
from calculator.tape import Tape

Layer = dict[str, Weight]


def layer_weights(t: Tape) -> Layer:
    """The weights of one layer."""
    weights = {"norm": t.weight("d"), "norm.bias": t.weight("d")}
    weights |= {name: t.weight("d*d") for name in ("key", "value", "query", "output")}
    weights |= {"expand": t.weight("d*f"), "expand.bias": t.weight("f")}
    return weights | {"contract": t.weight("d*f"), "contract.bias": t.weight("d")}


def forward(t: Tape, s: Structure) -> Tensor:
    """The loss of one micro-batch."""
    ids, labels = t.inputs
    tokens = t.weight("V*d")
    layers = [layer_weights(t) for _ in range(max(s.layer_slots()) + 1)]
    norm, norm_bias = t.weight("d"), t.weight("d")
    head = tokens if s.tied else t.weight("V*d")
    head_bias = t.weight("V")

    def model() -> Tensor:
        embedded = op.embedding(t, tokens, ids, "N*d")
        positions = t.empty("S", 8)
        mask = t.empty("B*S*S", embedded.item)
        x = op.dropout(t, embedded, s.dropout)
        x = stack(t, s, layers, x, mask, positions)
        return op.layer_norm(t, x, norm, norm_bias, "N")

    hidden = model()
    with t.in_layer("head", 0):
        logits = op.linear(t, hidden, head, "N*V", head_bias)
    return causal_loss(t, logits, labels)


def stack(
    t: Tape, s: Structure, layers: list[Layer], x: Tensor, mask: Tensor, positions: Tensor
) -> Tensor:
    """All layers; `positions` are only held."""
    ws = [layers[slot] for slot in s.layer_slots()]
    if s.reversible:
        return reversible.run(t, [couplings(t, s, w, mask) for w in ws], x, "layers")
    return run_stack(t, s, [partial(block, t, s, w, mask=mask) for w in ws], x)


def couplings(t: Tape, s: Structure, w: Layer, mask: Tensor) -> list[Coupling]:
    """The layer as two branches of reversible streams, which share the layer's one norm."""
    norm = [w["norm"], w["norm.bias"]]
    first = [w[name] for name in ("key", "value", "query", "output")]
    second = [w[name] for name in ("expand", "expand.bias", "contract", "contract.bias")]

    def normed(x: Tensor) -> Tensor:
        return op.layer_norm(t, x, w["norm"], w["norm.bias"], "N")

    return [
        Coupling(lambda x: attention(t, s, w, normed(x), mask)[0], [*norm, *first]),
        Coupling(lambda x: feed_forward(t, s, w, normed(x)), [*norm, *second]),
    ]


def block(t: Tape, s: Structure, w: Layer, x: Tensor, mask: Tensor) -> Tensor:
    """One layer: attention and feed-forward side by side after one norm."""
    normed = op.layer_norm(t, x, w["norm"], w["norm.bias"], "N")
    attended, _probabilities = attention(t, s, w, normed, mask)
    forwarded = feed_forward(t, s, w, normed)
    return op.add(t, op.add(t, attended, forwarded), x)


def attention(t: Tape, s: Structure, w: Layer, x: Tensor, mask: Tensor) -> Attended:
    """Causal self-attention with rotary positions in the first r channels of each head."""
    heads = self_heads(s)
    q, k, v = (op.linear(t, x, w[name], "N*a") for name in ("query", "key", "value"))
    table = t.empty("Y*r", 4)  # the table, which stays in 32 bits, copied for this layer
    repeated = t.empty("S*r", 8)
    sines = t.empty("S*r", 4)
    sines = t.cast(sines, k.item)
    q, k = rotated(t, k, sines), rotated(t, q, sines)
    out, probabilities = selectively(
        t, s, lambda q, k, v: core(t, s, heads, q, k, v, mask), q, k, v
    )
    out = op.copy(t, out)  # heads side by side
    out = op.linear(t, out, w["output"], "N*d")
    out = op.dropout(t, out, s.dropout)
    del table, repeated, sines, q, k, v
    return out, probabilities


def rotated(t: Tape, x: Tensor, sines: Tensor) -> Tensor:
    """x with its first r channels turned: x cos + (x turned by a quarter) sin."""
    first, rest = op.split(t, x, ["N*h*r", "N*a"])
    sine, cosine = t.empty("S*r", sines.item), t.empty("S*r", sines.item)
    near = op.multiply(t, first, cosine)
    halves = op.split(t, first, ["N*h*r", "N*h*r"])
    negative = t.empty("N*h*q", x.item)
    turned = op.concatenate(t, [first], "N*h*r")
    del negative, halves
    far = op.multiply(t, turned, sine)
    del turned
    turned = op.add(t, near, far)
    del near, far
    return op.concatenate(t, [turned, rest], "N*a")


def core(
    t: Tape, s: Structure, heads: Heads, q: Tensor, k: Tensor, v: Tensor, mask: Tensor
) -> Attended:
    """Scores in 32 bits where autocast lets them, softmax, weighted sum."""
    q, k = t.cast(q, 4), t.cast(k, 4)
    scores = op.attention_scores(t, q, k, heads)
    scores = op.scale(t, scores)
    scores = op.add(t, scores, mask)
    scores = op.softmax(t, scores)
    scores = t.cast(scores, v.item)
    scores = op.dropout(t, scores, s.dropout)
    return op.weighted_sum(t, scores, v, heads), scores


def feed_forward(t: Tape, s: Structure, w: Layer, x: Tensor) -> Tensor:
    """Two products with GELU between."""
    h = op.linear(t, x, w["expand"], "N*f", w["expand.bias"])
    h = gelu_new(t, h)
    h = op.linear(t, h, w["contract"], "N*d", w["contract.bias"])
    return op.dropout(t, h, s.dropout)
