"""Says where a topology's loop hangs, or its spout's coordinator does not answer."""

from __future__ import annotations

import logging

from stormline.runtime.coordination.topology_runner import TopologyRunner
from stormline.runtime.world.thread_stack import stack_of
from stormline.runtime.world.world import Thread, World

LOOK_SECS = 5.0
HANGS_SECS = 30.0
"""How long a call may take before there is a warning; each further one comes when it has taken twice as long."""

log = logging.getLogger("stormline")


def watch_loop(world: World, name: str, runner: TopologyRunner, loop: Thread) -> None:
    """Watch over a loop and a coordinator, in a thread that ends with the loop."""
    world.start_thread(f"stormline-{name}-watch", _watch, world, name, runner, loop)


_OF_EMITTER = (
    "topology %r has waited for %.0f s for an emitter; until it comes back, nothing more is emitted. It is %s\n%s"
)


class _Patience:
    """Warns of one thread whose present call, known by when it began, takes too long."""

    def __init__(self, world: World, warning: str, thread: Thread) -> None:
        self._world = world
        self._warning = warning
        self._thread = thread
        self._begun: float | None = None
        self._secs = HANGS_SECS

    def look(self, name: str, begun: float | None, where: str = "at") -> None:
        if begun != self._begun:
            self._begun, self._secs = begun, HANGS_SECS
        if begun is not None and self._world.monotonic() - begun >= self._secs:
            self._secs *= 2
            log.warning(self._warning, name, self._world.monotonic() - begun, where, stack_of(self._thread))


def _watch(world: World, name: str, runner: TopologyRunner, loop: Thread) -> None:
    step = _Patience(
        world,
        "topology %r has waited for %.0f s in one call; until that returns, nothing begins but commits that were ready "
        "before. It is %s\n%s",
        loop,
    )
    question = _Patience(
        world,
        "topology %r has waited for %.0f s for its spout's coordinator; until it answers, no new batch begins. It is "
        "%s\n%s",
        runner.spout.thread,
    )
    emitters: dict[int, _Patience] = {}
    while not runner.ended.wait(LOOK_SECS):
        step.look(name, runner.step_begun)
        question.look(name, runner.spout.asked_at, f"asked {runner.spout.question}, and is at")
        for task, begun, thread in runner.emitters.running():
            emitters.setdefault(task, _Patience(world, _OF_EMITTER, thread)).look(
                name, begun, f"that of task {task}, at"
            )
