"""Volunteers' reports of their work, sent to the run's monitor by call.

A report tells totals since the volunteer's start and its last few steps, so that a reader who
missed some still counts everything; after the monitor was away, also the steps that it missed.
With each step goes what the volunteer saw of the others in the averaging, so that nobody's word is
taken for its own work alone. The call is answered, so that whoever leaves knows that its last step
has arrived.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

from google.protobuf.wrappers_pb2 import BytesValue  # type: ignore[import-untyped]
from hivemind import DHT
from hivemind.dht import DHTNode
from hivemind.p2p import P2PContext, PeerID, ServicerBase
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError
from hivemind.utils import MPFuture, MSGPackSerializer, get_dht_time
from pydantic import BaseModel, Field

from training.access.grants import GrantError
from training.access.membership import Membership
from training.records.owners import contributor_of
from training.run.live import PeerState
from training.run.milestones import Milestone

logger = logging.getLogger(__name__)

LONGEST_NAME = 40  # characters of what a volunteer wants to be called
RECENT_STEPS = 8  # a reader may look as rarely as once in this many global steps
MOST_STEPS = 64  # in a report after the monitor was away
MOST_SEEN = 16  # others that a record names: enough for each to have several witnesses
EXPIRATION_SECONDS = 600.0
MOST = 2**53  # counts that a float holds exactly
MOST_BYTES = 16 * 1024  # of a report with its sender's grant
MOST_REPORTS = 20_000  # unread
CALL_SECONDS = 10.0

Count = Annotated[int, Field(strict=True, ge=0, lt=MOST)]
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Contributor = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
_Name = Annotated[str, Field(pattern=rf"^[\w .@-]{{1,{LONGEST_NAME}}}$")]
_State = Annotated[str, Field(pattern=f"^({'|'.join(PeerState)})$")]
_Milestone = Annotated[str, Field(pattern=f"^({'|'.join(Milestone)})$")]


class Witness(BaseModel):
    """Another volunteer in the same averaging; `weight` in samples is None where it was not seen.

    Whoever averages nothing, such as a peer behind a firewall, sees who is in the group only.
    """

    contributor: Contributor
    weight: Amount | None


class StepReport(BaseModel):
    """A volunteer's part in one global step, which it finished at `time`.

    `loss` is the sum over its `mini_steps`, bytes are those since its step before, `seen` are
    others with whom it averaged.
    """

    step: Count
    time: Amount
    samples: Count
    loss: Amount
    mini_steps: Count
    bytes_sent: Count
    bytes_received: Count
    seen: Annotated[list[Witness], Field(max_length=MOST_SEEN)] = []


class PeerReport(BaseModel):
    """A volunteer's totals since `session`, the time of its start (seconds since 1970).

    `milestones` are the seconds to its first gradient, see `training.run.milestones`.
    """

    name: _Name
    state: _State
    session: Amount
    time: Amount
    step: Count
    samples: Count
    samples_per_second: Amount
    steps: Count
    rejected: Count
    recent: Annotated[list[StepReport], Field(max_length=MOST_STEPS)]
    milestones: dict[_Milestone, Amount] = {}


class ReportServicer(ServicerBase):
    """The monitor's letter box: each volunteer's newest report, until it is emptied.

    libp2p proves who calls; in a run with an authority the caller shows its grant as well.
    """

    def __init__(self, membership: Membership | None) -> None:
        self._membership = membership
        self.newest: dict[str, bytes] = {}

    async def rpc_hand_in(self, request: BytesValue, context: P2PContext) -> BytesValue:
        """Keep a report; the answer says why not, and nothing where it is kept."""
        peer = str(context.remote_id)
        try:
            self._take(peer, request.value)
        except Exception as error:  # whatever others may send
            logger.info("a report of %s is refused: %r", peer, error)
            return BytesValue(value=str(error).encode(errors="replace")[:200] or b"refused")
        return BytesValue()

    def _take(self, peer: str, content: bytes) -> None:
        """Raises an error of some kind when the report cannot be kept."""
        if len(content) > MOST_BYTES:
            raise ValueError(f"a report of {len(content)} bytes")
        token, report = MSGPackSerializer.loads(content)
        if not (isinstance(token, bytes) and isinstance(report, bytes)):
            raise TypeError("not a report")
        if self._membership is not None:
            self._membership.verify(token, peer)
        if peer not in self.newest and len(self.newest) >= MOST_REPORTS:
            raise ValueError("too many reports")
        self.newest[peer] = report


_box: ReportServicer | None = None  # in the process of the monitor's DHT


def serve(dht: DHT) -> None:
    """Take in reports from now on, within the DHT's own process."""
    dht.run_coroutine(_serve, return_future=True).result(CALL_SECONDS)


