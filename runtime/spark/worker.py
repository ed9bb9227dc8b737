"""What runs in Spark's Python workers: one slot of one stage, or one part of a commit.

The only module whose code is named in a closure.
"""

from __future__ import annotations

import gc
import logging
import pickle
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormline.runtime.commit.executor_part import ExecutorPart
from stormline.runtime.errors import MixedVersions
from stormline.runtime.messages.wave import Wave
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.stage_runner import StageRunner
from stormline.runtime.spark.call_watch import watch_calls
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.version import __version__

if TYPE_CHECKING:
    from pyspark import Broadcast

GC_THRESHOLD = 100_000
"""New objects between two looks of the garbage collector. Rows, or a batch's records, wait in lists by the thousand: at
Python's 700 it looked through them again and again, for half the time of a fields grouping."""

_ENVIRONMENTS: dict[str, TaskEnvironment] = {}


def _check_version(version: str) -> None:
    if version != __version__:
        raise MixedVersions(f"the driver runs stormline {version}, this executor {__version__}; install one of them")


def environment(run: str, payload: Broadcast[bytes]) -> TaskEnvironment:
    """Return this worker's environment of a run; those of earlier runs of the same topology are closed."""
    env = _ENVIRONMENTS.get(run)
    if env is None:
        gc.set_threshold(GC_THRESHOLD)
        plan, epoch, levels, calls_directory = pickle.loads(payload.value)
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s executor: %(message)s")
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        for other in [key for key, old in _ENVIRONMENTS.items() if old.plan.topology_id == plan.topology_id]:
            _ENVIRONMENTS.pop(other).close()
        env = _ENVIRONMENTS[run] = TaskEnvironment(plan, epoch)
        watch_calls(env, calls_directory)
        _keep_loaded()
    return env


def _keep_loaded() -> None:
    """Let the garbage collector look no more at what is loaded and stays: modules, for the most part.

    PySpark's daemon collects after each task, while the next one waits for the worker; that took 10 to 30 ms.
    """
    gc.unfreeze()  # what an earlier run has left goes now
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class StageTask:
    """One stage of one wave, for any of its slots.

    `path`: where the driver finds modules, on the same machine.
    """

    version: str
    run: str
    payload: Broadcast[bytes]
    wave: bytes
    stage: int
    slots_max: int
    at_commit: frozenset[int]
    path: tuple[str, ...]

    def __call__(self, slot: int, incoming: Iterable[Any]) -> Iterator[Any]:
        """Run the slot on the blocks that came for it."""
        _check_version(self.version)
        sys.path += [entry for entry in self.path if entry not in sys.path]
        env = environment(self.run, self.payload)
        wave: Wave = pickle.loads(self.wave)
        layout = Layout(env.plan, self.slots_max, self.at_commit)
        return StageRunner(env, layout, wave, self.stage, slot).run(incoming)


@dataclass(frozen=True)
class CommitPartTask:
    """One turn of a commit, for any of its parts; see `executor_messages` for why it runs user code at most once."""

    version: str
    run: str
    payload: Broadcast[bytes]
    path: tuple[str, ...]

    def __call__(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Run the part that came, and give its reply; nothing came where the input was cut."""
        from pyspark import TaskContext  # here, since a bundle is checked where there is no Spark

        _check_version(self.version)
        sys.path += [entry for entry in self.path if entry not in sys.path]
        context = TaskContext.get()
        assert context is not None
        env = environment(self.run, self.payload)
        for sealed in parts:
            slot = ExecutorPart(env, sealed, context.attemptNumber())
            slot.run()
            yield slot.sealed_reply()


@dataclass(frozen=True)
class CloseTask:
    """Lets the components of a run clean up in this worker."""

    run: str

    def __call__(self, slot: int, incoming: Iterable[Any]) -> Iterator[Any]:
        """Close the environment, if this worker has one."""
        env = _ENVIRONMENTS.pop(self.run, None)
        if env is not None:
            env.close()
        return iter(())
