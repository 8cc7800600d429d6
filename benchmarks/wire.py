"""Bytes that two volunteers exchange to average their gradients, in each wire format."""

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Table


def run(quick: bool) -> Table:
    """Count what both send in one averaging; each sends about one copy of the gradients.

    Of two peers each sends the other half of its gradients and the average of the other half.
    """
    import torch
    from hivemind.optim.grad_averager import GradientAverager

    from training.averaging.wire import WireCompression, WireFormat, expected_bytes
    from training.model.build import build_model
    from training.network import traffic
    from training.network.connection import Endpoint, Identity, Network
    from training.run.recipes import RECIPES

    recipe = RECIPES["rehearsal"]
    parameters = list(build_model(recipe).parameters())
    traffic.start_counting()
    figures = []
    formats = [WireFormat.ADAPTIVE] if quick else list(WireFormat)
    with tempfile.TemporaryDirectory() as folder:
        local = Endpoint("127.0.0.1")
        first = Network("wire", Identity.read(Path(folder) / "1"), (), local)
        second = Network("wire", Identity.read(Path(folder) / "2"), first.addresses(), local)
        for wire_format in formats:
            wire = WireCompression(wire_format, recipe.swarm.compression_threshold)
            averagers: list[Any] = []
            for network in (first, second):
                torch.manual_seed(len(averagers))
                for parameter in parameters:
                    parameter.grad = torch.randn_like(parameter)
                averager = GradientAverager(
                    parameters,
                    dht=network.dht,
                    prefix="wire_grad_averager",
                    target_group_size=2,
                    min_matchmaking_time=10.0,
                    compression=wire,
                    start=True,
                )
                averager.accumulate_grads_(1)
                averagers.append(averager)
            before = traffic.read().sent
            rounds = [averager.step(wait=False, timeout=60.0) for averager in averagers]
            for exchange in rounds:
                exchange.result(60.0)
            sent = traffic.read().sent - before
            for averager in averagers:
                averager.shutdown()
            expected = 2 * expected_bytes(parameters, wire)
            figures += [
                Figure(f"{wire_format.value}: sent by both", sent / 1e6, "MB"),
                Figure(f"{wire_format.value}: expected", expected / 1e6, "MB"),
                Figure(f"{wire_format.value}: sent / expected", sent / expected, ""),
            ]
        second.close()
        first.close()
    count = sum(parameter.numel() for parameter in parameters)
    return Table(f"Averaging the gradients of {count:,} parameters among two volunteers", figures)
