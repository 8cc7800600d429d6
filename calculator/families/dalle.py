"""The step of our text-to-image transformer (training/model.py).

Source: training/model.py, training/attention.py, training/layout.py.
"""

from dataclasses import replace

from calculator import operations as op
from calculator.families import reversible
from calculator.families.cores import Attended, math_core, selectively
from calculator.families.loss import cross_entropy
from calculator.families.reversible import Coupling
from calculator.families.structure import Structure, self_heads
from calculator.graph import Tensor, Weight
from calculator.ledger import Moment
from calculator.operations import Heads
from calculator.tape import Tape
from calculator.techniques import Attention, Checkpointing

Layer = dict[str, Weight]


def shared_weights(t: Tape, s: Structure) -> Layer:
    """The matrices of a distinct layer."""
    expanded = "2*f" if s.gated else "f"
    return {
        "query_key_value": t.weight("3*a*d"),
        "output": t.weight("a*d"),
        "output.bias": t.weight("d"),
        "expand": t.weight(f"{expanded}*d"),
        "expand.bias": t.weight(expanded),
        "contract": t.weight("d*f"),
        "contract.bias": t.weight("d"),
    }


def depth_weights(t: Tape) -> Layer:
    """What each depth has for itself."""
    names = ("norm", "norm.bias", "scale")
    return {f"{branch}.{name}": t.weight("d") for branch in ("attention", "feed") for name in names}


def forward(t: Tape, s: Structure) -> Tensor:
    """The loss of one micro-batch."""
    text_ids, codes = t.inputs
    text, image = t.weight("W*d"), t.weight("I*d")
    slots = s.layer_slots()
    groups = {slot: shared_weights(t, s) for slot in dict.fromkeys(slots)}
    layers = [Layers(t, s, groups[slot], depth_weights(t)) for slot in slots]
    norm, norm_bias = t.weight("d"), t.weight("d")
    text_bias, image_bias = t.weight("W"), t.weight("I")
    named = t.like(text_ids)  # padding has a token for each position
    x = embed(t, text, image, named, codes)
    x = run_layers(t, s, layers, x)
    x = op.layer_norm(t, x, norm, norm_bias, "N")
    with t.in_layer("head", 0):
        text_logits = head(t, s, x, "B*t*d", text, text_bias, "B*t*W")
    t.ledger.begin(Moment.LOSS)
    with t.in_layer("head", 0):
        image_logits = head(t, s, x, "B*i*d", image, image_bias, "B*i*I")
    text_loss = cross_entropy(t, text_logits, named)
    image_loss = cross_entropy(t, image_logits, codes)
    return op.add(t, text_loss, op.scale(t, image_loss))


def embed(t: Tape, text: Weight, image: Weight, ids: Tensor, codes: Tensor) -> Tensor:
    """Begin token, text tokens and all codes but the last."""
    with_begin = t.empty("B*u", 8)
    text_part = op.embedding(t, text, with_begin, "B*u*d")
    image_part = op.embedding(t, image, codes, "B*j*d")
    return op.concatenate(t, [text_part, image_part], "N*d")


def head(
    t: Tape, s: Structure, x: Tensor, rows: str, weight: Weight, bias: Weight, elements: str
) -> Tensor:
    """Logits of one side's positions, which are a slice of all positions."""
    (part,) = slices(t, x, [rows])
    if part.item == t.autocast_item and not s.one_sequence:
        part = op.copy(t, part)  # a product wants its rows side by side
    return op.linear(t, part, weight, elements, bias)


def slices(t: Tape, x: Tensor, pieces: list[str]) -> list[Tensor]:
    """Views made one by one: the gradient of each is as large as x."""
    parts = []
    for elements in pieces:
        part = Tensor(x.storage, elements, x.item)
        t.record([x], [part])
        parts.append(part)
    return parts


def run_layers(t: Tape, s: Structure, layers: list["Layers"], x: Tensor) -> Tensor:
    """All layers on two streams, reversible or not."""
    if s.reversible:
        return reversible.run(t, [layer.couplings() for layer in layers], x, "layers")
    first = second = x
    for position, layer in enumerate(layers):
        with t.in_layer("layers", position):
            if s.checkpointing is Checkpointing.FULL:
                first, second = t.checkpoint(layer.run, first, second)
            else:
                first, second = layer.run(first, second)
    t.ledger.mark("layers", len(layers), backward=False)
    return op.scale(t, op.add(t, first, second))


