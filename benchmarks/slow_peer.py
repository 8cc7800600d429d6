"""`python slow_peer.py OPTIONS`: a peer on a slow line, told over standard input what to do.

OPTIONS is a JSON object: folder, host, entry_points, reachable, recipe, peers, bits. Each line of
input is one too: `exchange` averages gradients once, `train` makes global steps whose computing
is a pause, as a GPU would leave the processor free. Each answer is a line of JSON.
"""

import json
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from hivemind.averaging.control import AveragingStage
from hivemind.optim.grad_averager import GradientAverager

from training.averaging.optimizer import open_optimizer
from training.averaging.wire import WireCompression, WireFormat, expected_bytes
from training.model.build import build_model
from training.network import traffic
from training.network.connection import Endpoint, Identity, Network
from training.records.validator import RecordValidator
from training.run.recipes import RECIPES, ModelSettings, Recipe

FORMATS = {8: WireFormat.ADAPTIVE, 16: WireFormat.FLOAT16, 32: WireFormat.EXACT}
GROUP_SECONDS = 240.0  # longest wait for a group
EXCHANGE_SECONDS = 1800.0


def make_recipe(name: str) -> Recipe:
    """Give a recipe; `slow` is the paper's with 7 million parameters, so that minutes suffice."""
    paper = RECIPES["paper"]
    if name != "slow":
        return RECIPES[name]
    assert isinstance(paper.model, ModelSettings)
    model = replace(
        paper.model,
        text_vocabulary_size=4096,
        image_vocabulary_size=2048,
        hidden_size=384,
        num_hidden_layers=4,
        num_attention_heads=6,
        sharing_groups=1,
    )
    return replace(paper, name=name, model=model)


class SlowNetwork(Network):
    """A network in which each format has an averager of its own."""

    def make_validator(self) -> RecordValidator:
        return RecordValidator(self.run, self.key, averagers=[f"{bits}" for bits in FORMATS])


class Peer:
    """A peer that exchanges gradients of a model's size."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.recipe = make_recipe(options["recipe"])
        self.model = build_model(self.recipe)
        self.parameters = list(self.model.parameters())
        traffic.start_counting()
        endpoint = Endpoint(options["host"], reachable=options["reachable"])
        identity = Identity.read(Path(options["folder"]))
        entry_points = tuple(options["entry_points"])
        self.network = SlowNetwork("slow", identity, entry_points, endpoint)
        # all at once: the library's processes lose each other when one is made after another ended
        self.averagers = {
            bits: self._open_averager(bits, options["peers"]) for bits in options["bits"]
        }

    def exchange(self, bits: int, peers: int, rank: int) -> None:
        """Average once; the exchange begins when all are told to go."""
        for parameter in self.parameters:  # the mean is then known: (peers - 1) / 2
            parameter.grad = torch.full_like(parameter, float(rank))
            parameter.grad.add_(torch.randn_like(parameter), alpha=1e-2)
        averager, wire = self.averagers[bits], self._wire(bits)
        averager.accumulate_grads_(1)
        control = averager.schedule_step(timeout=EXCHANGE_SECONDS)
        deadline = time.monotonic() + GROUP_SECONDS
        while control.stage != AveragingStage.AWAITING_TRIGGER:
            if time.monotonic() > deadline or control.done():
                raise TimeoutError("found no group")
            time.sleep(0.02)
        averager.load_accumulators_into_averager_()
        averager.reset_accumulated_grads_()
        control.weight = 1.0
        tell(ready=True)
        sys.stdin.readline()
        before, began = traffic.read(), time.perf_counter()
        control.allow_allreduce()
        group = control.result(EXCHANGE_SECONDS)
        seconds, after = time.perf_counter() - began, traffic.read()
        with averager.get_tensors() as tensors:
            mean = float(sum(t.double().sum() for t in tensors) / sum(t.numel() for t in tensors))
        tell(
            seconds=seconds,
            sent=after.sent - before.sent,
            received=after.received - before.received,
            expected=expected_bytes(self.parameters, wire),
            parameters=sum(parameter.numel() for parameter in self.parameters),
            peers=len(group),
            mean=mean,
        )

    def _wire(self, bits: int) -> WireCompression:
        return WireCompression(FORMATS[bits], self.recipe.swarm.compression_threshold)

    def _open_averager(self, bits: int, peers: int) -> GradientAverager:
        return GradientAverager(
            self.parameters,
            dht=self.network.dht,
            prefix=f"slow_{bits}",
            target_group_size=peers,
            min_group_size=peers,
            min_matchmaking_time=15.0,
            request_timeout=5.0,
            compression=self._wire(bits),
            client_mode=self.network.dht.client_mode,
            start=True,
        )

    def train(
        self, bits: int, run: str, peers: int, overlap: bool, compute: float, steps: int
    ) -> None:
        """Make global steps; says when each was made, and how long it computed for each."""
        micro_batches = 20  # of each peer in a step
        swarm = replace(
            self.recipe.swarm,
            target_batch_size=peers * micro_batches,
            matchmaking_seconds=3.0,
            allreduce_timeout=300.0,
            averaging_timeout=330.0,
            progress_refresh=(0.25, 2.0),
        )
        recipe = replace(self.recipe, swarm=swarm)
        self.network.run = run
        optimizer = open_optimizer(self.network, recipe, self.model, 1, FORMATS[bits], overlap)
        optimizer.delay_state_averaging = overlap  # else the weights too are averaged in between
        noise = [torch.randn_like(parameter) * 1e-3 for parameter in self.parameters]
        tell(ready=True)
        sys.stdin.readline()
        made, computed, sent = [time.perf_counter()], [0], [traffic.read().sent]
        while len(made) <= steps:
            time.sleep(compute / micro_batches)
            with torch.no_grad():
                for parameter, part in zip(self.parameters, noise, strict=True):
                    if parameter.grad is None:
                        parameter.grad = torch.zeros_like(parameter)
                    parameter.grad.add_(part)
            computed[-1] += 1
            epoch = optimizer.local_epoch
            optimizer.step(batch_size=1)
            if optimizer.local_epoch > epoch:
                made.append(time.perf_counter())
                computed.append(0)
                sent.append(traffic.read().sent)
        tell(
            step_seconds=[b - a for a, b in pairwise(made)],
            compute_seconds=[count * compute / micro_batches for count in computed[:-1]],
            sent=[b - a for a, b in pairwise(sent)],
            parameters=sum(parameter.numel() for parameter in self.parameters),
        )
        sys.stdin.readline()  # the others may still be fetching their averages from this peer
        optimizer.close()


def tell(**answer: Any) -> None:
    """Answer."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    peer = Peer(json.loads(sys.argv[1]))
    tell(addresses=peer.network.addresses())
    for line in sys.stdin:
        request = json.loads(line)
        getattr(peer, request.pop("do"))(**request)
    for averager in peer.averagers.values():
        averager.shutdown()
    peer.network.close()
