"""LinearDRPCTopologyBuilder: declares a function as a line of bolts, each request of which is a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, overload

from stormline.topology.bolt_declarer import BoltDeclarer, chooser_and_stream, fields_and_stream
from stormline.topology.builder import TransactionalTopologyBuilder, declare_bolt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    AnyBolt,
    Conf,
    ITransactionalCoordinator,
    ITransactionalEmitter,
    ITransactionalSpout,
)
from stormline.topology.errors import InvalidComponent, InvalidGrouping, InvalidId, InvalidStream, NoRemoteDRPC
from stormline.topology.fields import Fields
from stormline.topology.grouping import DEFAULT_STREAM, CustomStreamGrouping, GlobalStreamId, GroupingKind
from stormline.topology.identifiers import is_part
from stormline.topology.storm_names import storm_names
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.topology import Component, ComponentKind, Topology

PREPARE_ID = "prepare-request"
"""What emits [request, args], by Storm's name."""


class ILocalDRPC(Protocol):
    """What `create_local_topology` takes: `LocalDRPC`."""

    def submit_topology(self, name: str, config: Mapping[str, Any] | None, topology: DRPCTopology) -> Any:
        """Let a topology answer the requests to its function."""

    def execute(self, function: str, args: Any) -> Any:
        """Return the result of one request."""


