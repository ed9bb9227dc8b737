"""NextWave: what is to be processed next, and when that begins."""

from __future__ import annotations

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.batch_definitions import BatchDefinitions
from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.coordination.committer import Committer
from stormline.runtime.coordination.coordinator import Process, State
from stormline.runtime.coordination.spout_questions import ANSWER_SECS, SpoutAnswer, SpoutQuestions
from stormline.runtime.coordination.wave_size import WaveSize
from stormline.runtime.messages.wave import Wave
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.config import MAX_SPOUT_PENDING, setting

IDLE_SECS = 0.02
"""Time between two questions to a spout that is not ready."""


class NextWave:
    """The attempts that are to be processed, and the waits before their wave: for the spout's answer, after failures.

    It is asked for a wave while none runs: then each active attempt is either to be processed, or waits for its commit.
    """

    def __init__(
        self,
        env: TaskEnvironment,
        batches: Batches,
        definitions: BatchDefinitions,
        spout: SpoutQuestions,
        committer: Committer,
    ) -> None:
        self._world = env.world
        self._batches = batches
        self._definitions = definitions
        self._spout = spout
        self._committer = committer
        self._pending_max = setting(env.plan.config, MAX_SPOUT_PENDING)
        self._to_process: dict[int, Process] = {}
        self._number = 0
        self._not_before = 0.0
        self._ask_spout_at = 0.0
        self._asked = False  # whether this wave has its answer
        self.size = WaveSize(self._pending_max)

    def add(self, action: Process) -> None:
        """Let an attempt be processed, in the place of an earlier one."""
        self._to_process[action.attempt.transaction_id] = action

    def wait(self, secs: float) -> None:
        """Begin no wave before this time has passed."""
        self._not_before = max(self._not_before, self._world.monotonic() + secs)

    def answered(self, answer: SpoutAnswer) -> None:
        """Record the spout's answer; what it begins has been added."""
        if not answer.more:
            self._ask_spout_at = self._world.monotonic() + IDLE_SECS
        self._asked = bool(self._to_process)

    def worth_it(self, state: State) -> bool:
        """Return whether a wave is worth its job now: not a small one, while transactions wait for their commits."""
        processed = self._processed(state)
        return not processed or self.size.enough(self._pending_max - processed)

    def _processed(self, state: State) -> int:
        """Return how many attempts wait for their commits."""
        return len(state.active) - len(self._to_process)

    def look_at(self, state: State) -> float | None:
        """Return the monotonic time at which `begin` may have something, if no message comes before."""
        asked_at = self._spout.asked_at
        if asked_at is not None:  # the answer wakes the loop
            return max(self._not_before, asked_at + ANSWER_SECS) if self._to_process else None
        if self._to_process:
            return self._not_before
        return max(self._not_before, self._ask_spout_at) if coordinator.has_room(state) else None

    def begin(self, state: State) -> Wave | None:
        """Return the wave that begins now; None: nothing is to be processed, or it waits."""
        now = self._world.monotonic()
        if now < self._not_before or self._asks_spout(state, now) or not self._to_process:
            return None
        self._asked = False
        first = min(self._to_process)
        attempts_max = self.size.begins(commits_wait=self._processed(state) > 0)
        txids = range(first, min(first + attempts_max, max(self._to_process) + 1))
        self._number += 1
        begun = self._committer.txid_begun
        return Wave(
            number=self._number,
            attempts=tuple(self._definitions.wave_attempt(self._to_process.pop(txid), begun) for txid in txids),
            committed=self._committer.txid_committed,
            positions=self._definitions.positions_before(first),
        )

    def _asks_spout(self, state: State, now: float) -> bool:
        """Ask the spout for what it has for this wave, once; return whether the wave waits for the answer."""
        if self._spout.asked_at is None and not self._asked and now >= self._ask_spout_at:
            room = self._pending_max - len(state.active)
            if room > 0:
                known = self._batches.known
                prev = known[max(known)].metadata if known else None
                txid_committed = self._committer.txid_committed
                newest = self._definitions.newest_positions(self._to_process, txid_committed)
                committed = self._definitions.positions_before(txid_committed + 1)
                self._spout.ask(coordinator.next_txid(state), room, prev, *newest, committed)
        return self._spout.asked_at is not None and now < self._spout.asked_at + ANSWER_SECS
