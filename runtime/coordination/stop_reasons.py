"""From the failure of an attempt to the error that a topology stops with."""

from __future__ import annotations

import contextlib
import pickle

from stormline.runtime.errors import TooManyAttempts, TopologyFailed
from stormline.runtime.messages.wave import Failure
from stormline.runtime.world.world import World
from stormline.topology.attempt import TransactionAttempt

UNPACK_SECS = 5.0
_REMEDY = "nothing durable is lost; submit the topology again to go on where it stopped"


def fatal_error(world: World, topology: str, attempt: TransactionAttempt | None, failure: Failure) -> TopologyFailed:
    """Return the error for an exception of user code: the user's traceback first, then where it happened."""
    where = f" (transaction {attempt})" if attempt is not None else ""
    trace = f"{failure.traceback.rstrip()}\n\n" if failure.traceback else ""
    error = TopologyFailed(f"{trace}topology {topology!r} stopped: {failure.message}{where}; {_REMEDY}")
    if failure.exception is not None:
        error.__cause__ = _unpacked(world, failure.exception)
    return error


def _unpacked(world: World, packed: bytes) -> BaseException | None:
    """Return the user's exception, where its class lets it be made again: within a time, and raising nothing.

    Its code runs in a thread of its own: what it raises there, SystemExit too, ends nothing else.
    """
    found: list[object] = []

    def unpack() -> None:
        with contextlib.suppress(BaseException):
            found.append(pickle.loads(packed))

    world.start_thread("stormline-unpack-exception", unpack).join(UNPACK_SECS)
    cause = found[0] if found else None
    return cause if isinstance(cause, BaseException) else None


def too_many_attempts(topology: str, attempt: TransactionAttempt, failures: int, cause: Failure) -> TooManyAttempts:
    """Return the error for a batch that has failed as often as it may."""
    return TooManyAttempts(
        f"topology {topology!r} stopped: transaction {attempt.transaction_id} has failed {failures} times, which is "
        f"topology.max.batch.attempts; the last time: {cause.message}; {_REMEDY}"
    )
