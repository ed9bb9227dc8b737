"""What a two-phase commit sink is: rows are written while batches are processed, and become visible at their commit.

The executors begin a transaction of the resource, write, and *pre-commit* it: from then on it survives all crashes.
What finds it again is its *handle*. All handles of a transaction of the topology are durable in ZooKeeper, with what
fixes its batch, before the first of them is committed: that is the decision. Afterwards only `commit` is possible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

from stormline.topology.component import Conf
from stormline.topology.context import TopologyContext
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple, TupleSource

if TYPE_CHECKING:
    import pyarrow


class Semantic(StrEnum):
    """What a sink promises. Flink's Kafka producer has the same three."""

    EXACTLY_ONCE = "exactly once"
    """Each transaction's rows become visible once, at its commit, in the order of transactions, whatever crashes."""

    AT_LEAST_ONCE = "at least once"
    """Rows become visible while the batch is processed, in any order of transactions. A replay writes them again."""

    NONE = "none"
    """As at least once; but where writing fails, that is logged, and the batch goes on without those rows."""


class CommitOutcome(Enum):
    """What a resource knows after `commit`."""

    DONE = "it is committed now"
    ALREADY = "it was committed before"
    RETRY = "nobody knows, or it cannot be done now: ask again"
    LOST = "it is proven that it was not committed and never will be"


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A transaction that a resource lists as begun or pre-committed, and not ended.

    Attributes:
        label (str): the text of the label under which it was begun.
        handle (Any): what `recover_and_abort` takes: equal to what `pre_commit` returned for it.
        age_secs (float | None): seconds since it was pre-committed, or begun, where the resource knows.
    """

    label: str
    handle: Any
    age_secs: float | None = None


class TwoPhaseCommitSink(ABC):
    """A resource in which transactions can be prepared, and committed later by another process.

    Subclass it, and declare `TwoPhaseCommitBolt(YourSink(…))`. Flink's TwoPhaseCommitSinkFunction has the same calls.

    What is declared is plain data and is never opened. Each process that uses it makes a copy, which is opened once and
    serves many transactions: one for each task on the executors, where `begin_transaction`, `invoke` and `pre_commit`
    are called; and one in the driver, in one thread, where `commit`, `abort` and `list_prepared` are. A process may
    write many transactions side by side, of several attempts: what belongs to one is in the object that
    `begin_transaction` returns.

    Each method may raise FailedException: the batch is replayed, or what comes after its pre-commit is tried again.
    Anything else stops the topology.
    """

    prepared_limit_secs: float | None = None
    """Seconds after which the resource itself drops what is pre-committed, so that rows are lost: the topology warns
    from half of it on. None: it never does."""

    def open(self, conf: Conf, context: TopologyContext) -> None:
        """Called once in each process for each task that writes, and once in the driver, before all else.

        Args:
            conf (Conf): the configuration as the bolt has it.
            context (TopologyContext): that of the task; in the driver, of the bolt's first one.
        """

    def close(self) -> None:
        """Called at the end; not where the process is killed."""

    # ------------------------------------------------------------------------------------ on the executors

    @abstractmethod
    def begin_transaction(self, label: TransactionLabel) -> Any:
        """Begin a transaction, and return what the calls for it are given. Called when its first tuple is there.

        Args:
            label (TransactionLabel): its name, which no other transaction ever has, nor had. Name it by that in the
                resource: who looks for what was left behind goes by it.

        Returns:
            anything: it never leaves this process.
        """

    def invoke(self, transaction: Any, tup: Tuple) -> None:
        """Write one tuple, or keep it until there are many.

        Args:
            transaction (Any): what `begin_transaction` returned.
            tup (Tuple): what has arrived; its first value is the attempt.

        Raises:
            NotImplementedError: the sink takes record batches only.
        """
        raise NotImplementedError(f"{type(self).__name__} has no invoke(transaction, tup), which tuples are given to")

    def invoke_rows(self, transaction: Any, rows: Sequence[list[Any]], source: TupleSource) -> None:
        """Write many tuples of one stream at once; `invoke` of each, unless overridden.

        A sink that keeps rows until there are many is several times as fast with it. Where a subclass overrides
        `invoke` only, that is what is called.

        Args:
            transaction (Any): what `begin_transaction` returned.
            rows (Sequence[list[Any]]): the values of each tuple, its attempt first; they are the sink's own.
            source (TupleSource): who emitted them; `source.fields` names their values.
        """
        for values in rows:
            self.invoke(transaction, Tuple(values, source))

    def invoke_batch(self, transaction: Any, batch: pyarrow.RecordBatch) -> None:
        """Write a record batch, where the sink is declared in a `TwoPhaseCommitArrowBolt`.

        Args:
            transaction (Any): what `begin_transaction` returned.
            batch (pyarrow.RecordBatch): a column for each field of the stream after the first.

        Raises:
            NotImplementedError: the sink takes tuples only.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no invoke_batch(transaction, batch), which record batches are given to"
        )

    @abstractmethod
    def pre_commit(self, transaction: Any) -> Any:
        """Write what is left, and make the transaction survive all crashes, invisible still; return its handle.

        The handle is plain data for msgpack, from which any process can commit or abort: keep it small, since all those
        of one batch go into one znode of less than 1 MB. None: nothing was written, and there is nothing to commit;
        the transaction must be over then.

        Args:
            transaction (Any): what `begin_transaction` returned.

        Returns:
            the handle, or None.
        """

    def roll_back(self, transaction: Any) -> None:
        """Drop a transaction that was begun and not pre-committed, or whose `pre_commit` raised.

        Does nothing unless overridden. Not called where the process dies: whatever is left then, the resource drops by
        itself, or lists.

        Args:
            transaction (Any): what `begin_transaction` returned.
        """

    # ------------------------------------------------------------------------------------ in the driver

    @abstractmethod
    def commit(self, handle: Any) -> CommitOutcome:
        """Make a pre-committed transaction visible: called for one transaction of the topology after another.

        Called again, perhaps by another process, until it is done: a second call must find that out. FailedException
        means RETRY. LOST only where it is proven, never because the resource knows no such transaction: it may have
        been committed, and forgotten.

        Args:
            handle (Any): what `pre_commit` returned.

        Returns:
            what the resource knows now.
        """

    @abstractmethod
    def abort(self, handle: Any) -> None:
        """Drop a pre-committed transaction; do nothing where it is gone. Nothing of it was, or ever will be, committed.

        Args:
            handle (Any): what `pre_commit` returned, or `list_prepared` listed.
        """

    def recover_and_commit(self, handle: Any) -> CommitOutcome:
        """Commit what a driver before has decided; as `commit`, unless overridden.

        Args:
            handle (Any): what `pre_commit` returned, in another process.

        Returns:
            what the resource knows now.
        """
        return self.commit(handle)

    def recover_and_abort(self, handle: Any) -> None:
        """Drop what somebody left behind; as `abort`, unless overridden.

        Args:
            handle (Any): what `pre_commit` returned in another process, or `list_prepared` listed.
        """
        self.abort(handle)

    def list_prepared(self, prefix: str) -> Iterable[PreparedTransaction] | None:
        """Return the transactions that are begun or pre-committed, and not over, with labels that begin with `prefix`.

        None, unless overridden: the resource cannot tell; then what a killed process has pre-committed stays until the
        resource drops it.

        Args:
            prefix (str): the beginning of their labels' texts.
        """
        return None


def takes_rows(sink: TwoPhaseCommitSink) -> bool:
    """Return whether tuples are to be given to `invoke_rows`: not where a subclass has overridden `invoke` since."""
    made_in = {name: i for i, of in reversed([*enumerate(type(sink).__mro__)]) for name in vars(of)}
    return made_in["invoke_rows"] <= made_in["invoke"]
