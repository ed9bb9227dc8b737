"""Tells of calls of user code that take long on an executor: in its log, and in a file where the driver can read one.

Spark has no way back for a task that has not ended. So a thread of each Python worker looks at what the worker does; on
a local master the driver reads the same directory, elsewhere the executor's log has it.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Collection
from pathlib import Path

from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.running_calls import CallReport
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.config import ENABLE_MESSAGE_TIMEOUTS, MESSAGE_TIMEOUT_SECS, setting

LOOK_SECS_MAX = 5.0
LONG_SECS_MAX = 15.0
"""After which a call is told of, or after half of the time-out if that is less; each further time after twice as long.
"""

log = logging.getLogger("stormline")


def watch_calls(env: TaskEnvironment, directory: str | None) -> None:
    """Watch over the calls of this worker in a thread of its own, until `env` is closed.

    `directory`: where to write them as well; None, or one that is not there: nowhere.
    """
    config = env.plan.config
    timeouts = setting(config, ENABLE_MESSAGE_TIMEOUTS)
    long_secs = min(LONG_SECS_MAX, float(setting(config, MESSAGE_TIMEOUT_SECS)) / 2 if timeouts else LONG_SECS_MAX)
    file = None if directory is None or not os.path.isdir(directory) else Path(directory, f"{os.getpid()}.json")
    name = f"stormline-{env.plan.topology_id}-calls"
    threading.Thread(target=_watch, args=(env, file, long_secs), daemon=True, name=name).start()


def _watch(env: TaskEnvironment, file: Path | None, long_secs: float) -> None:
    tell_after: dict[tuple[str, int | None, TransactionAttempt], float] = {}
    written = False
    look_secs = min(LOOK_SECS_MAX, long_secs / 4)
    while not env.closed.wait(look_secs):
        reports = env.calls.reports(secs=look_secs)
        if file is not None and (reports or written):
            written = _write(file, reports)
        keys = {report[:3]: report for report in reports}
        tell_after = {key: after for key, after in tell_after.items() if key in keys}
        for key, report in keys.items():
            if report.secs >= tell_after.setdefault(key, long_secs):
                tell_after[key] = 2 * report.secs
                log.warning("topology %s has long been in %s", env.plan.topology_id, report.text)
    if file is not None:
        _write(file, [])


def _write(file: Path, reports: Collection[CallReport]) -> bool:
    """Write them, so that the file is there as a whole or not at all; return whether it is."""
    try:
        if not reports:
            file.unlink(missing_ok=True)
            return False
        beside = file.with_suffix(".new")
        told = [[r.component, r.task, r.attempt.transaction_id, r.attempt.attempt_id, r.secs, r.text] for r in reports]
        beside.write_text(json.dumps(told))
        beside.replace(file)
    except OSError as error:  # a full disk harms nothing but this
        log.info("telling the driver of calls: %s", error)
    return bool(reports)


def read_calls(directory: str, attempts: Collection[TransactionAttempt]) -> list[CallReport]:
    """Return what the workers of this machine have told of the calls for these attempts: the longest first."""
    found: list[CallReport] = []
    for file in Path(directory).glob("*.json"):
        try:
            for component, task, txid, attempt_id, secs, text in json.loads(file.read_text()):
                attempt = TransactionAttempt(txid, attempt_id)
                if attempt in attempts:
                    found.append(CallReport(str(component), task, attempt, float(secs), str(text)))
        except (OSError, ValueError, TypeError):  # it went in this moment, or is none of ours
            continue
    return sorted(found, key=lambda report: -report.secs)