def collect(dht: DHT, timeout: float) -> dict[str, PeerReport]:
    """The reports that came since the last call, by `contributor_of` their senders.

    Raises:
        TimeoutError: when the DHT's process does not answer in time.
    """
    newest: dict[str, bytes] = dht.run_coroutine(_empty, return_future=True).result(timeout)
    read = {}
    for peer, content in newest.items():
        try:
            read[contributor_of(peer)] = parse(MSGPackSerializer.loads(content))
        except Exception as error:
            logger.warning("a report of %s cannot be read: %r", peer, error)
    return read


def parse(value: Any) -> PeerReport:
    """Read a report; raises ValueError when it is not exactly one, or from another time."""
    report: PeerReport = PeerReport.model_validate(value)
    if report.model_dump() != value:
        raise ValueError("not exactly a report")
    if abs(get_dht_time() - report.time) > EXPIRATION_SECONDS:
        raise ValueError("a report from another time")
    return report


def hand_in(
    dht: DHT, monitors: Iterable[str], report: PeerReport, membership: Membership | None = None
) -> "MPFuture[bool]":
    """Send a report to the monitors; the future tells whether one of them has it.

    A report that is too long goes without its oldest steps.

    Args:
        monitors: identities; whichever of them takes no reports is left alone.
        membership: our access, in a run with an authority.
    """
    token = b""
    if membership is not None:
        with contextlib.suppress(GrantError):  # then it is refused, until access is renewed
            token = membership.token
    call = partial(_hand_in, monitors=tuple(monitors), content=letter(report, token))
    sent: MPFuture[bool] = dht.run_coroutine(call, return_future=True)
    return sent


def letter(report: PeerReport, token: bytes) -> bytes:
    """A report with its sender's grant, without the oldest steps that make it too long."""
    while True:
        content: bytes = MSGPackSerializer.dumps(
            [token, MSGPackSerializer.dumps(report.model_dump())]
        )
        if len(content) <= MOST_BYTES or not report.recent:
            return content
        report = report.model_copy(update={"recent": report.recent[1:]})


async def _serve(_dht: DHT, node: DHTNode) -> None:
    global _box
    _box = ReportServicer(getattr(node.protocol.authorizer, "membership", None))
    await _box.add_p2p_handlers(node.p2p)


async def _empty(_dht: DHT, _node: DHTNode) -> dict[str, bytes]:
    if _box is None:
        return {}
    newest, _box.newest = _box.newest, {}
    return newest


async def _hand_in(_dht: DHT, node: DHTNode, monitors: tuple[str, ...], content: bytes) -> bool:
    others = [peer for peer in monitors if peer != str(node.peer_id)]
    return any(await asyncio.gather(*(_call(node, peer, content) for peer in others)))


async def _call(node: DHTNode, peer: str, content: bytes) -> bool:
    try:
        stub = ReportServicer.get_stub(node.p2p, PeerID.from_base58(peer))
        answer = await stub.rpc_hand_in(BytesValue(value=content), timeout=CALL_SECONDS)
    except (P2PDaemonError, P2PHandlerError, OSError, TimeoutError, ValueError) as error:
        logger.info("%s took no report: %r", peer, error)
        return False
    if answer.value:
        logger.warning("the monitor refused our report: %s", answer.value.decode(errors="replace"))
    return not answer.value
