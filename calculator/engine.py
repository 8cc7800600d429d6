"""The walk back through the graph, in the order and with the bytes of torch's engine.

Source: torch (autograd/engine.cpp, input_buffer.cpp).
"""

import heapq
from collections.abc import Sequence

from calculator.graph import ACCUMULATE, Gradients, Leaf, Node, Tensor
from calculator.ledger import Ledger, Part, Storage


class Engine:
    """Allocates tensors and runs the backward pass."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.layer: tuple[str, int] | None = None
        self._leaves: dict[int, Leaf] = {}
        self._captured: dict[int, Tensor] | None = None
        self._stops: set[Node] = set()

    def empty(self, elements: str, item: int, is_view: bool = False) -> Tensor:
        """New bytes."""
        storage = Storage(self.ledger, self.ledger.size_id(elements, item), Part.TEMPORARIES)
        return Tensor(storage, elements, item, is_view=is_view)

    def like(self, tensor: Tensor, item: int | None = None) -> Tensor:
        """New bytes of the same shape."""
        return self.empty(tensor.elements, item or tensor.item)

    def alias(self, tensor: Tensor, elements: str | None = None) -> Tensor:
        """The same bytes and history under another name or shape."""
        return Tensor(
            tensor.storage,
            elements or tensor.elements,
            tensor.item,
            tensor.node,
            tensor.index,
            tensor.is_view,
        )

    def gradients_of(
        self, output: Tensor, gradient: Tensor, inputs: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """The gradients of `inputs`, handed back instead of kept (torch.autograd.grad)."""
        outer, self._captured = self._captured, {}
        stops, self._stops = self._stops, {x.node for x in inputs if x.node is not None}
        layer = self.layer
        self.backward([output], [gradient])
        captured, self._captured = self._captured, outer
        self.layer, self._stops = layer, stops
        return [captured.pop(id(x.node), None) for x in inputs]

    def backward(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Walk the graph from `outputs`, latest node first, as torch's engine does."""
        roots = [(tensor.node, tensor.index) for tensor in outputs]
        waiting = count_uses([node for node, _ in roots if node is not None], self._stops)
        buffers: dict[Node, Gradients] = {}
        ready: list[tuple[int, Node]] = []
        for (node, index), gradient in zip(roots, gradients, strict=True):
            assert node is not None
            self._deliver(buffers, node, index, gradient)
            if not waiting.get(node):
                heapq.heappush(ready, (-node.sequence, node))
        while ready:
            _, node = heapq.heappop(ready)
            results = self._run(node, buffers.pop(node))
            for place, edge in enumerate(() if node in self._stops else node.edges):
                if edge is None:
                    continue
                target, index = edge
                result, results[place] = results[place], None
                if result is not None:
                    self._deliver(buffers, target, index, result)
                waiting[target] -= 1
                if not waiting[target] and target in buffers:
                    heapq.heappush(ready, (-target.sequence, target))
                del result

    def _run(self, node: Node, gradients: Gradients) -> Gradients:
        if node.sequence >= ACCUMULATE or node in self._stops:
            gradient = gradients[0]
            assert gradient is not None
            if self._captured is not None:
                self._captured[id(node)] = gradient
            else:
                self._leaves[id(node)].accumulate(gradient)
            return []
        if node.layer is not None and node.layer != self.layer:
            self.layer = node.layer
            self.ledger.mark(*node.layer, backward=True)
        for saved in node.saved:
            saved.unpack()
        results = node.run(self, gradients)
        for saved in node.saved:
            if saved.frame is not None:  # what was computed again goes as soon as it is used
                saved.free()
        node.fit(self, results)
        gradients.clear()
        for saved in node.saved:
            saved.free()
        node.saved.clear()
        return results

    def _deliver(
        self, buffers: dict[Node, Gradients], node: Node, index: int, gradient: Tensor
    ) -> None:
        """Put a gradient where a node waits for it; a second one is added to the first."""
        buffer = buffers.setdefault(node, [None] * node.outputs)
        present = buffer[index]
        if present is None:
            buffer[index] = gradient
        elif present.is_view or present.storage.holders > 1:
            # torch adds in place only to a tensor that nobody else can see (input_buffer.cpp)
            buffer[index] = self.like(present)


def count_uses(roots: Sequence[Node], stops: set[Node]) -> dict[Node, int]:
    """How many gradients each node of the graph waits for; the walk ends at `stops`."""
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
