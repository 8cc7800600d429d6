"""The one check of every record: volunteers, the monitor and every other peer install it.

A peer asks it of what others want it to store and of what others answer, so that a record which
breaks a rule is kept by nobody. It signs what this peer writes, hivemind's own records as well.
"""

import hashlib
import logging
import math
import multiprocessing
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.schema import SchemaValidator
from hivemind.dht.storage import DictionaryDHTValue
from hivemind.dht.validation import DHTRecord, RecordValidatorBase
from hivemind.utils import MSGPackSerializer, get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

from training.access import envelope, grants
from training.access.envelope import SignedFile
from training.access.grants import GrantError
from training.access.membership import Membership
from training.records.kinds import AVERAGERS, LONGEST_SECONDS, Kind, kinds_of
from training.records.owners import BanList, identity_of, peer_id_of, tag_of

logger = logging.getLogger(__name__)

MOST_BYTES = 16 * 1024  # of a record, its subkey and signature included
_KIND = "record"
CLOCK_SECONDS = 5.0  # the peers' clocks agree within 3

_refused = multiprocessing.Value("q", 0)  # shared with the DHT's process


class RecordValidator(RecordValidatorBase):
    """Signs this peer's records; tells whether any record may be stored and believed.

    A record holds when its key is one of the run's, its subkey is exactly its owner's, the owner
    signed it, it expires soon, it is small, and its value is of the key's kind. In a run with an
    authority the owner must have access, too: made-up keys have none.

    Args:
        run: the run's name. key: this peer's. membership: our access, where there is an authority.
        averagers: hivemind's names of what is averaged. bans: owners whose records do not hold.
    """

    def __init__(
        self,
        run: str,
        key: RSAPrivateKey,
        membership: Membership | None = None,
        averagers: Iterable[str] = AVERAGERS,
        bans: BanList | None = None,
    ) -> None:
        self._run, self._key, self._membership, self._bans = run, key, membership, bans
        public_key = key.get_public_key().to_bytes().decode()
        self._tag = tag_of(public_key)
        self._identity = identity_of(peer_id_of(self._tag))
        self._kinds = _kinds_by_key(run, tuple(averagers))

    def validate(self, record: DHTRecord) -> bool:
        """True if a record holds; never raises."""
        try:
            self._check(record)
        except Exception as error:  # whatever others may send
            _note(str(error) or repr(error))
            return False
        return True

    def sign_value(self, record: DHTRecord) -> bytes:
        """Seal a record of ours; another's stays as it is, and is refused."""
        kind, value = self._kinds.get(record.key), bytes(record.value)
        if kind is None or _subkey(record) != (self._tag if kind.tagged else self._identity):
            return value
        fields = {"place": _place(record)}
        if self._membership is not None:
            admission = self._membership.read()
            fields["access"] = admission.grant.to_bytes().decode() if admission is not None else ""
        return envelope.seal(_KIND, fields, value, self._key)

    def strip_value(self, record: DHTRecord) -> bytes:
        """The value in a valid record, for the application."""
        if record.key not in self._kinds:
            return bytes(record.value)
        return _open(record.value).body

    def merge_with(self, other: RecordValidatorBase) -> bool:
        """Stand in for the validators that hivemind's tracker adds."""
        return isinstance(other, RSASignatureValidator | SchemaValidator)

    def _check(self, record: DHTRecord) -> None:
        """Raises an error of some kind, mostly a ValueError, when a record does not hold."""
        kind = self._kinds.get(record.key)
        if kind is None:
            raise ValueError("a key that the run does not have")
        size = len(record.value) + len(record.subkey)
        if size > MOST_BYTES:
            raise ValueError(f"a record of {size} bytes")
        ahead = float(record.expiration_time) - get_dht_time()
        if not (math.isfinite(ahead) and ahead <= kind.seconds + CLOCK_SECONDS):
            raise ValueError(f"a {kind.name} that expires in {ahead:.0f} s")
        file, subkey = _open(record.value), _subkey(record)
        fields, owner = dict(file.fields), file.signer
        access = fields.pop("access", None)
        if fields != {"place": _place(record)}:
            raise ValueError(f"a {kind.name} that was sealed for another place")
        if kind.tagged and (not isinstance(subkey, bytes) or peer_id_of(subkey) != owner):
            raise ValueError("a subkey that is not its owner's tag")
        if not kind.tagged and subkey != identity_of(owner):
            raise ValueError("a subkey that is not its owner's identity")
        if self._bans is not None and self._bans.is_banned(owner):
            raise ValueError("its owner is banned")
        self._check_access(access, owner)
        kind.check(MSGPackSerializer.loads(file.body), owner)

    def _check_access(self, access: object, owner: str) -> None:
        """See that the owner has or just had access.

        Raises:
            ValueError: when it does not, or we have none ourselves.
        """
        if self._membership is None:
            return
        admission = self._membership.read()
        if admission is None or not isinstance(access, str):
            raise GrantError("nobody has access yet")
        grant = grants.parse(access.encode())
        if grant.peer_id != owner:
            raise GrantError("made for another peer's key")
        # what was written before its end may be told until the record itself expires
        grants.check(grant, admission.authority_key, self._run, time.time() - LONGEST_SECONDS)


def refused_records() -> int:
    """Count the records that this peer's part of the hash table has refused since its start."""
    return int(_refused.value)


def drop_invalid_entries() -> None:
    """Make hivemind leave out the entries of a dictionary that do not hold, not all of it.

    Otherwise a single entry that one peer just took and the next one does not, by a difference of
    their clocks, hides all the others. Call it before the first DHT of a process.
    """
    DHTProtocol._validate_dictionary = _keep_valid_entries


def _keep_valid_entries(self: DHTProtocol, key: bytes, dictionary: DictionaryDHTValue) -> bool:
    with dictionary.freeze():
        for subkey, (value, expiration_time) in list(dictionary.items()):
            subkey_bytes = self.serializer.dumps(subkey)
            if not self._validate_record(key, subkey_bytes, value, expiration_time):
                del dictionary[subkey]
    return True


@lru_cache(maxsize=4)  # with a key for each group there may be, they take a tenth of a second
def _kinds_by_key(run: str, averagers: tuple[str, ...]) -> Mapping[bytes, Kind]:
    return {DHTID.generate(source=name).to_bytes(): kind for name, kind in kinds_of(run, averagers)}


@lru_cache(maxsize=1024)  # every look at a dictionary finds mostly what the last one found
def _open(value: bytes) -> SignedFile:
    return envelope.open_file(_KIND, value, MOST_BYTES)


def _place(record: DHTRecord) -> str:
    """A sum over all of a record but its value, which a value is sealed for."""
    content = MSGPackSerializer.dumps([record.key, record.subkey, record.expiration_time])
    return hashlib.sha256(content).hexdigest()


def _subkey(record: DHTRecord) -> object:
    if record.subkey in DHTProtocol.RESERVED_SUBKEYS:
        return None
    subkey: object = MSGPackSerializer.loads(record.subkey)
    return subkey


def _note(why: str) -> None:
    with _refused.get_lock():
        _refused.value += 1
        count = _refused.value
    if count & (count - 1) == 0:  # the 1st, 2nd, 4th, 8th ...: a flood must not fill the disk
        logger.warning("a record was refused: %s (%d refused so far)", why, count)
