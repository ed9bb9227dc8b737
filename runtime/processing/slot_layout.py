"""Layout: which slot (Spark task) of a stage each task runs in. Equal in every process of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from stormline.topology.plan import Edge, Placement, Plan, Transfer


@dataclass(frozen=True, slots=True)
class Layout:
    """Packs the tasks of each stage into at most `slots_max` slots: task i of a component runs in slot i mod n.

    Where that is one slot, the stages on the executors are one, the first of them that runs: what they would exchange
    is handed over by plain call.

    `at_commit`: stages that do not run in this wave. Their bolts are deferred, and get their tuples at the commit.
    `components`: what runs in each stage.
    """

    plan: Plan
    slots_max: int
    at_commit: frozenset[int] = frozenset()
    components: tuple[tuple[str, ...], ...] = field(init=False)
    slots: tuple[int, ...] = field(init=False)
    places: dict[int, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        components = [() if s.index in self.at_commit else s.components for s in self.plan.stages]
        on_executors = [s.index for s in self.plan.stages if s.placement is Placement.EXECUTORS and components[s.index]]
        if self.slots_max == 1 and on_executors:
            together = tuple(name for index in on_executors for name in components[index])
            for index in on_executors:
                components[index] = together if index == on_executors[0] else ()
        slots: list[int] = []
        places: dict[int, tuple[int, int]] = {}
        for stage in self.plan.stages:
            tasks = [self.plan.components[name].tasks for name in components[stage.index]]
            slots_max = 1 if stage.placement is Placement.DRIVER else self.slots_max
            n = min(slots_max, max(map(len, tasks), default=0))
            slots.append(n)
            for own in tasks:
                places.update({task: (stage.index, i % n) for i, task in enumerate(own)})
        object.__setattr__(self, "components", tuple(components))
        object.__setattr__(self, "slots", tuple(slots))
        object.__setattr__(self, "places", places)

    def tasks_at(self, component: str, stage: int, slot: int) -> list[int]:
        """Return the tasks of a component that run in one slot."""
        return [task for task in self.plan.components[component].tasks if self.places.get(task) == (stage, slot)]

    @property
    def on_executors(self) -> list[int]:
        """The stages that run on the executors in this wave, in order."""
        stages = self.plan.stages
        return [stage.index for stage in stages if stage.placement is Placement.EXECUTORS and self.slots[stage.index]]

    def sources_of(self, stage: int) -> list[tuple[int, int]]:
        """Return every (stage, slot) that sends blocks to `stage`."""
        return self._slots_of({self._stage_of(e.source) for e in self._sent() if self._stage_of(e.target) == stage})

    def targets_of(self, stage: int) -> list[tuple[int, int]]:
        """Return every (stage, slot) that `stage` sends blocks to."""
        return self._slots_of({self._stage_of(e.target) for e in self._sent() if self._stage_of(e.source) == stage})

    def waits_for_commit(self, edge: Edge) -> bool:
        """Return whether tuples of `edge` are kept for the commit phase where they were emitted."""
        return edge.transfer is Transfer.COMMIT or self._stage_of(edge.target) is None

    def hands_over(self, edge: Edge) -> bool:
        """Return whether tuples of `edge` stay in their slot."""
        return not self.waits_for_commit(edge) and self._stage_of(edge.source) == self._stage_of(edge.target)

    def _sent(self) -> list[Edge]:
        return [edge for edge in self.plan.edges if not self.waits_for_commit(edge) and not self.hands_over(edge)]

    def _stage_of(self, component: str) -> int | None:
        """Return the stage that a component runs in; None: not in this wave."""
        place = self.places.get(self.plan.components[component].tasks[0])
        return None if place is None else place[0]

    def _slots_of(self, stages: set[int | None]) -> list[tuple[int, int]]:
        return [(stage, slot) for stage, n in enumerate(self.slots) if stage in stages for slot in range(n)]
