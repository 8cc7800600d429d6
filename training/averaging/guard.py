"""Averagers that look at who calls them and at what is sent; `reduction` says what is checked.

In a run with an authority the calls of the averaging layer are answered to peers with a grant
only: joining a group, sending parts, downloading the state. What stays open: a group's leader,
itself admitted, may bring in others, whose parts are then refused but to whom ours are sent; an
admitted peer can pass on what it gets; and whoever averages a part can answer with any finite
values for that part, since the others cannot see what it was made of.
"""

import logging
import multiprocessing
import time
from collections.abc import Sequence
from typing import Any, AsyncIterator  # noqa: UP035  # the library looks for it

import torch
from hivemind.averaging.allreduce import AveragingMode
from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.partition import AllreduceException
from hivemind.optim.grad_averager import GradientAverager
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import get_dht_time

from calculator.swarm.aggregation import Aggregation
from training.access.grants import GrantError
from training.averaging.matchmaking import ExpectantAverager
from training.averaging.reduction import GuardedRunner, Round, WeightBounds
from training.records.directory import Directory

logger = logging.getLogger(__name__)


class GuardedAverager(ExpectantAverager):
    """An averager whose rounds are `GuardedRunner`s, and that answers those admitted only.

    Attributes:
        rule: how the group's tensors become one.
        largest_weight: the most that a peer counts in a round.
        unpaced_weight: what a peer counts whose pace is not known, see `declare_paces`.
        admission: who may call; None: everybody who finds us.
    """

    def __init__(
        self,
        *arguments: Any,
        rule: Aggregation = Aggregation.MEAN,
        largest_weight: float = 1.0,
        unpaced_weight: float = 1.0,
        admission: Directory | None = None,
        **options: Any,
    ) -> None:
        self.rule = rule
        self.needs_majority = rule is not Aggregation.MEAN  # the others withstand a minority
        self.largest_weight, self.unpaced_weight = largest_weight, unpaced_weight
        self.admission = admission
        self._paces: dict[PeerID, float] | None = None
        self._round_ended = -float("inf")
        self._rounds, self._rounds_sender = multiprocessing.Pipe(duplex=False)
        super().__init__(*arguments, **options)  # forks

    def declare_paces(self, paces: dict[PeerID, float]) -> None:
        """Pass on to the averager's process how many samples a second each peer can compute."""
        self._outer_pipe.send(("_take_paces", [paces], {}))

    def take_rounds(self) -> list[Round]:
        """The rounds that were finished since the last call; call it at least at every step."""
        rounds = []
        while self._rounds.poll():
            rounds.append(self._rounds.recv())
        return rounds

    async def rpc_join_group(
        self, request: averaging_pb2.JoinRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
        """Let an admitted peer into the group that this one leads."""
        if not await self._admits(context.remote_id):
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        if not self._is_at_our_step(request):
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.BAD_GROUP_KEY)
            return
        async for message in super().rpc_join_group(request, context):
            yield message

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """Average an admitted peer's parts with the others'."""
        if not await self._admits(context.remote_id):
            yield averaging_pb2.AveragingData(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        async for message in super().rpc_aggregate_part(stream, context):
            yield message

    async def rpc_download_state(
        self, request: averaging_pb2.DownloadRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        """Send the state to an admitted peer."""
        if not await self._admits(context.remote_id):
            return
        async for message in super().rpc_download_state(request, context):
            yield message

    def _is_at_our_step(self, request: averaging_pb2.JoinRequest) -> bool:
        """True if a peer averages for our own global step; gradients of two steps do not mix."""
        control = self._matchmaking.step_control
        if control is None:  # the library says that we look for no group
            return True
        try:
            ours, theirs = (
                self.serializer.loads(self.serializer.loads(gathered)[2])
                for gathered in (control.data_for_gather, request.gather)
            )
        except Exception:  # not shaped as ours
            return False
        return bool(ours == theirs)

    async def _admits(self, peer: PeerID) -> bool:
        if self.admission is not None:
            try:
                await self.admission.find(str(peer))
            except GrantError as error:
                logger.warning("a call of %s is refused: %s", peer, error)
                return False
        return True

    async def _take_paces(self, paces: dict[PeerID, float]) -> None:
        self._paces = paces

    async def _run_allreduce_inplace_(
        self,
        tensors: Sequence[torch.Tensor],
        group_info: GroupInfo,
        group_id: bytes | None = None,
        **options: Any,
    ) -> None:
        if (count := len(group_info.peer_ids)) < self.least_peers:  # whatever its leader thinks
            raise AllreduceException(f"{count} peers are too few of {self.expected_peers}")
        seconds = time.monotonic() - self._round_ended
        runner = GuardedRunner(
            rule=self.rule,
            bounds=WeightBounds(self.largest_weight, self.unpaced_weight, self._paces, seconds),
            p2p=self._p2p,
            servicer_type=type(self),
            prefix=self.prefix,
            tensors=tensors,
            group_id=group_info.group_id if group_id is None else group_id,
            ordered_peer_ids=group_info.peer_ids,
            **options,
        )
        self._running_groups[runner.group_id].set_result(runner)
        own_mode = runner.modes[group_info.peer_ids.index(self.peer_id)]
        updated = iter(tensors if own_mode != AveragingMode.AUX else ())
        try:
            async for update in runner:
                next(updated).add_(update, alpha=self._averaging_alpha)
                self.last_updated = get_dht_time()
        finally:
            self._round_ended = time.monotonic()
        self._state_updated.set()  # once a round: it announces our state to several peers
        self._report(runner.round())

    def _report(self, seen: Round) -> None:
        for peer, reason in seen.refused.items():
            logger.warning("%s sent %s: leaving it out of this round", peer, reason)
        self._rounds_sender.send(seen)


class GuardedGradientAverager(GuardedAverager, GradientAverager):
    """Hivemind's gradient averager, guarded; it never sends gradients that are not finite."""

    _anchor_batch_size: int | None
    epoch = 0  # the global step whose gradients are accumulated

    def schedule_step(self, *arguments: Any, **options: Any) -> StepControl:
        """Look for a group of peers who are at the same step as we."""
        options.setdefault("gather", self.epoch)
        control: StepControl = super().schedule_step(*arguments, **options)
        return control

    @classmethod
    def _get_handle_name(cls, namespace: str | None, method_name: str) -> str:
        """Answer to the name of hivemind's own class."""
        return f"{namespace}::{GradientAverager.__name__}.{method_name}"

    @torch.no_grad()
    def take_back(self, samples: int, times: int) -> None:
        """Put gradients that nobody took back to those that are accumulated.

        Args:
            samples: that they were made of. times: micro-batches.
        """
        with self.get_tensors() as gradients:
            for accumulator, gradient in zip(self._grad_accumulators(), gradients, strict=True):
                accumulator.add_(gradient.to(accumulator.device), alpha=times)
        self.local_samples_accumulated += samples
        self.local_times_accumulated += times
        self._anchor_batch_size = self._anchor_batch_size or samples // max(1, times)
        self._accumulators_used_in_step = False
        self.notify_used_averaged_gradients()

    @torch.no_grad()
    def load_accumulators_into_averager_(self) -> None:
        """Take the gradients accumulated, or none at all where one is not finite."""
        super().load_accumulators_into_averager_()
        with self.get_tensors() as gradients:
            if all(bool(gradient.isfinite().all()) for gradient in gradients):
                return
            logger.warning("our own gradients are not finite: leaving them out of this step")
            for gradient in gradients:
                gradient.zero_()
        self.local_samples_accumulated = 0  # their weight
