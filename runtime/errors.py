"""Errors of a running topology; each message names what was got, where, and the remedy."""

from __future__ import annotations

from stormline.topology.errors import StormlineError, shown

# ---------------------------------------------------------------------------------------- durable state


class ZooKeeperUnreachable(StormlineError, ConnectionError):
    """No ZooKeeper answered in time."""


class NoZooKeeper(StormlineError, ValueError):
    """A topology on a cluster has no place to keep its state in."""


class ZooKeeperDenied(StormlineError, PermissionError):
    """ZooKeeper's access control forbids what the driver has to do."""


class InsecureState(StormlineError, PermissionError):
    """Others than this driver's identity can change its znodes."""


class AlreadyRunning(StormlineError):
    """Another driver runs this topology id, or its session has not expired yet."""


class Fenced(StormlineError):
    """Another driver has taken this topology over: this one must stop, and can write no more."""


class SessionLost(StormlineError, ConnectionError):
    """The ZooKeeper session has ended: this driver owns the topology no longer, and must stop."""


class StateDirGone(SessionLost):
    """The state directory was taken away under its driver, which can store nothing any more, and must stop."""


class StateCorrupt(StormlineError, ValueError):
    """Stored state that Stormline did not write, or not like this; nothing is overwritten."""


class StateTooLarge(StormlineError, ValueError):
    """A value or a write that ZooKeeper would not take; nothing was sent."""


class InvalidPath(StormlineError, ValueError):
    """A topology id, root or path that cannot name a znode, or a write that contradicts itself."""


class TopologyChanged(StormlineError, ValueError):
    """The stored state belongs to this topology id, but to another topology."""


class NewerState(StormlineError):
    """The stored state was written by a newer Stormline."""


class NotNext(StormlineError, ValueError):
    """A transaction was asked for out of order."""


class StateElsewhere(StormlineError, RuntimeError):
    """User state was asked for where it is not kept."""


class SinkMissing(StormlineError, RuntimeError):
    """A two-phase transaction is stored of a bolt that the topology has not, or not as such."""


class WrongAnswer(StormlineError, TypeError):
    """A sink answered with something else than the kind that was asked for."""


class NotCommitting(StormlineError, RuntimeError):
    """A component asked to take part in a commit phase that does not run here, or has ended."""

    @classmethod
    def of(cls, component: str, attempt: object) -> NotCommitting:
        """Return it with the message for a component that asks in the wrong place.

        Args:
            component (str): Who asks.
            attempt (object): Whose commit phase it asks for.
        """
        return cls(
            f"component {component!r} asks to take part in the commit of {attempt}, which does not run here now; use "
            "a store in finish_batch() of a committer, or of a bolt downstream of one, with the attempt that its "
            "prepare() was given, or in commit() of an ICommitterTransactionalSpout's emitter; where a bolt declares "
            "gathers, its prepare() and execute() run before the commit"
        )


class OtherEffects(StormlineError, RuntimeError):
    """A bolt declares where all its effects are, and has another one."""

    @classmethod
    def of(cls, component: str, target: object, other: object) -> OtherEffects:
        """Return it with the message for a component whose declaration does not hold.

        Args:
            component (str): Who has the effect.
            target (object): Where it says that all of them are.
            other (object): Where this one is.
        """
        return cls(
            f"bolt {component!r} declares effects_in = {target}, and stores in {other} as well: transactions that "
            "become durable together in the one would not be so in the other; leave effects_in out, or store all in it"
        )


class StateDirInUse(StormlineError):
    """Another process serves the embedded ZooKeeper's data directory."""


class DiskFull(StormlineError, OSError):
    """There is no room for the state, or for Spark's files."""

    __str__ = Exception.__str__


# ---------------------------------------------------------------------------------------- running


class TopologyFailed(StormlineError):
    """A topology stopped because user code raised; the message begins with the user's traceback."""


