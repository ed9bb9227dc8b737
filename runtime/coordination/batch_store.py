"""Batches: what is durable of each transaction, and the txid that is committed. What recovery needs (law 2, sameness).

committed             {txid, attempt}: the last committed transaction
batches/<txid>        {metadata, fixed, rows, partitions: [[partition, metadata, rows, checksum, gave], …], commit_id,
                       group_max, handles: [[component, label, handle], …] where there are any}

A batch is *fixed* when all that defines it is known; only a fixed batch is ever committed. The batch of the last
committed transaction is kept: the next one begins where it ended. Earlier ones are removed as new batches begin, so
that a commit is as small a write as can be: there are never more than twice topology.max.spout.pending, and that one.

The handles of what two-phase sinks have pre-committed are stored with what fixes the batch, in one value (rule R2): a
batch that is fixed, and whose commit may have begun, is *decided*. Those of others are withdrawn, with what fixes the
batch, before any of them is aborted (R6): no record ever names a handle that somebody may have aborted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stormline.runtime.errors import StateCorrupt, StateTooLarge
from stormline.runtime.messages.sink_handle import Handles, from_value, to_value
from stormline.runtime.messages.wave import PartitionBatch
from stormline.runtime.state.rotating_state import RotatingState, path_of
from stormline.runtime.state.state_store import Op, Put, StateStore, ValueReader
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import shown

COMMITTED = "committed"
BATCHES = "batches"
LOOKS_MAX = 100
"""So often a reader looks for the committed batch, which is removed some transactions later."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What defines one batch, as far as it is known, and the id under which it commits.

    `group_max`: its commit may begin together with that of a transaction which is less than so many before it.
    `handles`: of what two-phase sinks have pre-committed for it; none, unless it is fixed.
    """

    metadata: Any
    fixed: bool = False
    rows: int = 0
    partitions: Mapping[int, PartitionBatch] = field(default_factory=dict)
    commit_id: int = 0
    group_max: int = 1
    handles: Handles = ()

    @property
    def positions(self) -> dict[int, Any]:
        """Metadata by partition."""
        return {partition: batch.metadata for partition, batch in self.partitions.items()}


def _to_value(batch: Batch) -> dict[str, Any]:
    partitions = [[p, b.metadata, b.rows, b.checksum, b.gave] for p, b in sorted(batch.partitions.items())]
    value = {
        "metadata": batch.metadata,
        "fixed": batch.fixed,
        "rows": batch.rows,
        "partitions": partitions,
        "commit_id": batch.commit_id,
        "group_max": batch.group_max,
    }
    return {**value, "handles": to_value(batch.handles)} if batch.handles else value


def _from_value(txid: int, value: Any) -> Batch:
    try:
        partitions = {
            p: PartitionBatch(metadata, rows, checksum, gave)
            for p, metadata, rows, checksum, gave in value["partitions"]
        }
        fixed, rows = value["fixed"], value["rows"]
        handles = from_value(value.get("handles", []))
        batch = Batch(value["metadata"], fixed, rows, partitions, value["commit_id"], value["group_max"], handles)
        counts = [
            batch.rows,
            batch.commit_id,
            batch.group_max,
            *partitions,
            *(n for p in partitions.values() for n in (p.rows, p.checksum)),
        ]
        flags = [batch.fixed, *(p.gave for p in partitions.values())]
        if any(type(n) is not int or n < 0 for n in counts) or any(type(flag) is not bool for flag in flags):
            raise ValueError(
                "partitions, rows, checksums, the commit id and the size of a group are whole numbers, 'fixed' and "
                "'gave' are true or false"
            )
        if handles and not fixed:
            raise ValueError("it is not fixed, and has handles")
        if len(partitions) != len(value["partitions"]):
            raise ValueError("a partition comes twice")
        return batch
    except (TypeError, KeyError, ValueError) as error:
        raise StateCorrupt(
            f"the stored batch of transaction {txid} is {shown(value, 200)}: {error}; nothing was changed"
        ) from error


def record_of(attempt: TransactionAttempt) -> Put:
    """Return what records the commit of an attempt."""
    return Put(COMMITTED, {"txid": attempt.transaction_id, "attempt": attempt.attempt_id})


def committed_in(state: ValueReader) -> int:
    """Return the last committed transaction that a state holds; 0: none. Raise `StateCorrupt`."""
    try:
        value = state.get(COMMITTED)
    except KeyError:
        return 0
    if not (isinstance(value, dict) and type(value.get("txid")) is int and value["txid"] > 0):
        raise StateCorrupt(
            f"the committed transaction is stored as {shown(value, 200)}, expected a txid; nothing was changed"
        )
    return int(value["txid"])


def stored_batch(state: ValueReader, txid: int) -> Batch | None:
    """Return what a state holds of a batch that is fixed; None where it holds nothing. Raise `StateCorrupt`."""
    try:
        batch = _from_value(txid, state.get(path_of(BATCHES, txid)))
    except KeyError:
        return None
    return batch if batch.fixed else None


def first_metadata(state: ValueReader) -> Any:
    """Return the metadata of the first batch, once it has begun; None before, and long after. Raise `StateCorrupt`."""
    try:
        return _from_value(1, state.get(path_of(BATCHES, 1))).metadata
    except KeyError:
        return None


def last_committed(state: ValueReader) -> tuple[int, Batch | None]:
    """Return the last committed transaction and its batch, while others may commit; 0 and None before the first.

    Raises:
        StateCorrupt: a batch is stored as committed, and is not there; the state cannot be read.
    """
    for _ in range(LOOKS_MAX):
        txid = committed_in(state)
        batch = stored_batch(state, txid) if txid else None
        if batch is not None or not txid:
            return txid, batch
    raise StateCorrupt(
        f"transaction {txid} is stored as committed, and its batch is not there, {LOOKS_MAX} times in a row; nothing "
        "was changed. Something removed a part of the state: bring it back, or look again where the topology runs"
    )


class Batches:
    """The stored batches of one topology. Every change is durable when the call returns.

    `found_committed` is the committed transaction as it was found in the store; what is committed from then on, the
    commit queue knows.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._state = RotatingState(store, BATCHES)
        self.found_committed = committed_in(store)
        last = max(self.found_committed, 1)
        self.known = {txid: _from_value(txid, self._state[txid]) for txid in self._state.txids() if txid >= last}
        self._check()

    def _check(self) -> None:
        txids = list(self.known)
        first = max(self.found_committed, 1)
        if txids != list(range(first, first + len(txids))) or (self.found_committed and not txids):
            raise StateCorrupt(
                f"transaction {self.found_committed} is stored as committed, beside the batches {txids}; expected "
                f"those from {first} on without gaps. Something removed or restored a part of the state; nothing was "
                "changed"
            )

    def found_begun(self) -> int:
        """Return the last transaction of which a driver before may have begun the commit: of one that is fixed it may.

        Not of one later than the first, which begins when the one before it is recorded; unless it may have begun in a
        group with the first. How large that can have been is stored with the batch: that driver's configuration may
        have been another one.
        """
        begun = self.found_committed
        while (batch := self.known.get(begun + 1)) is not None and batch.fixed:
            if begun > self.found_committed and begun - self.found_committed >= batch.group_max:
                break
            begun += 1
        return begun

    def after(self, txid: int) -> dict[int, Batch]:
        """Return the batches that follow upon a transaction, ascending."""
        return {later: batch for later, batch in self.known.items() if later > txid}

    def begin(self, metadata: Mapping[int, Any], committed: int) -> None:
        """Store new batches by txid, and remove those before the last `committed` one: nobody needs them any more."""
        self._put({txid: Batch(value) for txid, value in metadata.items()}, self._state.cleanup_ops(committed))

    def fix(self, batches: Mapping[int, Batch]) -> None:
        """Store all that defines these batches, before any of their commits may begin."""
        self._put(batches)

    def remember(self, txid: int, partitions: Mapping[int, PartitionBatch]) -> None:
        """Keep what an attempt has fixed of its partitions, in this process only."""
        batch = self.known[txid]
        self.known[txid] = replace(batch, partitions={**partitions, **batch.partitions})

    def forget_before(self, txid: int) -> None:
        """Forget, in this process, the batch before a committed one: the next batch begins where that one ended."""
        self.known.pop(txid - 1, None)

    def _put(self, batches: Mapping[int, Batch], cleanup: Sequence[Op] = ()) -> None:
        puts = self._state.put_ops({txid: _to_value(batch) for txid, batch in batches.items()})
        self._write([*puts, *cleanup])
        self.known.update(batches)

    def _write(self, ops: Sequence[Op]) -> None:
        """Write all of `ops`, in as many writes as it takes, in their order."""
        try:
            self._store.write(ops)
        except StateTooLarge as error:
            if len(ops) == 1:
                raise _with_remedy(error, ops[0]) from None
            half = len(ops) // 2
            self._write(ops[:half])
            self._write(ops[half:])


def _with_remedy(error: StateTooLarge, op: Op) -> StateTooLarge:
    """Return the error of a batch that fits no znode; of its handles, where they are what makes it large."""
    handles = op.value.get("handles") if isinstance(op, Put) and isinstance(op.value, dict) else None
    if not handles:
        return error
    components = sorted({component for component, _, _ in handles})
    return StateTooLarge(
        f"{error}; it holds the {len(handles)} handles of the two-phase sinks of {components}, all of which must fit "
        "into one znode: let pre_commit() return less, such as the name of the transaction, or give the bolts fewer "
        "tasks"
    )
