"""GPT-2's step (transformers' GPT2LMHeadModel), which serves GPT-3's sizes too.

Source: transformers (models/gpt2/modeling_gpt2.py, integrations/sdpa_attention.py).
"""

from functools import partial

from calculator import operations as op
from calculator.families import reversible
from calculator.families.cores import Attended, attend, eager_core
from calculator.families.loss import causal_loss
from calculator.families.reversible import Coupling, split_weights
from calculator.families.stacks import run_stack
from calculator.families.structure import Structure, self_heads
from calculator.graph import Tensor, Weight
from calculator.tape import Tape
from calculator.techniques import Attention

Layer = dict[str, Weight]


def layer_weights(t: Tape) -> Layer:
    """The weights of one layer."""
    return {
        "ln_1.weight": t.weight("d"),
        "ln_1.bias": t.weight("d"),
        "c_attn.weight": t.weight("3*a*d"),
        "c_attn.bias": t.weight("3*a"),
        "attn.c_proj.weight": t.weight("a*d"),
        "attn.c_proj.bias": t.weight("d"),
        "ln_2.weight": t.weight("d"),
        "ln_2.bias": t.weight("d"),
        "c_fc.weight": t.weight("d*f"),
        "c_fc.bias": t.weight("f"),
        "mlp.c_proj.weight": t.weight("d*f"),
        "mlp.c_proj.bias": t.weight("d"),
    }


def forward(t: Tape, s: Structure) -> Tensor:
    """The loss of one micro-batch."""
    ids, labels = t.inputs
    tokens, positions = t.weight("V*d"), t.weight("P*d")
    layers = [layer_weights(t) for _ in range(max(s.layer_slots()) + 1)]
    norm, norm_bias = t.weight("d"), t.weight("d")
    head = tokens if s.tied else t.weight("V*d")

    def model() -> Tensor:
        embedded = op.embedding(t, tokens, ids, "N*d")
        places = op.embedding(t, positions, t.empty("S", 8), "N*d" if s.one_sequence else "S*d")
        x = op.add(t, embedded, places)
        mask = t.empty("B*S*S", embedded.item) if s.attention is Attention.EAGER else None
        x = op.dropout(t, x, s.dropout)
        x = stack(t, s, layers, x, mask)
        return op.layer_norm(t, x, norm, norm_bias, "N")

    hidden = model()
    with t.in_layer("head", 0):
        logits = op.linear(t, hidden, head, "N*V")
    return causal_loss(t, logits, labels)


def stack(t: Tape, s: Structure, layers: list[Layer], x: Tensor, mask: Tensor | None) -> Tensor:
    """All layers."""
    ws = [layers[slot] for slot in s.layer_slots()]
    if s.reversible:
        return reversible.run(t, [couplings(t, s, w, mask) for w in ws], x, "layers")
    return run_stack(t, s, [partial(block, t, s, w, mask=mask) for w in ws], x)


def couplings(t: Tape, s: Structure, w: Layer, mask: Tensor | None) -> list[Coupling]:
    """The layer as two branches of reversible streams."""
    first, second = split_weights(w, "ln_2.weight")

    def attend(x: Tensor) -> Tensor:
        normed = op.layer_norm(t, x, w["ln_1.weight"], w["ln_1.bias"], "N")
        return attention(t, s, w, normed, mask)[0]

    def forwards(x: Tensor) -> Tensor:
        normed = op.layer_norm(t, x, w["ln_2.weight"], w["ln_2.bias"], "N")
        return feed_forward(t, s, w, normed)

    return [Coupling(attend, first), Coupling(forwards, second)]


def block(t: Tape, s: Structure, w: Layer, x: Tensor, mask: Tensor | None) -> Tensor:
    """One layer."""
    normed = op.layer_norm(t, x, w["ln_1.weight"], w["ln_1.bias"], "N")
    attended, _probabilities = attention(t, s, w, normed, mask)
    x = op.add(t, attended, x)
    normed = op.layer_norm(t, x, w["ln_2.weight"], w["ln_2.bias"], "N")
    forwarded = feed_forward(t, s, w, normed)
    return op.add(t, x, forwarded)


def attention(t: Tape, s: Structure, w: Layer, x: Tensor, mask: Tensor | None) -> Attended:
    """Causal self-attention with one product for queries, keys and values."""
    heads = self_heads(s)
    joined = op.linear(t, x, w["c_attn.weight"], "3*N*a", w["c_attn.bias"], transposed=False)
    q, k, v = op.split(t, joined, ["N*a"] * 3)

    def eager(q: Tensor, k: Tensor, v: Tensor) -> Attended:
        return eager_core(t, s, heads, q, k, v, (mask,), cast_back=True)

    out, probabilities = attend(t, s, heads, q, k, v, eager, causal=True)
    out = op.linear(t, out, w["attn.c_proj.weight"], "N*d", w["attn.c_proj.bias"], transposed=False)
    return op.dropout(t, out, s.dropout), probabilities


def feed_forward(t: Tape, s: Structure, w: Layer, x: Tensor) -> Tensor:
    """Two products with GELU between."""
    h = op.linear(t, x, w["c_fc.weight"], "N*f", w["c_fc.bias"], transposed=False)
    h = gelu_new(t, h)
    h = op.linear(t, h, w["mlp.c_proj.weight"], "N*d", w["mlp.c_proj.bias"], transposed=False)
    return op.dropout(t, h, s.dropout)


def gelu_new(t: Tape, x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), written in plain operations."""
    half = op.scale(t, x)
    cube = op.power(t, x)
    cube = op.scale(t, cube)
    inner = op.add(t, x, cube)
    del cube
    inner = op.scale(t, inner)
    inner = op.keep_output(t, inner)
    inner = op.shift(t, inner)
    return op.multiply(t, half, inner)
