"""What is right: the laws, checked at every step. The truth about the data is a plain list of offsets by partition.

Laws by number, as docs/laws.md has them: law 1 (order), law 2 (sameness), law 3 (attempts), law 5 (complete input),
law 6 (fencing), law 7 (one execution), law 9 (routing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stormline import TransactionAttempt
from stormline.runtime.coordination.commit_queue import PROOF_SECS, PROOF_TRIES
from stormline.runtime.coordination.coordinator import ATTEMPTS_PER_EPOCH
from stormline.runtime.messages.wave import Wave
from stormline.runtime.state.state_tree import FOLDER
from stormline.runtime.state.stored_value import unseal
from stormline.topology.serialization import PLAIN
from tests.simulation.databases import Request, Row, Token
from tests.simulation.step_oracle import TABLES, StepOracle
from tests.simulation.world import World
from tests.simulation.zookeeper import Change

NODE = "/storm/simulated"

NODES_MAX = 9
"""How many znodes there may be beside the stored batches: those above them, too."""

STALE_SECS = 1.6
"""How old may be what a driver asks for: after `sync` it may have had to connect again before it could ask."""

SLACK_SECS = 0.2
"""How long it may take a driver to call user code after it has made sure of its ownership."""

NEWS_SECS = 0.005
"""How long it may take a driver to hear that its connection is gone, and to call user code after it has looked."""


class Violation(Exception):
    """A law was broken."""


class Oracle:
    """Sees what reaches ZooKeeper and the databases, and what user code is asked to do."""

    def __init__(self, world: World, pending_max: int, spout: str, placed: bool, group_max: int | None = None) -> None:
        self.steps = StepOracle(self, group_max)
        self._world = world
        self._placed = placed
        self._claimed_at = 0.0
        self._pending_max = pending_max
        self._emitters = 2 if spout in ("committer", "opaque committer") else 0
        self._plain = spout in ("plain", "plain on driver", "committer")
        self.violation: Violation | None = None
        self.committed = 0
        self.positions: dict[int, int] = {}
        self.takeovers = -1
        self._owner: dict[str, Any] = {"epoch": 0, "token": "", "writes": 0}
        self._session = 0
        self.stored: dict[int, Any] = {}
        self._frozen: dict[int, Any] = {}
        self._effects: dict[int, dict[tuple[str, str], tuple[Row, ...]]] = {}
        self._begun: set[tuple[str, int, Token]] = set()
        self._running: set[tuple[str, int, Token]] = set()
        self._commit_ids: dict[int, int] = {}
        self._attempts: dict[int, int] = {}
        self._contents: dict[tuple[int, int, str, str], tuple[Row, ...]] = {}
        self.replays = 0
        self._routes: dict[int, int] = {}
        self.told = False

    @property
    def over(self) -> bool:
        """Whether the history ends here: a law was broken, or people must decide what is to be done."""
        return self.violation is not None or self.told

    def backup(self) -> tuple[int, dict[int, Any], dict[int, int], dict[str, Any]]:
        """Return what is known of the state as it is."""
        return self.committed, dict(self.stored), dict(self.positions), self._owner

    def set_back(self, backup: tuple[int, dict[int, Any], dict[int, int], dict[str, Any]]) -> None:
        """Record that the state is an earlier one: its next batch, if it is fixed, must be the same as it was."""
        self.committed, stored, positions, self._owner = backup
        self.stored, self.positions = dict(stored), dict(positions)
        same = {txid for txid in self._frozen if self._frozen[txid] == stored.get(txid) and txid == self.committed + 1}
        self._frozen = {txid: self._frozen[txid] for txid in same}
        self._effects = {txid: effects for txid, effects in self._effects.items() if txid in same}
        self._commit_ids = {txid: commit_id for txid, commit_id in self._commit_ids.items() if txid in same}
        self.steps.set_back(self.committed)
        self._begun.clear()
        self._running.clear()  # of a driver that was killed: the next one's epoch may be the same
        self._attempts.clear()

    def note(self, what: str) -> None:
        """Add an event to the history."""
        self._world.note(what)

    def freeze(self, txid: int, who: str) -> Any:
        """See an effect of a transaction: from now on its batch is the one that is stored, which is returned."""
        if txid not in self._frozen:
            batch = self.stored.get(txid)
            if batch is None or not batch["fixed"]:
                self.broken(f"law 2: an effect of {who}, whose batch is stored as {batch}")
            self._frozen[txid] = batch
        return self._frozen[txid]

    def broken(self, law: str) -> None:
        """Record the first violation; the simulation stops there."""
        if self.violation is None and not self._world.closing:
            self._world.note(f"VIOLATION {law}")
            self.violation = Violation(law)

    # ------------------------------------------------------------------------------------ ZooKeeper

    def applied(self, session: int, changes: Sequence[Change]) -> None:
        """See one transaction that ZooKeeper applied."""
        values = {change.path.removeprefix(f"{NODE}/"): change for change in changes if change.path.startswith(NODE)}
        if any(change.path == f"{NODE}/live" and change.after is None for change in changes) and "owner" in values:
            self._check_taken()
        if "owner" in values:
            self._check_owner(session, values["owner"], claim="live" in values)
        elif any(path.startswith("state/") for path in values):
            self.broken("law 6: a write that does not check the epoch")
        changed: set[int] = set()
        for path, change in values.items():
            if path.startswith("state/batches/"):
                changed.add(int(path.rpartition("/")[2]))
                self._batch_changed(int(path.rpartition("/")[2]), change.after)
        if "state/committed" in values:
            self._check_commit(values["state/committed"].after)
        if len(self.stored) > 2 * self._pending_max + 1:
            self.broken(f"bounded: {len(self.stored)} batches stored, at most {self._pending_max} may be active")
        nodes = self._world.zookeeper.nodes
        if len(nodes) - len(self.stored) > NODES_MAX:
            self.broken(f"bounded: beside batches there are {sorted(nodes)}")
        if max(self.stored, default=0) > self.committed + self._pending_max:
            self.broken(f"pending: batch {max(self.stored)} is stored, {self.committed} is committed")
        self._check_chain({txid for txid in changed if txid in self.stored and self.stored[txid]["fixed"]})

    def _check_chain(self, fixed_now: set[int]) -> None:
        """See that a driver which finds this can go on: no gaps, and each fixed batch begins where the one before ends.

        None is fixed before the one before it; where that one is withdrawn, later ones follow in further writes.
        """
        ends = dict(self.positions)
        ahead = True
        for txid in range(self.committed + 1, max(self.stored, default=0) + 1):
            batch = self.stored.get(txid)
            if batch is None:
                return self.broken(f"law 2: batch {txid} is not stored, later ones are: {sorted(self.stored)}")
            if txid in fixed_now and txid - 1 > self.committed and not self.stored[txid - 1]["fixed"]:
                return self.broken(f"law 2: batch {txid} is stored as fixed, the one before is not")
            ahead = ahead and batch["fixed"]
            if not ahead:
                continue
            for partition, first, end in self._ranges(batch):
                if first != ends.get(partition, 0):
                    self.broken(
                        f"law 2: batch {txid} is stored to begin at {first} of partition {partition}, the one before "
                        f"ends at {ends.get(partition, 0)}"
                    )
                ends[partition] = end
        return None

    def _check_owner(self, session: int, change: Change, claim: bool) -> None:
        if change.after is None:
            return self.broken("law 6: the owner was deleted")
        owner = unseal(change.after, PLAIN, change.path)
        before, self._owner = self._owner, owner
        if claim:
            self._world.note(f"zookeeper: epoch {owner['epoch']} claims")
            self.takeovers += 1
            self._session = session
            self._claimed_at = self._world.now
            if owner["epoch"] != before["epoch"] + 1 or owner["token"] == before["token"]:
                self.broken(f"law 6: epoch {owner['epoch']} follows {before['epoch']}")
        elif (owner["epoch"], owner["token"], session) != (before["epoch"], before["token"], self._session):
            self.broken(f"law 6: epoch {owner['epoch']} wrote, {before['epoch']} owns the topology")
        return None

    def looks(self, behind_secs: float) -> None:
        """See a driver read who lives, which had been otherwise for this time when it asked."""
        if behind_secs > STALE_SECS:
            self.broken(f"law 6: a driver goes by who lived {behind_secs:.1f} s before")

    def certain(self, session: int, connected_at: float) -> None:
        """See that a driver which is certain that it owns the topology has not connected after another one's claim."""
        if session != self._session and connected_at > self._claimed_at:
            self.broken("law 6: a driver is certain that it owns the topology, and connected after another one's claim")

    def _check_taken(self) -> None:
        """See that who takes the topology from a session that has not ended takes it from the dead."""
        process = self._world.zookeeper.process_of(self._session)
        if process is not None and process.alive:
            self.broken(f"law 6: the topology is taken from epoch {self._owner['epoch']}, whose {process.name} lives")

    def _batch_changed(self, txid: int, data: bytes | None) -> None:
        if data is None:
            del self.stored[txid]
            return
        batch = unseal(data, PLAIN, f"batch {txid}")
        if txid in self._frozen and batch != self._frozen[txid]:
            self.broken(f"law 2: batch {txid} was stored anew after an effect: {batch}, before {self._frozen[txid]}")
        self._world.sinks.check_stored(txid, batch)
        self.stored[txid] = batch

    def _check_commit(self, data: bytes | None) -> None:
        if data is None or data == FOLDER:
            return self.broken("law 1: the committed txid was deleted")
        txid = unseal(data, PLAIN, "committed")["txid"]
        stored = self.steps.check_record(txid)
        if not self.committed < txid <= self.committed + (self.steps.group_max or 1):
            return self.broken(f"law 1: {txid} is recorded after {self.committed}")
        earlier, self.committed = range(self.committed + 1, txid), txid
        if txid not in self.stored:
            return self.broken(f"law 2: batch {txid}, the last committed one, is not stored")
        emitters = {task for component, task, token in self._begun if component == "emitter" and token.txid == txid}
        if len(emitters) < self._emitters:
            return self.broken(
                f"law 5: {txid} is committed, of its emitters only those of tasks {emitters} were asked to"
            )
        expected = self.expected(self.stored[txid])
        self._world.note(f"zookeeper: {txid} is committed: {expected}")
        self._world.sinks.check_record(txid, self.stored[txid], expected)
        contents: dict[tuple[Row, ...], str] = {}
        for table in () if stored else TABLES:
            effects = {key: rows for key, rows in self._effects.get(txid, {}).items() if key[0] == table}
            contents[tuple(sorted(row for share in effects.values() for row in share))] = table
            rows = sorted(row[:2] for share in effects.values() for row in share)
            if rows != sorted(expected):
                return self.broken(f"law 5: {txid} is committed with {rows} in {table}, its batch is {expected}")
            for key in effects:
                if self._world.databases.cells[key].txid < txid:
                    return self.broken(f"law 1: {txid} is recorded, its effect on {key} did not happen")
        if len(contents) > 1:
            return self.broken(f"law 7: {txid} is committed with rows of several executions: {contents}")
        for one in (*earlier, txid):
            for partition, _, end in self._ranges(self.stored[one]):
                self.positions[partition] = end
        return None

    def _ranges(self, batch: Any) -> list[tuple[int, int, int]]:
        if self._plain:
            return [(p, first, end) for p, first, end in batch["metadata"]]
        return [(p, *metadata) for p, metadata, _, _, gave in batch["partitions"] if gave and metadata is not None]

    def expected(self, batch: Any) -> list[tuple[int, int]]:
        """Return the offsets of a stored batch, by partition."""
        return [(p, offset) for p, first, end in self._ranges(batch) for offset in range(first, end)]

    # ------------------------------------------------------------------------------------ user code and databases

    def wave(self, epoch: int, wave: Wave) -> None:
        """See a wave begin."""
        self._world.note(f"epoch {epoch}: {wave.title}, attempts {[a.attempt.attempt_id for a in wave.attempts]}")
        if len(wave.attempts) > self._pending_max:
            self.broken(f"pending: {len(wave.attempts)} transactions in one wave")
        for wave_attempt in wave.attempts:
            txid, attempt = wave_attempt.attempt.transaction_id, wave_attempt.attempt.attempt_id
            before = self._attempts.get(txid, 0)
            if attempt <= before and epoch >= self._owner["epoch"]:
                self.broken(f"law 3: attempt {attempt} of {txid} after attempt {before}")
            self.replays += txid in self._attempts
            self._attempts[txid] = max(before, attempt)

    def routed(self, key: int, task: int) -> None:
        """See a key arrive: in whatever form, from wherever, and in each attempt it comes to the same task."""
        if self._routes.setdefault(key, task) != task:
            self.broken(f"law 9: key {key} is routed to task {task}, and was to {self._routes[key]}")

    def emits(self, attempt: TransactionAttempt, cleaned: int, kept: set[int]) -> None:
        """See an emitter begin a batch: it keeps of the one before it what it needs, and of old ones nothing."""
        if cleaned >= attempt.transaction_id:
            self.broken(
                f"cleanup: {attempt} is emitted when all before {cleaned} was discarded, the batch before it too"
            )
        if len(kept) > 2 * self._pending_max + 2:
            self.broken(f"bounded: an emitter keeps {len(kept)} batches, at most {self._pending_max} may be active")

    def commit_begins(self, component: str, task: int, token: Token, commit_id: int) -> None:
        """See user code begin to commit."""
        self._world.note(f"{component} {task} commits {token.txid}:{token.attempt} in epoch {token.epoch}")
        if (component, task, token) in self._begun:
            self.broken(f"law 7: {component} {task} is asked twice to commit {token}")
        if not any(begun == token for *_, begun in self._begun):
            self._check_ownership(token)
        self._check_alone(token)
        self._begun.add((component, task, token))
        if not self._placed:  # from one in another process nobody hears how it ends
            self._running.add((component, task, token))
        if self._commit_ids.setdefault(token.txid, commit_id) != commit_id:
            self.broken(f"law 2: {token} commits under another id than an earlier attempt")
        if commit_id != self.stored.get(token.txid, {}).get("commit_id", commit_id):
            self.broken(f"law 2: {token} commits under another id than the one that is stored with its batch")
        if not self._placed:  # what runs on the executors may not have heard of it
            self._check_current(token.txid, token.attempt)
        if token.txid > self.committed + 1 and not self.steps.may_begin(token.txid, self.committed):
            self.broken(f"law 1: the commit of {token} begins, {self.committed} is recorded as committed")

    def commit_ends(self, component: str, task: int, token: Token) -> None:
        """See user code come back from a commit."""
        self._running.discard((component, task, token))

    def _check_alone(self, token: Token) -> None:
        """See that the effects of an attempt end before those of the next one begin."""
        for component, _, other in self._running:
            if other.epoch == token.epoch and other != token:
                self.broken(f"law 3: the commit of {token} begins while {component} commits {other}")

    def _check_current(self, txid: int, attempt: int) -> None:
        """See that no user code is called for an attempt that this driver has replaced by another one."""
        newest = self._attempts.get(txid, 0)
        if attempt < newest and (attempt - 1) // ATTEMPTS_PER_EPOCH == (newest - 1) // ATTEMPTS_PER_EPOCH:
            self.broken(f"law 3: the commit of {txid}:{attempt} goes on, the current attempt is {newest}")

    def _check_ownership(self, token: Token) -> None:
        """See that a driver that can know better begins no commit; what it began before a pause goes on after it."""
        if self._placed:  # then others act for it, late
            return
        world = self._world
        process = world.task.process
        client = world.clients[process]
        if client.suspended_at is not None and world.now - max(client.suspended_at, process.resumed_at) > NEWS_SECS:
            self.broken(f"law 6: the commit of {token} begins without a connection")
        if token.epoch < self._owner["epoch"]:
            if world.now - max(self._claimed_at, process.resumed_at) > PROOF_SECS + SLACK_SECS:
                self.broken(f"law 6: the commit of {token} begins, epoch {self._owner['epoch']} owns the topology")
            if client.connected_at > self._claimed_at and client.suspended_at is None:
                self.broken(f"law 6: the commit of {token} begins, its driver connected after another one's claim")
        # A driver that was paused right after it had looked begins what it was about to begin.
        could_look = client.proofs.committer_looked(PROOF_SECS + SLACK_SECS)
        looked_before = could_look and world.now - process.resumed_at < NEWS_SECS
        late = client.proofs.late < PROOF_TRIES and not looked_before
        if late and world.now - client.proofs.sent_at > PROOF_SECS + SLACK_SECS:
            self.broken(f"law 6: the commit of {token} begins, the last proof of its ownership is too old")

    def effect(self, request: Request) -> None:
        """See a database transaction arrive."""
        txid = request.token.txid
        self._world.note(f"database: {request.table} {request.key} {request.token} {request.rows}")
        if txid > self.committed + 1:
            self.broken(f"law 1: an effect of {request.token}, {self.committed} is recorded as committed")
        self.freeze(txid, str(request.token))
        effects = self._effects.setdefault(txid, {})
        content = (txid, request.commit_id, request.table, request.key)
        if self._contents.setdefault(content, request.rows) != request.rows:
            self.broken(
                f"law 2: {request.token} brings other rows by the commit id of a batch before the state was set back"
            )
        rows = effects.setdefault((request.table, request.key), request.rows)
        if rows != request.rows:
            self.broken(f"law 2: {request.token} brings {request.rows} to {request.table}, an earlier attempt {rows}")

    def audit(self, attempt: TransactionAttempt, stored: Mapping[str, Sequence[int]]) -> None:
        """See what a bolt downstream of the committers was told."""
        self._check_current(attempt.transaction_id, attempt.attempt_id)
        counts = {table: len(stored.get(table, ())) for table in TABLES}
        rows = {sum(stored.get(table, ())) for table in TABLES}
        if counts != {"keyed": 2, "total": 1, "ledger": 1} or len(rows) != 1:
            self.broken(f"law 5: the commit phase of {attempt} delivered {dict(stored)}")

    def one_execution(self, attempt: TransactionAttempt, made_up: Mapping[str, int]) -> None:
        """See that all that a bolt made up, differently each time it ran, reached the committers from one run of it."""
        if made_up["keyed"] != made_up["ledger"]:
            self.broken(f"law 7: the commit phase of {attempt} holds tuples of several executions: {dict(made_up)}")

    # ------------------------------------------------------------------------------------ the end

    def all_committed(self) -> bool:
        """Return whether all that the source holds is committed."""
        return all(self.positions.get(p, 0) == end for p, end in enumerate(self._world.source.ends))

    def drained(self) -> bool:
        """Return whether it is, and nothing is left behind."""
        return self.all_committed() and self._world.sinks.settled

    def check_databases(self) -> None:
        """See that each offset is in each table once."""
        expected = [(p, offset) for p, end in enumerate(self._world.source.ends) for offset in range(end)]
        self._world.sinks.check_content(expected)
        if self.steps.group_max is not None:
            self.steps.check_content(self._world.store.content(), expected)
            return
        for table in TABLES:
            rows = sorted(row[:2] for row in self._world.databases.rows_of(table))
            if rows != expected:
                lost = sorted(set(expected) - set(rows))
                twice = sorted({row for row in rows if rows.count(row) > 1})
                self.broken(f"exactly once: {table} lacks {lost} and holds {twice} more than once")
