"""The log of what components with topology.debug emit: seen also where the user has configured no logging."""

from __future__ import annotations

import logging

from stormline.runtime.tuples.columns import Row, Tuples, rows_of
from stormline.topology.config import DEBUG
from stormline.topology.errors import ColumnCannotTravel
from stormline.topology.plan import Plan

debug_log = logging.getLogger("stormline.debug")
"""A logger of its own, so that to show the tuples shows nothing else."""

_STORMLINE = logging.getLogger("stormline")


def show_debug(plan: Plan) -> None:
    """Let the tuples of components with topology.debug be seen, unless the user's own logging says what is.

    Python shows nothing below a warning where no logging was configured, and `set_debug(True)` would do nothing there.
    """
    configs = [plan.config, *(planned.component.config for planned in plan.components.values())]
    if not any(config.get(DEBUG) for config in configs) or logging.getLogger().handlers:
        return
    if _STORMLINE.level == debug_log.level == logging.NOTSET:
        debug_log.setLevel(logging.INFO)
    if not _STORMLINE.handlers and not debug_log.handlers:  # `stormline run` has one
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        debug_log.addHandler(handler)


def log_levels() -> dict[str, int]:
    """Return the levels that the driver logs at, by logger, for the executors to log at."""
    return {log.name: log.getEffectiveLevel() for log in (_STORMLINE, debug_log)}


class Logged:
    """A route that logs every tuple, for components with topology.debug."""

    def __init__(self, component: str, task: int, stream: str) -> None:
        self._what = (component, task, stream)

    def take(self, tuples: Tuples) -> None:
        """Log tuples; what a record batch holds that no tuple can stops nothing here."""
        try:
            for rows in rows_of(tuples):
                for row in rows:
                    debug_log.info("%s, task %d emits to %s: %r", *self._what, row)
        except ColumnCannotTravel as error:
            debug_log.info("%s, task %d emits to %s: a record batch of %d rows; %s", *self._what, len(tuples), error)

    def take_direct(self, task: int, row: Row) -> None:
        """Log a row."""
        debug_log.info("%s, task %d emits to %s task %d: %r", *self._what, task, row)

    def flush(self) -> None:
        """Do nothing: nothing waits."""