class _Requests(ITransactionalSpout):
    """Stands where a topology has its spout; the requests come from `ILocalDRPC.execute`."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("request", "args"))

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> ITransactionalCoordinator:
        raise AssertionError("never asked: requests make no batches of transactions")

    def get_emitter(self, conf: Conf, context: TopologyContext) -> ITransactionalEmitter:
        raise AssertionError("never asked: requests make no batches of transactions")


@dataclass(frozen=True, slots=True)
class DRPCTopology:
    """A function, checked and frozen: a line of bolts, and the `LocalDRPC` whose requests it answers."""

    function: str
    topology: Topology
    drpc: ILocalDRPC


@storm_names()
class LinearDRPCInputDeclarer:
    """Settings and groupings of one bolt, its source is always the bolt before it. Every call returns it."""

    def __init__(self, bolt: BoltDeclarer, previous: str) -> None:
        self._bolt = bolt
        self._previous = previous

    def shuffle_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Spread tuples evenly over the tasks."""
        return self._said(self._bolt.shuffle_grouping(self._previous, stream))

    @overload
    def fields_grouping(self, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer: ...

    @overload
    def fields_grouping(self, stream: str, fields: Sequence[str], /) -> LinearDRPCInputDeclarer: ...

    def fields_grouping(
        self, fields: Sequence[str] | str, stream: str | Sequence[str] = DEFAULT_STREAM
    ) -> LinearDRPCInputDeclarer:
        """Send tuples with the same values of `fields` to the same task; Storm's order (stream, fields) works too."""
        return self._said(self._bolt.fields_grouping(self._previous, *fields_and_stream(fields, stream)))

    def global_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Send every tuple to the task with the lowest id."""
        return self._said(self._bolt.global_grouping(self._previous, stream))

    def none_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Say that any task will do."""
        return self._said(self._bolt.none_grouping(self._previous, stream))

    def all_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Send every tuple to every task."""
        return self._said(self._bolt.all_grouping(self._previous, stream))

    def direct_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Let the producer name the task, by `emit_direct`."""
        return self._said(self._bolt.direct_grouping(self._previous, stream))

    def local_or_shuffle_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Spread tuples evenly over the tasks, all of which are in one process."""
        return self._said(self._bolt.local_or_shuffle_grouping(self._previous, stream))

    @overload
    def partial_key_grouping(
        self, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM
    ) -> LinearDRPCInputDeclarer: ...

    @overload
    def partial_key_grouping(self, stream: str, fields: Sequence[str], /) -> LinearDRPCInputDeclarer: ...

    def partial_key_grouping(
        self, fields: Sequence[str] | str, stream: str | Sequence[str] = DEFAULT_STREAM
    ) -> LinearDRPCInputDeclarer:
        """Send tuples of one key to two tasks, each time to the one that got less."""
        return self._said(self._bolt.partial_key_grouping(self._previous, *fields_and_stream(fields, stream)))

    @overload
    def custom_grouping(
        self, grouping: CustomStreamGrouping, stream: str = DEFAULT_STREAM
    ) -> LinearDRPCInputDeclarer: ...

    @overload
    def custom_grouping(self, stream: str, grouping: CustomStreamGrouping, /) -> LinearDRPCInputDeclarer: ...

    def custom_grouping(
        self, grouping: CustomStreamGrouping | str, stream: str | CustomStreamGrouping = DEFAULT_STREAM
    ) -> LinearDRPCInputDeclarer:
        """Let an object choose the tasks."""
        return self._said(self._bolt.custom_grouping(self._previous, *chooser_and_stream(grouping, stream)))

    def set_num_tasks(self, tasks: int) -> LinearDRPCInputDeclarer:
        """Give the bolt this many tasks, whatever its parallelism."""
        return self._said(self._bolt.set_num_tasks(tasks))

    def set_debug(self, on: bool) -> LinearDRPCInputDeclarer:
        """Log every tuple that the bolt emits."""
        return self._said(self._bolt.set_debug(on))

    def add_configuration(self, key: str, value: Any) -> LinearDRPCInputDeclarer:
        """Set one key for this bolt."""
        return self._said(self._bolt.add_configuration(key, value))

    def add_configurations(self, config: Mapping[str, Any]) -> LinearDRPCInputDeclarer:
        """Set several keys for this bolt."""
        return self._said(self._bolt.add_configurations(config))

    def _said(self, bolt: BoltDeclarer) -> LinearDRPCInputDeclarer:
        assert bolt is self._bolt
        return self


@storm_names()
class LinearDRPCTopologyBuilder:
    """Declares a function as a line of bolts: the first one gets [request, args], the last one emits [request, result].

    Each request is a batch, whose id is the first value of every tuple. A BatchBolt's `finish_batch` is called once all
    tuples of that request have come. Of the first bolt only tasks that get the arguments, and of the last one only the
    task that the request's id belongs to, finish a request; of those between, every task does, with no tuples too.

    Args:
        function (str): name of the function, by which `LocalDRPC.execute` calls it.

    Raises:
        InvalidId: `function` is no name as a topology id may be.
    """

    def __init__(self, function: str) -> None:
        if not is_part(function):
            raise InvalidId(
                f"DRPC function {function!r}: expected 1 to 128 letters, digits, '_', '.' or '-', not beginning with "
                "'.' or '-', as for a topology id"
            )
        self._function = function
        self._bolts: list[BoltDeclarer] = []

    def add_bolt(self, bolt: AnyBolt, parallelism: int | None = None) -> LinearDRPCInputDeclarer:
        """Add a BasicBolt or a BatchBolt to the end of the line.

        Args:
            bolt (AnyBolt): the bolt.
            parallelism (int | None): number of its tasks, at least 1; None: 1.

        Returns:
            its declarer, for settings and for its grouping on the bolt before it.

        Raises:
            InvalidComponent: it is neither, or a committer.
            InvalidParallelism: `parallelism` is no whole number of at least 1.
        """
        number = len(self._bolts)
        declared = declare_bolt(f"bolt{number}", bolt, parallelism)
        if declared.committer:
            raise InvalidComponent(
                f"DRPC function {self._function!r}: bolt {number} ({type(bolt).__name__}) is an ICommitter, and a "
                "request has no commit phase; make it a BaseBatchBolt, or declare it in a TransactionalTopologyBuilder"
            )
        self._bolts.append(declared)
        return LinearDRPCInputDeclarer(declared, f"bolt{number - 1}" if number else PREPARE_ID)

    def create_local_topology(self, drpc: ILocalDRPC) -> DRPCTopology:
        """Check the whole and return it frozen; a cluster's `submit_topology` then runs it, in this process.

        Args:
            drpc (ILocalDRPC): where requests come from.

        Returns:
            the function, frozen, for a cluster's `submit_topology`.

        Raises:
            DeclarationError: another of its kinds: the graph is wrong.
            InvalidComponent: `drpc` is no `LocalDRPC`, or there is no bolt.
            InvalidGrouping: a bolt has no grouping on the one before it, or tuples of one request may come to several
                tasks of the last one.
        """
        if not callable(getattr(drpc, "submit_topology", None)):
            raise InvalidComponent(
                f"DRPC function {self._function!r}: create_local_topology got {drpc!r}, expected a LocalDRPC()"
            )
        if not self._bolts:
            raise InvalidComponent(f"DRPC function {self._function!r} has no bolt; give it at least one by add_bolt")
        builder = TransactionalTopologyBuilder(self._function, PREPARE_ID, _Requests())
        for number, declared in enumerate(self._bolts):
            bolt = builder.add(declared.copy())
            if not bolt.subscribed and number:
                raise InvalidGrouping(
                    f"DRPC function {self._function!r}: bolt {number} has no grouping on the bolt before it; say which "
                    "task gets a tuple, by shuffle_grouping() or another one"
                )
            if not bolt.subscribed:
                bolt.none_grouping(PREPARE_ID)
        topology = builder.build_topology()
        _check_result(self._function, topology.bolts[-1])
        check_one_finishes(topology, topology.bolts[-1].num_tasks)
        return DRPCTopology(self._function, topology, drpc)

    def create_remote_topology(self) -> DRPCTopology:
        """Raise `NoRemoteDRPC`: there are no DRPC servers here, as Storm 1.2.4 has.

        Returns:
            nothing: it always raises.

        Raises:
            NoRemoteDRPC: always.
        """
        raise NoRemoteDRPC(
            f"DRPC function {self._function!r}: there are no DRPC servers here, requests are answered in one process; "
            "use create_local_topology(LocalDRPC()), and call its execute(function, args) from a server of your own"
        )


def _check_result(function: str, last: Component) -> None:
    who = f"DRPC function {function!r}: the last bolt, {last.id!r} ({type(last.obj).__name__}),"
    if len(last.streams) != 1:
        raise InvalidStream(f"{who} declares the streams {list(last.streams)}, expected exactly one, for the result")
    ((name, stream),) = last.streams.items()
    if len(stream.fields) != 2:
        raise InvalidStream(
            f"{who} declares the fields {stream.fields.to_list()} on stream {name!r}, expected two: the request's id, "
            "and the result"
        )


def check_one_finishes(topology: Topology, tasks: int) -> None:
    """Check that all tuples of a request come to one task of a last BatchBolt of so many tasks: it gives the result.

    Raises:
        InvalidGrouping: they may come to several, each of which would give a result of its own.
    """
    last = topology.bolts[-1]
    if tasks == 1 or last.kind is ComponentKind.BASIC_BOLT:
        return
    kinds = {grouping.kind for grouping in last.inputs.values()}
    by_request = all(grouping.fields == (_request_field(topology, source),) for source, grouping in last.inputs.items())
    if kinds == {GroupingKind.GLOBAL} or (kinds == {GroupingKind.FIELDS} and by_request):
        return
    field = _request_field(topology, next(iter(last.inputs)))
    raise InvalidGrouping(
        f"DRPC function {topology.id!r}: the last bolt, {last.id!r} ({type(last.obj).__name__}), has {tasks} tasks, "
        "and the tuples of one request may come to several of them; group them by "
        f"fields_grouping([{field!r}]), or give it one task"
    )


def _request_field(topology: Topology, source: GlobalStreamId) -> str:
    return topology.components[source.component].streams[source.stream].fields[0]
