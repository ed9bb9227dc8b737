"""The log of what components with topology.debug emit: seen also where the user has configured no logging."""

from __future__ import annotations

import logging

from stormline.topology.config import DEBUG
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