class Layers:
    """One depth: its own weights and those of its group."""

    def __init__(self, t: Tape, s: Structure, shared: Layer, own: Layer) -> None:
        self.t, self.s, self.shared, self.own = t, s, shared, own

    def couplings(self) -> list[Coupling]:
        """Both branches with the weights they train."""
        own, shared = self.own, self.shared
        attention = [own["attention.norm"], own["attention.norm.bias"]]
        attention += [shared[name] for name in ("query_key_value", "output", "output.bias")]
        feed = [own["feed.norm"], own["feed.norm.bias"]]
        feed += [shared[n] for n in ("expand", "expand.bias", "contract", "contract.bias")]
        return [
            Coupling(self.attend, [*attention, own["attention.scale"]]),
            Coupling(self.feed_forward, [*feed, own["feed.scale"]]),
        ]

    def run(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """y1 = x1 + attention(x2), y2 = x2 + feed_forward(y1)."""
        y1 = op.add(self.t, x1, self.attend(x2))
        return y1, op.add(self.t, x2, self.feed_forward(y1))

    def normed(self, branch: str, x: Tensor) -> Tensor:
        """Norm, then half of the channels from the neighbours."""
        own = self.own
        x = op.layer_norm(self.t, x, own[f"{branch}.norm"], own[f"{branch}.norm.bias"], "N")
        return token_shift(self.t, x)

    def attend(self, x: Tensor) -> Tensor:
        """The attention branch."""
        t, s, shared = self.t, self.s, self.shared
        heads = replace(self_heads(s), side_by_side=True)
        x = self.normed("attention", x)
        joined = op.linear(t, x, shared["query_key_value"], "3*N*a")
        q, k, v = op.split(t, joined, ["N*a"] * 3)
        q, k = rotate(t, q), rotate(t, k)
        out, _probabilities = selectively(t, s, lambda q, k, v: self.core(heads, q, k, v), q, k, v)
        out = op.linear(t, out, shared["output"], "N*d", shared["output.bias"])
        return op.multiply(t, out, self.own["attention.scale"])

    def core(self, heads: Heads, q: Tensor, k: Tensor, v: Tensor) -> Attended:
        """Attention under a mask that all sequences share."""
        t, s = self.t, self.s
        if s.attention is Attention.EAGER:
            return masked_core(t, s, heads, q, k, v)
        mask = t.empty("S*S", q.item)
        if s.attention is Attention.MATH:
            return math_core(t, s, heads, q, k, v, mask)
        return op.efficient_attention(t, q, k, v, heads, mask), None

    def feed_forward(self, x: Tensor) -> Tensor:
        """The feed-forward branch: GEGLU, or GELU where the model is not gated."""
        t, shared = self.t, self.shared
        x = self.normed("feed", x)
        if self.s.gated:
            h = op.linear(t, x, shared["expand"], "2*N*f", shared["expand.bias"])
            values, gates = op.split(t, h, ["N*f"] * 2)
            h = op.multiply(t, values, op.keep_input(t, gates))
        else:
            h = op.linear(t, x, shared["expand"], "N*f", shared["expand.bias"])
            h = op.keep_input(t, h)
        out = op.linear(t, h, shared["contract"], "N*d", shared["contract.bias"])
        return op.multiply(t, out, self.own["feed.scale"])


def token_shift(t: Tape, x: Tensor) -> Tensor:
    """Half of the channels taken from the tokens before, above and to the left."""
    moved, kept = slices(t, x, ["N*e", "N*e"])
    padded = t.empty("B*y*e", x.item)
    t.record([moved], [padded])
    halves = slices(t, padded, ["B*y*w", "B*y*w"])
    quarters = []
    for half in halves:
        quarter = t.empty("N*w", x.item)
        t.record([half], [quarter])
        quarters.append(quarter)
    return op.concatenate(t, [*quarters, kept], "N*d")


def rotate(t: Tape, x: Tensor) -> Tensor:
    """Each head's two halves turned against each other by the position's angles."""
    if x.item == 4:
        cosine = sine = Tensor(t.static, "S*x", 4)
    else:
        cosine, sine = t.empty("S*x", x.item), t.empty("S*x", x.item)
    first, second = op.split(t, x, ["N*z"] * 2)
    near = op.subtract_products(t, first, cosine, second, sine)
    far = op.subtract_products(t, second, cosine, first, sine)
    return op.concatenate(t, [near, far], "N*a")


def masked_core(t: Tape, s: Structure, heads: Heads, q: Tensor, k: Tensor, v: Tensor) -> Attended:
    """The reference: scores filled where the mask hides, softmax in 32 bits."""
    scores = op.attention_scores(t, q, k, heads)
    scores = op.scale(t, scores)
    hidden = t.empty("S*S", 1)
    filled = t.like(scores)
    t.record([scores], [filled], [hidden])
    del hidden
    weights = op.keep_output(t, t.cast(filled, 4))
    del filled
    out = op.weighted_sum(t, t.cast(weights, v.item), v, heads)
    return op.copy(t, out), None
