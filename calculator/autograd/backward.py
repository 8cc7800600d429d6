"""The walk back through the graph, in the order and with the bytes of torch's engine.

Source: torch (autograd/engine.cpp, input_buffer.cpp).
"""

import heapq
from collections.abc import Sequence
from itertools import count

from calculator.autograd.graph import ACCUMULATE, Gradients, Node, Recorder, Tensor


def gradients_of(output: Tensor, gradient: Tensor, inputs: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradients of `inputs`, handed back instead of kept (torch.autograd.grad)."""
    captured: dict[int, Tensor] = {}
    stops = {x.node for x in inputs if x.node is not None}
    with output.tape.setting(captured=captured, stops=stops):
        backward([output], [gradient])
    return [captured.pop(id(x.node), None) for x in inputs]


def backward(outputs: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
    """Walk the graph from `outputs`, latest node first, as torch's engine does."""
    t = outputs[0].tape
    with t.setting(layer=t.layer, running=t.running):
        _walk(t, outputs, gradients)


def _walk(t: Recorder, outputs: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
    roots = [(tensor.node, tensor.index) for tensor in outputs]
    waiting = count_uses([node for node, _ in roots if node is not None], t.stops)
    buffers: dict[Node, Gradients] = {}
    ready: list[tuple[int, int, Node]] = []
    pushed = count()

    def push(node: Node) -> None:
        # accumulators have one sequence number in torch: those that are ready run in turn
        heapq.heappush(ready, (-min(node.sequence, ACCUMULATE), next(pushed), node))

    for (node, index), gradient in zip(roots, gradients, strict=True):
        assert node is not None
        _deliver(t, buffers, node, index, gradient)
        if not waiting.get(node):
            push(node)
    while ready:
        *_, node = heapq.heappop(ready)
        results = _run(t, node, buffers.pop(node))
        for place in () if node in t.stops else node.places:
            edge = node.edges[place]
            if edge is None:
                continue
            target, index = edge
            result, results[place] = results[place], None
            if result is not None:
                _deliver(t, buffers, target, index, result)
            waiting[target] -= 1
            if not waiting[target] and target in buffers:
                push(target)
            del result


def _run(t: Recorder, node: Node, gradients: Gradients) -> Gradients:
    t.running = node.name
    if node.sequence >= ACCUMULATE or node in t.stops:
        gradient = gradients[0]
        assert gradient is not None
        if t.captured is not None:
            t.captured[id(node)] = gradient
        else:
            t.leaves[id(node)].accumulate(gradient)
        return []
    if node.layer is not None and node.layer != t.layer:
        t.layer = node.layer
        t.ledger.mark(*node.layer, backward=True)
    if node.before is not None:
        node.before()
    if not node.saved:
        results = node.run(t, gradients)
        node.fit(t, results)
        gradients.clear()
        return results
    for saved in node.saved:
        saved.unpack()
    results = node.run(t, gradients)
    for saved in node.saved:
        if saved.frame is not None:  # what was computed again goes as soon as it is used
            saved.free()
    node.fit(t, results)
    gradients.clear()
    for saved in node.saved:
        saved.free()
    node.saved.clear()
    return results


def _deliver(
    t: Recorder, buffers: dict[Node, Gradients], node: Node, index: int, gradient: Tensor
) -> None:
    """Put a gradient where a node waits for it; a second one is added to the first."""
    buffer = buffers.setdefault(node, [None] * node.outputs)
    present = buffer[index]
    if present is None:
        buffer[index] = gradient
    elif node.is_apart or present.is_view or present.storage.holders > 1:
        # torch adds in place only to a plain tensor that nobody else can see (input_buffer.cpp)
        buffer[index] = t.like(present)


def count_uses(roots: Sequence[Node], stops: set[Node]) -> dict[Node, int]:
    """Number of gradients that each node of the graph waits for; the walk ends at `stops`."""
    uses: dict[Node, int] = {}
    seen = set(roots)
    stack = list(roots)
    while stack:
        found = stack.pop()
        for edge in () if found in stops else found.edges:
            if edge is not None:
                node = edge[0]
                uses[node] = uses.get(node, 0) + 1
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
    return uses
