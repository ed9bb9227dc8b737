"""SparkEngine: one Spark job a wave, one Spark stage a stage of the plan; one job a turn of a commit.

The one module that knows RDDs.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
import uuid
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import cloudpickle
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD, SparkContext
from pyspark.traceback_utils import SCCallSiteSync

from stormline.runtime.commit.executor_messages import split
from stormline.runtime.messages.commit_request import CommitRequest
from stormline.runtime.messages.engine import EngineFailure
from stormline.runtime.messages.wave import Wave, WaveResult
from stormline.runtime.messages.wave_room import EMITTED_SHARE, bytes_for_each
from stormline.runtime.processing.driver_stage import run_driver_stage
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.slot_report import read_report
from stormline.runtime.processing.slot_reports import merge_reports
from stormline.runtime.processing.stage_runner import SlotBlock
from stormline.runtime.processing.wave_shape import WaveShaper
from stormline.runtime.spark.call_watch import read_calls
from stormline.runtime.spark.driver_blocks import GivenBlocks
from stormline.runtime.spark.hung_jvm import answers
from stormline.runtime.spark.settings import is_local
from stormline.runtime.spark.worker import CloseTask, CommitPartTask, StageTask
from stormline.runtime.tasks.debug_log import log_levels
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.running_calls import CallReport
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.config import WORKERS, setting
from stormline.version import __version__

log = logging.getLogger("stormline")

COMMIT_POOL = "stormline-commits"
"""Scheduler pool of commits: with spark.scheduler.mode=FAIR the next core that becomes free is theirs."""

TASKS_END_SECS = 10.0
"""Time to wait for the end of the tasks of a commit whose job has failed. Spark kills them after its kill timeout."""

TASKS_LOOK_SECS = 0.02

CLEAN_UP_SECS = 3.0
"""Time that Spark's JVM has to answer before anything is cleaned up on it."""


def _calls_directory(sc: SparkContext) -> str | None:
    """Return where workers on this machine tell of calls that take long: in Spark's directory, and gone with it."""
    directory = getattr(sc, "_temp_dir", None)
    return tempfile.mkdtemp(prefix="calls-", dir=directory) if directory and is_local(sc.master or "") else None


def _slot(key: int) -> int:
    return key


class _StageName(SCCallSiteSync):
    """Names the Spark stages made within, where PySpark would write "collect at …/spark_engine.py:60"."""

    def __init__(self, sc: SparkContext, title: str) -> None:
        self._context = sc
        self._call_site = title

    def __enter__(self) -> None:
        # Also where another topology's thread is within one of its own: Spark keeps the name by thread.
        self._context._jsc.setCallSite(self._call_site)
        SCCallSiteSync._spark_stack_depth += 1

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        SCCallSiteSync._spark_stack_depth -= 1
        self._context._jsc.setCallSite(None)


