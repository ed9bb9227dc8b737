"""WaveShaper: decides by the waves before how the next one is laid out, since what Spark costs is known."""

from __future__ import annotations

from stormline.runtime.messages.wave import WaveResult
from stormline.runtime.processing.slot_layout import Layout
from stormline.topology.plan import Plan

# What Spark costs before anything is done: a stage with one Python task, and each further Python task beside it.
STAGE_SECS = 0.065
TASK_SECS = 0.01

# A stage whose bolts all finish in the commit phase is left out where an attempt brings it so few tuples, and so
# little work, that executing them at the commit costs less than the stage. `_LEAVE`: it comes back from here on.
AT_COMMIT_ROWS_MAX = 256
AT_COMMIT_ROWS_LEAVE = 1024
AT_COMMIT_SECS_MAX = 0.002


def one_task_pays(busy_secs: float, stages: int, slots: int) -> bool:
    """Return whether all stages of a wave together should be one Spark task.

    Args:
        busy_secs: what the wave's tasks are expected to work, together.
        stages: Spark stages that the wave has otherwise.
        slots: Spark tasks that work side by side otherwise.
    """
    saved_secs = (stages - 1) * STAGE_SECS + stages * (slots - 1) * TASK_SECS
    return busy_secs * (1 - 1 / slots) < saved_secs


def commit_only_stages(plan: Plan) -> frozenset[int]:
    """Return the stages of the processing phase whose bolts all finish in the commit phase."""
    return frozenset(
        stage.index for stage in plan.stages if all(plan.components[name].deferred for name in stage.components)
    )


class WaveShaper:
    """Learns from each wave. The first one is spread over all slots, and runs every stage."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._commit_only = commit_only_stages(plan)
        self._at_commit: frozenset[int] = frozenset()
        self._busy_secs_an_attempt: float | None = None

    def layout(self, attempts: int, slots_max: int) -> Layout:
        """Return where the tasks of the next wave run: in one Spark task no stage is saved by leaving it out."""
        layout = Layout(self._plan, slots_max, self._at_commit)
        on_spark = layout.on_executors
        slots = max((layout.slots[index] for index in on_spark), default=1)
        busy_secs = self._busy_secs_an_attempt
        if busy_secs is None or not on_spark or not one_task_pays(busy_secs * attempts, len(on_spark), slots):
            return layout
        return Layout(self._plan, 1)

    def learn(self, result: WaveResult) -> None:
        """Record what a wave took."""
        attempts = len(result.attempts)
        self._busy_secs_an_attempt = sum(result.busy_secs_of.values()) / attempts
        self._at_commit = frozenset(stage for stage in self._commit_only if self._suits_commit(stage, result, attempts))

    def _suits_commit(self, stage: int, result: WaveResult, attempts: int) -> bool:
        if stage in result.overfull:  # by one attempt, which the mean of many does not show
            return False
        rows = result.rows_of.get(stage, 0) / attempts
        if stage in self._at_commit:
            return rows <= AT_COMMIT_ROWS_LEAVE
        busy_secs = result.busy_secs_of.get(stage)
        if busy_secs is None:  # its reports are missing
            return False
        return rows <= AT_COMMIT_ROWS_MAX and busy_secs / attempts <= AT_COMMIT_SECS_MAX
