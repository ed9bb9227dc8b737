"""BatchDefinitions: what a wave must know of its batches, and what its results say of them (law 2, sameness)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from stormline.runtime.coordination.batch_store import Batch, Batches
from stormline.runtime.coordination.coordinator import Process
from stormline.runtime.messages.wave import AttemptResult, Failure, WaveAttempt
from stormline.runtime.world.world import World
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.topology import ComponentKind


class BatchDefinitions:
    """The batches of one topology, whose spout is of `kind`, as processing sees them. Writes nothing.

    `group_max`: so many transactions may begin their commits together.
    """

    def __init__(self, world: World, batches: Batches, kind: ComponentKind, group_max: int = 1) -> None:
        self._group_max = group_max
        self._world = world
        self._batches = batches
        self._kind = kind

    def wave_attempt(self, action: Process, txid_begun: int) -> WaveAttempt:
        """Return what a wave must know of an attempt; up to `txid_begun` a commit effect may have happened."""
        txid = action.attempt.transaction_id
        batch = self._batches.known[txid]
        frozen = txid <= txid_begun
        assert batch.fixed or not frozen, (txid, txid_begun)
        keeps = frozen or self._kind is not ComponentKind.OPAQUE_SPOUT
        return WaveAttempt(
            action.attempt,
            action.metadata,
            stored=batch.partitions if keeps else {},
            rows=batch.rows if frozen else None,
            frozen=frozen,
            commit_id=batch.commit_id if frozen else self._world.random_below(1 << 63),
            decided=frozenset(handle.component for handle in batch.handles) if frozen else frozenset(),
        )

    def positions_before(self, txid: int) -> dict[int, object]:
        """Return where a batch's partitions begin: where those of the batch before it ended."""
        before = self._batches.known.get(txid - 1)
        return before.positions if before is not None else {}

    def newest_positions(self, waiting: Container[int], committed: int) -> tuple[dict[int, object], int]:
        """Return the partitions' positions after the newest batch that is known, and its txid.

        Those that are `waiting` to be processed may come out differently; none up to `committed` does.
        """
        for txid in sorted(self._batches.known, reverse=True):
            if txid <= committed or (txid not in waiting and self._batches.known[txid].fixed):
                return self._batches.known[txid].positions, txid
        return {}, committed

    def take(self, told: WaveAttempt, result: AttemptResult) -> None:
        """Take in a result; it becomes a failure where a batch that must be the same has another number of tuples."""
        if result.failure is None and told.rows is not None and told.rows != result.rows:
            result.failure = Failure(
                "the spout",
                None,
                f"transaction {result.attempt} gave {result.rows} tuples; it gave {told.rows} when its commit began, "
                "and must be the same batch: it is tried again",
            )
        if self._kind is ComponentKind.PARTITIONED_SPOUT:
            self._batches.remember(result.attempt.transaction_id, result.partitions)

    def fixed(
        self, told: Mapping[TransactionAttempt, WaveAttempt], results: Iterable[AttemptResult]
    ) -> dict[int, Batch]:
        """Return by txid what is to be stored before any commit of these results begins.

        Of those that are frozen nothing, and their results are given the handles that were decided: these bolts wrote
        nothing anew (R3). But a bolt of which none is on record may have written: it was another one then, or was not
        there. What it has pre-committed joins the decision, before it is committed.
        """
        found: dict[int, Batch] = {}
        for result in results:
            txid = result.attempt.transaction_id
            known = self._batches.known[txid]
            wave_attempt = told[result.attempt]
            if not wave_attempt.frozen:
                commit_id, handles = wave_attempt.commit_id, result.handles
                found[txid] = Batch(
                    known.metadata, True, result.rows, result.partitions, commit_id, self._group_max, handles
                )
                continue
            assert wave_attempt.decided.isdisjoint(h.component for h in result.handles), "a decided batch, written anew"
            joins, result.handles = result.handles, known.handles + result.handles
            if joins:
                found[txid] = replace(known, handles=result.handles)
        return found

    def undecided(self, txid: int, txid_begun: int) -> dict[int, Batch]:
        """Return what batches from `txid` on are to be stored as before their handles are aborted (rule R6).

        None of those up to `txid_begun`: they are decided, and only a commit is possible.
        """
        known = self._batches.known
        opaque = self._kind is ComponentKind.OPAQUE_SPOUT
        return {
            later: Batch(batch.metadata) if opaque else replace(batch, fixed=False, handles=())
            for later, batch in known.items()
            if later >= txid and later > txid_begun and batch.handles
        }

    def stale_after(self, txid: int, txid_begun: int) -> dict[int, Batch]:
        """Return what later batches are to be stored as before `txid` is fixed anew.

        Opaque ones begin where it ended: what defined them is withdrawn, unless an effect of theirs may have happened.
        Also of those that are fixed anew together with it: that may take several writes.
        """
        if self._kind is not ComponentKind.OPAQUE_SPOUT:
            return {}
        known = self._batches.known
        after = max(txid, txid_begun)
        return {later: Batch(known[later].metadata) for later in known if later > after and known[later].fixed}