class SparkEngine:
    """Processes waves on Spark, and commits placed on the executors."""

    def __init__(self, sc: SparkContext, env: TaskEnvironment, name: str) -> None:
        self._sc = sc
        self._env = env
        self._name = name
        self._shaper = WaveShaper(env.plan)
        self._memory_bytes: int | None = None
        self._given = GivenBlocks(sc)
        self._run = f"{env.plan.topology_id}/{env.epoch}/{uuid.uuid4().hex}"
        self._calls = _calls_directory(sc)
        payload = (env.plan.for_executors(), env.epoch, log_levels(), self._calls)
        self._payload = sc.broadcast(cloudpickle.dumps(payload))
        self._path = tuple(sys.path) if is_local(sc.master or "") else ()

    def _slots_max(self) -> int:
        return int(setting(self._env.plan.config, WORKERS) or self._sc.defaultParallelism)

    def _layout_for(self, wave: Wave) -> Layout:
        """Fit a wave to the cores there are now: on a cluster, executors come after the start, and go."""
        try:
            slots_max = self._slots_max()
        except Exception as error:
            raise EngineFailure(_reason(error), lasting=self._is_lasting(error)) from error
        return self._shaper.layout(len(wave.attempts), slots_max)

    def _with_room(self, wave: Wave, layout: Layout) -> Wave:
        """Tell a wave how much may go through the driver's JVM at once."""
        if self._memory_bytes is None:
            jvm = self._sc._jvm
            assert jvm is not None
            self._memory_bytes = int(jvm.java.lang.Runtime.getRuntime().maxMemory())
        limit = int(self._sc._jsc.sc().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g"))
        back = bytes_for_each(self._memory_bytes, max(layout.slots), limit)
        return replace(wave, bytes_max=back, emitted_bytes_max=self._memory_bytes // EMITTED_SHARE)

    def process(self, wave: Wave) -> WaveResult:
        """Run the processing phase of a wave as one job."""
        layout = self._layout_for(wave)
        try:
            wave = self._with_room(wave, layout)
        except Exception as error:
            raise EngineFailure(_reason(error), lasting=self._is_lasting(error)) from error
        given, reports = run_driver_stage(self._env, layout, wave)
        sc = self._sc
        try:
            sc.setJobGroup(self._run, f"{self._name}: {wave.title}", interruptOnCancel=False)
            rdd: RDD[Any] | None = None
            title = ""
            packed = cloudpickle.dumps(wave, protocol=5)  # metadata may be of a class of the script
            for stage in layout.on_executors:
                rdd = self._add_stage(rdd, title, stage, layout, given, packed)
                title = f"{self._name}: {wave.title}: {', '.join(layout.components[stage])}"
                rdd.setName(title)
            if rdd is not None:
                with _StageName(sc, title):
                    reports += [read_report(block) for _, block in rdd.collect()]
        except Exception as error:
            raise EngineFailure(_reason(error), lasting=self._is_lasting(error)) from error
        finally:
            self._given.forget()
        result = merge_reports(wave, layout, reports)
        self._shaper.learn(result)
        return result

    def _add_stage(
        self,
        rdd: RDD[Any] | None,
        title_before: str,
        stage: int,
        layout: Layout,
        given: list[SlotBlock],
        packed: bytes,
    ) -> RDD[Any]:
        slots = layout.slots[stage]
        if rdd is None:
            rdd = self._given.to_slots(given, slots)
        else:
            # Writing the shuffle is the end of the stage before.
            with _StageName(self._sc, title_before):
                rdd = rdd.partitionBy(slots, _slot)
        task = StageTask(
            __version__, self._run, self._payload, packed, stage, layout.slots_max, layout.at_commit, self._path
        )
        return rdd.mapPartitionsWithIndex(task, preservesPartitioning=False)

    def commit(self, request: CommitRequest) -> list[bytes]:
        """Run one turn of a commit as one job, in the calling thread, beside the job of a wave."""
        sc = self._sc
        group = self._commit_group(request.attempt)
        title = f"{self._name}: {request.title}"
        try:
            parts = split(request, self._slots_max())
            sc.setJobGroup(group, title, interruptOnCancel=False)
            sc.setLocalProperty("spark.scheduler.pool", COMMIT_POOL)
            task = CommitPartTask(__version__, self._run, self._payload, self._path)
            rdd = sc.parallelize(parts, len(parts)).mapPartitions(task)
            rdd.setName(title)
            with _StageName(sc, title):
                return rdd.collect()
        except Exception as error:
            self._await_tasks(group)
            raise EngineFailure(_reason(error), lasting=self._is_lasting(error)) from error

    def _commit_group(self, attempt: TransactionAttempt) -> str:
        return f"{self._run}/commit/{attempt}"

    def cancel_commit(self, attempt: TransactionAttempt) -> None:
        """Cancel the jobs of this attempt's commit, also one that Spark has not heard of yet."""
        jsc = self._sc._jsc
        if jsc is not None:
            jsc.sc().cancelJobGroupAndFutureJobs(self._commit_group(attempt))

    def _await_tasks(self, group: str) -> None:
        """Wait until no task of a job that has failed runs any more, as far as Spark knows: they end after their job.

        So effects of a commit that failed end before those of the next attempt begin; but for those of executors that
        Spark has lost sight of, which the token turns away.
        """
        deadline = time.monotonic() + TASKS_END_SECS
        try:
            tracker = self._sc.statusTracker()
            while time.monotonic() < deadline:
                jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
                stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
                running = any(job is not None and job.status == "RUNNING" for job in jobs)
                if not running and not any(stage is not None and stage.numActiveTasks > 0 for stage in stages):
                    return
                time.sleep(TASKS_LOOK_SECS)
        except Exception as error:
            log.info("waiting for the tasks of %s: %s", group, _reason(error))

    def _is_lasting(self, error: Exception) -> bool:
        try:
            stopped = self._sc._jsc is None or self._sc._jsc.sc().isStopped()
        except Exception:  # the JVM has died
            stopped = True
        if stopped:
            return True
        text = str(error)
        crashed = "exited unexpectedly" in text or "EOFException" in text
        return "PythonException" in text and not crashed

    def cancel(self) -> None:
        """Cancel the job of the wave; its tasks end within the kill timeout, and what they give is ignored."""
        self._env.emitters.cancel_wave()
        self._sc.cancelJobGroup(self._run)

    def calls(self, attempts: Collection[TransactionAttempt]) -> list[CallReport]:
        """Return the calls of user code that run in the workers; none where those are on other machines."""
        return [] if self._calls is None else read_calls(self._calls, attempts)

    def close(self) -> None:
        """Let components clean up in the workers, as far as they still live, and free the broadcast."""
        if not answers(self._sc._gateway, CLEAN_UP_SECS):
            log.warning("Spark does not answer: the components of %s are not cleaned up in its workers", self._name)
            return
        try:
            slots = max(Layout(self._env.plan, self._slots_max()).slots)
            self._sc.setJobGroup(self._run, f"{self._name}: clean up", interruptOnCancel=False)
            self._sc.parallelize(range(slots), slots).mapPartitionsWithIndex(CloseTask(self._run)).collect()
            self._payload.destroy()
        except Exception as error:
            log.info("cleaning up after %s: %s", self._name, _reason(error))


def _reason(error: Exception) -> str:
    """Return what went wrong without Spark's own stack traces."""
    if isinstance(error, Py4JError) and hasattr(error, "java_exception"):
        text = str(error.java_exception.getMessage() or error.java_exception)
    else:
        text = str(error)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return "\n".join(lines)[:4000] or repr(error)