class TooManyAttempts(StormlineError):
    """One batch has failed as often as topology.max.batch.attempts allows."""


class InvalidPartitions(StormlineError, ValueError):
    """`num_partitions()` answered with something that is no number of partitions; nothing of it was stored."""

    @classmethod
    def given_by(cls, who: str, got: object) -> InvalidPartitions:
        """Return the error for an answer of `num_partitions()`.

        Args:
            who (str): whose answer it was, for the message.
            got (object): the answer.
        """
        return cls(
            f"num_partitions() of {who} returned {shown(got)}, of type {type(got).__name__}; expected how many "
            "partitions there are now, an int of 0 or more: return len() of a list of them, or 0 where there are none"
        )


class PositionMissing(StormlineError, ValueError):
    """An emitter returned None where only metadata says where the partition's next batch begins."""

    @classmethod
    def after_tuples(cls, spout: str, partition: int, attempt: object, rows: int) -> PositionMissing:
        """Return the error for an opaque emitter, whose None means that the partition gave nothing.

        Args:
            spout (str): id of the spout.
            partition (int): number of the partition.
            attempt (object): which try of which transaction.
            rows (int): number of tuples that were emitted.
        """
        return cls(
            f"emit_partition_batch of opaque spout {spout!r} emitted {rows} tuples of partition {partition} for "
            f"transaction {attempt} and returned None; expected metadata, the position after them. None says that the "
            "partition gives nothing now and keeps its old position, so they would be emitted again in the next batch: "
            "return metadata in every branch that emits"
        )

    @classmethod
    def after(cls, last: object, spout: str, partition: int, attempt: object, rows: int) -> PositionMissing:
        """Return the error for a partitioned emitter.

        Args:
            last (object): the partition's metadata before; None: there was none.
            spout (str): id of the spout.
            partition (int): number of the partition.
            attempt (object): which try of which transaction.
            rows (int): number of tuples that were emitted.
        """
        return cls(
            f"emit_partition_batch_new of spout {spout!r} emitted {rows} tuples of partition {partition} for "
            f"transaction {attempt} and returned None; its metadata before was {shown(last)}. Expected metadata that "
            "says which tuples these are, and where the next batch begins: with None that would be the partition's "
            "beginning. Return metadata in every branch; where there is nothing new, one of no tuples at that position"
        )


class EngineStopped(StormlineError):
    """Spark cannot process waves any more, or fails each of them."""


class DRPCExecutionException(StormlineError):
    """A DRPC request that has no result; where user code has raised, its error is the cause."""


class UnknownFunction(StormlineError, LookupError):
    """A DRPC function that nobody answers."""


class NoState(StormlineError, LookupError):
    """There is no state of a topology where one looks for it."""


class NotAbortable(StormlineError):
    """A two-phase transaction that may be committed yet was to be aborted by hand."""


class UndecidedTransaction(StormlineError):
    """A two-phase transaction that is not decided was to be committed by hand."""


class NotAuditable(StormlineError):
    """It cannot be told what a topology should have stored."""


class InvalidMetric(StormlineError, ValueError):
    """A metric that cannot be registered."""


class InvalidHook(StormlineError, TypeError):
    """A task hook that is none."""


class HookTooLate(StormlineError, RuntimeError):
    """A task hook that would hear nothing any more."""


class TopologyStopped(StormlineError):
    """A topology was stopped while somebody waited for it."""


class NotRunning(StormlineError, LookupError):
    """No topology of this name runs in a cluster."""


class WaitsForItself(StormlineError, RuntimeError):
    """A callback of the topology waits for what only the thread that it holds up can do."""


class UnsafeSpark(StormlineError, ValueError):
    """Spark is set up in a way that breaks a law."""


class MixedVersions(StormlineError):
    """Driver and executor run different versions of Stormline."""


class SparkUnavailable(StormlineError):
    """Spark did not start."""


class JavaMissing(StormlineError):
    """Java 17 or newer is needed and was not found."""
