"""What is known of a topology's two-phase transactions from outside: what is on record, and what its sinks list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stormline.runtime.coordination.batch_store import committed_in, stored_batch
from stormline.runtime.errors import NotAbortable, UndecidedTransaction
from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.state.state_store import ValueReader
from stormline.runtime.tasks.driver_sinks import DriverSinks
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.two_phase_commit import CommitOutcome

Listed = dict[str, tuple[SinkHandle, float | None]]
"""What a sink lists, with its age, by label."""


class Standing(StrEnum):
    """What becomes of a transaction."""

    DECIDED = "decided: only commit is possible"
    WAITS = "on record: waits for the transactions before it"
    LEFT_BEHIND = "left behind: it is never committed"
    UNKNOWN = "on no record: an attempt is at work on it, or has left it behind"


@dataclass(frozen=True, slots=True)
class StoredTransaction:
    """A transaction of a sink. `prepared`: whether the sink lists it; None: it cannot tell."""

    handle: SinkHandle
    standing: Standing
    prepared: bool | None
    age_secs: float | None = None

    @property
    def txid(self) -> int:
        """The topology's transaction."""
        label = TransactionLabel.read(self.handle.label)
        assert label is not None
        return label.txid


def stored_transactions(state: ValueReader, sinks: DriverSinks) -> list[StoredTransaction]:
    """Return all two-phase transactions that are known, by txid; while the topology runs they may change meanwhile.

    First what the sinks list, then the record: so nothing that is on record by then is taken for left behind.
    """
    listed = {component: _listed(component, sinks) for component in sinks.components}
    committed, recorded = committed_in(state), _recorded(state)
    known = [_on_record(handle, txid == committed + 1, listed) for txid, handle in recorded]
    labels = {handle.label for _, handle in recorded}
    for of_sink in listed.values():
        for handle, age_secs in (of_sink or {}).values():
            label = TransactionLabel.read(handle.label)
            assert label is not None
            if handle.label not in labels:
                standing = Standing.LEFT_BEHIND if label.txid <= committed else Standing.UNKNOWN
                known.append(StoredTransaction(handle, standing, True, age_secs))
    return sorted(known, key=lambda each: (each.txid, each.handle.label))


def _listed(component: str, sinks: DriverSinks) -> Listed | None:
    found = sinks.listed(component)
    if found is None:
        return None
    return {each.label: (SinkHandle(component, each.label, each.handle), each.age_secs) for each in found}


def _recorded(state: ValueReader) -> list[tuple[int, SinkHandle]]:
    txid, found = committed_in(state) + 1, []
    while (batch := stored_batch(state, txid)) is not None:
        found += [(txid, handle) for handle in batch.handles]
        txid += 1
    return found


def _on_record(handle: SinkHandle, decided: bool, listed: Mapping[str, Listed | None]) -> StoredTransaction:
    of_sink = listed.get(handle.component)
    standing = Standing.DECIDED if decided else Standing.WAITS
    if of_sink is None:
        return StoredTransaction(handle, standing, None)
    _, age_secs = of_sink.get(handle.label, (handle, None))
    return StoredTransaction(handle, standing, handle.label in of_sink, age_secs)


def commit_by_hand(transaction: StoredTransaction, sinks: DriverSinks, stopped: bool) -> CommitOutcome:
    """Commit what is decided, as the topology would when it starts.

    Args:
        stopped: whether the operator says that the topology does not run. While it runs, its driver may still withdraw
            what is on record and write its rows again, as long as no commit of it has begun.

    Raises:
        UndecidedTransaction: it is not decided, or a driver may be at work on it.
    """
    if transaction.standing is not Standing.DECIDED:
        raise UndecidedTransaction(
            f"{transaction.handle.label} is {transaction.standing}; only what is decided can be committed, since each "
            "other one is committed in its turn or written again. Start the topology: it does what is right"
        )
    if not stopped:
        raise UndecidedTransaction(
            f"{transaction.handle.label} is committed by the topology where it runs, which may also withdraw it and "
            "write its rows again; stop the topology and give --stopped"
        )
    return sinks.commit(transaction.handle)


def abort_by_hand(transaction: StoredTransaction, sinks: DriverSinks, stopped: bool) -> None:
    """Abort what nobody will ever commit.

    Args:
        stopped: whether the operator says that the topology does not run.

    Raises:
        NotAbortable: it is on record; or nobody knows, and the topology may be at work on it.
    """
    if transaction.standing in (Standing.DECIDED, Standing.WAITS):
        raise NotAbortable(
            f"{transaction.handle.label} is {transaction.standing}; where it were aborted its rows would be lost, and "
            "the topology would halt. Start the topology: it commits it, or withdraws and aborts it"
        )
    if transaction.standing is Standing.UNKNOWN and not stopped:
        raise NotAbortable(
            f"{transaction.handle.label} is {transaction.standing}; stop the topology and give --stopped, or let it "
            "run: it sweeps what was left behind"
        )
    sinks.abort(transaction.handle)
