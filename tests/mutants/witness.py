"""Witness: keeps what drivers and threads ended with in one history; the oracle's texts name only what it was."""

from __future__ import annotations

import logging
import traceback

from tests.mutants.found import python_errors
from tests.simulation.driver import Driver
from tests.simulation.scheduler import Task
from tests.simulation.world import World, world


class Witness(logging.Handler):
    """Sees each error that a driver or a thread of it ends with, and each warning that the runtime logs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.trace = ""
        self.logged: dict[str, None] = {}

    def attach(self) -> None:
        """See all histories of this process from now on."""
        check_end, died = Driver._check_end, World.died

        def seen_end(driver: Driver, error: BaseException | None) -> None:
            self._ended(error)
            check_end(driver, error)

        def seen_died(where: World, task: Task, error: Exception) -> None:
            self._ended(error)
            died(where, task, error)

        Driver._check_end = seen_end  # type: ignore[method-assign, assignment]
        World.died = seen_died  # type: ignore[method-assign, assignment]
        logging.disable(logging.NOTSET)
        log = logging.getLogger("stormline")
        log.setLevel(logging.INFO)
        log.handlers, log.propagate = [self], False

    def forget(self) -> None:
        """Begin a history."""
        self.trace, self.logged = "", {}

    def raised(self, error: BaseException) -> None:
        """See an error that has ended the history."""
        self.trace = "".join(traceback.format_exception(error))
        self.logged.update(dict.fromkeys(python_errors(self.trace)))

    def _ended(self, error: BaseException | None) -> None:
        if error is not None and not _over():
            self.raised(error)

    def emit(self, record: logging.LogRecord) -> None:
        if _over():
            return
        self.logged.update(dict.fromkeys(python_errors(record.getMessage())))
        if record.exc_info and record.exc_info[1] is not None:
            self.logged.update(dict.fromkeys(python_errors("".join(traceback.format_exception(record.exc_info[1])))))


def _over() -> bool:
    """Return whether the history has its violation: what threads say when they are ended is of no account."""
    here = world()
    return here.closing or here.oracle.violation is not None
