"""Layout: which slot (Spark task) of a stage each task runs in. Equal in every process of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from stormline.topology.plan import Edge, Placement, Plan, Transfer


@dataclass(frozen=True, slots=True)
class Layout:
    """Packs the tasks of each stage into at most `slots_max` slots: task i of a component runs in slot i mod n.

    `at_commit`: stages that do not run in this wave. Their bolts are deferred, and get their tuples at the commit.
    """

    plan: Plan
    slots_max: int
    at_commit: frozenset[int] = frozenset()
    slots: tuple[int, ...] = field(init=False)
    places: dict[int, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        slots: list[int] = []
        places: dict[int, tuple[int, int]] = {}
        for stage in self.plan.stages:
            components = [self.plan.components[name] for name in stage.components]
            if stage.index in self.at_commit:
                slots.append(0)
                continue
            on_driver = stage.placement is Placement.DRIVER
            n = 1 if on_driver else min(self.slots_max, max(len(planned.tasks) for planned in components))
            slots.append(n)
            for planned in components:
                places.update({task: (stage.index, i % n) for i, task in enumerate(planned.tasks)})
        object.__setattr__(self, "slots", tuple(slots))
        object.__setattr__(self, "places", places)

    def tasks_at(self, component: str, stage: int, slot: int) -> list[int]:
        """Return the tasks of a component that run in one slot."""
        return [task for task in self.plan.components[component].tasks if self.places.get(task) == (stage, slot)]

    def sources_of(self, stage: int) -> list[tuple[int, int]]:
        """Return every (stage, slot) that sends blocks to `stage`."""
        return self._slots_of(
            {self._stage_of(e.source) for e in self._exchanges() if self._stage_of(e.target) == stage}
        )

    def targets_of(self, stage: int) -> list[tuple[int, int]]:
        """Return every (stage, slot) that `stage` sends blocks to."""
        return self._slots_of(
            {self._stage_of(e.target) for e in self._exchanges() if self._stage_of(e.source) == stage}
        )

    def waits_for_commit(self, edge: Edge) -> bool:
        """Return whether tuples of `edge` are kept for the commit phase where they were emitted."""
        return edge.transfer is Transfer.EXCHANGE and self._stage_of(edge.target) in self.at_commit

    def _exchanges(self) -> list[Edge]:
        return [edge for edge in self.plan.edges if edge.transfer is Transfer.EXCHANGE]

    def _stage_of(self, component: str) -> int:
        stage = self.plan.components[component].stage
        assert stage is not None
        return stage

    def _slots_of(self, stages: set[int]) -> list[tuple[int, int]]:
        return [(stage, slot) for stage in sorted(stages) for slot in range(self.slots[stage])]
