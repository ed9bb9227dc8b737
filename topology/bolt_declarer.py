"""BoltDeclarer: what `set_bolt` returns, by which a bolt is configured and subscribes to streams."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import cast, overload

from stormline.topology.declarers import ComponentDeclarer
from stormline.topology.errors import DuplicateGrouping, InvalidGrouping
from stormline.topology.grouping import (
    DEFAULT_STREAM,
    CustomStreamGrouping,
    GlobalStreamId,
    Grouping,
    GroupingKind,
)
from stormline.topology.storm_names import storm_names


@storm_names()
class BoltDeclarer(ComponentDeclarer):
    """Settings and groupings of one bolt; every call returns the declarer. `set_bolt` returns it.

    A bolt may subscribe to several streams and components, to each stream once. Storm 1.2.4 lets the last of two
    groupings on one stream win; here it is an error.
    """

    @property
    def committer(self) -> bool:
        """Whether it was declared as a committer."""
        return self._committer

    @property
    def subscribed(self) -> bool:
        """Whether it has a grouping."""
        return bool(self._inputs)

    def copy(self) -> BoltDeclarer:
        """Return a declarer of the same bolt, with settings and groupings of its own from now on."""
        copied = copy.copy(self)
        copied._config, copied._inputs = dict(self._config), dict(self._inputs)
        return copied

    def grouping(self, source: str | GlobalStreamId, grouping: Grouping, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Subscribe to a stream by any grouping.

        Args:
            source (str | GlobalStreamId): id of the component that emits it, or component and stream in one.
            grouping (Grouping): how its tuples choose tasks.
            stream (str): id of the stream; not looked at where `source` is a `GlobalStreamId`.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: a fields or partial key grouping without fields, a custom one without an object, a source
                or stream that is no text.
        """
        key = source if isinstance(source, GlobalStreamId) else GlobalStreamId(source, stream)
        for what, name in (("component", key.component), ("stream", key.stream)):
            if not isinstance(name, str) or not name:
                raise InvalidGrouping(f"{self._who} subscribes to {what} {name!r}, expected the id of a {what} as text")
        if not isinstance(grouping, Grouping):
            raise InvalidGrouping(f"{self._who}: grouping on {key} is {grouping!r}, expected a Grouping")
        if key in self._inputs:
            raise DuplicateGrouping(
                f"{self._who} has a {self._inputs[key]} grouping and a {grouping} grouping on stream "
                f"{key.stream!r} of {key.component!r}; keep one"
            )
        if grouping.kind in (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY) and not grouping.fields:
            raise InvalidGrouping(
                f"{self._who}: the {grouping.kind.value} grouping on {key} names no field; give at least one"
            )
        if isinstance(grouping.fields, str) or not all(isinstance(name, str) for name in grouping.fields):
            raise InvalidGrouping(
                f"{self._who}: the {grouping.kind.value} grouping on {key} names the fields {grouping.fields!r}, "
                "expected text for each"
            )
        custom = grouping.custom
        if grouping.kind is GroupingKind.CUSTOM and (
            isinstance(custom, type) or not isinstance(custom, CustomStreamGrouping)
        ):
            raise InvalidGrouping(
                f"{self._who}: the custom grouping on {key} is {custom!r}, expected an object with "
                "prepare(context, stream, target_tasks) and choose_tasks(task_id, values)"
            )
        self._inputs[key] = grouping
        return self

    def _simple(self, kind: GroupingKind, source: str, stream: str) -> BoltDeclarer:
        return self.grouping(source, Grouping(kind), stream)

    def shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Spread tuples evenly over the tasks: of 100,000 tuples each of two tasks gets 49 to 51 %.

        Args:
            source (str): id of the component that emits them.
            stream (str): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: `source` or `stream` is no text.
        """
        return self._simple(GroupingKind.SHUFFLE, source, stream)

    @overload
    def fields_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer: ...

    @overload
    def fields_grouping(self, source: str, stream: str, fields: Sequence[str], /) -> BoltDeclarer: ...

    def fields_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str | Sequence[str] = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Send tuples with the same values of `fields` to the same task, in every process and for ever.

        Which values are the same, of which types, is in docs/groupings.md. Storm's order of arguments (source, stream,
        fields) is understood too.

        Args:
            source (str): id of the component that emits them.
            fields (Sequence[str] | str): names of one or more fields of the stream.
            stream (str | Sequence[str]): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: there is no field, or a name is no text.
        """
        names, stream_id = fields_and_stream(fields, stream)
        return self.grouping(source, Grouping(GroupingKind.FIELDS, names), stream_id)

    def global_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Send every tuple to the task with the lowest number.

        Args:
            source (str): id of the component that emits them.
            stream (str): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: `source` or `stream` is no text.
        """
        return self._simple(GroupingKind.GLOBAL, source, stream)

    def none_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Say that any task will do: as `shuffle_grouping`, but tuples may stay in the producer's Spark task.

        Where one Spark task has several tasks of the bolt, a few tuples of one batch stay together, and batches take
        these tasks in turn.

        Args:
            source (str): id of the component that emits them.
            stream (str): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: `source` or `stream` is no text.
        """
        return self._simple(GroupingKind.NONE, source, stream)

    def all_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Send every tuple to every task.

        Args:
            source (str): id of the component that emits them.
            stream (str): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: `source` or `stream` is no text.
        """
        return self._simple(GroupingKind.ALL, source, stream)

    def direct_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Let the producer name the task, by `emit_direct`.

        Args:
            source (str): id of the component that emits them.
            stream (str): id of a stream that was declared with `direct=True`.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: `source` or `stream` is no text.
        """
        return self._simple(GroupingKind.DIRECT, source, stream)

    def local_or_shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Prefer tasks in the producer's Spark task, so that tuples need no exchange; else as `shuffle_grouping`.

        Args:
            source (str): id of the component that emits them.
            stream (str): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: `source` or `stream` is no text.
        """
        return self._simple(GroupingKind.LOCAL_OR_SHUFFLE, source, stream)

    @overload
    def partial_key_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer: ...

    @overload
    def partial_key_grouping(self, source: str, stream: str, fields: Sequence[str], /) -> BoltDeclarer: ...

    def partial_key_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str | Sequence[str] = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Send tuples of one key to two tasks, each time to the one that got less from this producer.

        Storm 1.2.4: PartialKeyGrouping. Its order of arguments (source, stream, fields) is understood too.

        Args:
            source (str): id of the component that emits them.
            fields (Sequence[str] | str): names of the fields that are the key.
            stream (str | Sequence[str]): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: there is no field, or a name is no text.
        """
        names, stream_id = fields_and_stream(fields, stream)
        return self.grouping(source, Grouping(GroupingKind.PARTIAL_KEY, names), stream_id)

    @overload
    def custom_grouping(
        self, source: str, grouping: CustomStreamGrouping, stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer: ...

    @overload
    def custom_grouping(self, source: str, stream: str, grouping: CustomStreamGrouping, /) -> BoltDeclarer: ...

    def custom_grouping(
        self, source: str, grouping: CustomStreamGrouping | str, stream: str | CustomStreamGrouping = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Let an object choose the tasks. Storm's order of arguments (source, stream, grouping) is understood too.

        Args:
            source (str): id of the component that emits the tuples.
            grouping (CustomStreamGrouping | str): the object; see `CustomStreamGrouping`.
            stream (str | CustomStreamGrouping): id of the stream.

        Returns:
            the declarer.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: `grouping` is no object with the two methods.
        """
        chooser, stream_id = chooser_and_stream(grouping, stream)
        return self.grouping(source, Grouping(GroupingKind.CUSTOM, custom=chooser), stream_id)


def fields_and_stream(fields: Sequence[str] | str, stream: str | Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the names and the stream that a grouping on fields was given, in either order of arguments."""
    if isinstance(fields, str) and not isinstance(stream, str):
        fields, stream = stream, fields
    names = tuple(fields) if isinstance(fields, Iterable) and not isinstance(fields, str) else (fields,)
    return names, cast(str, stream)


def chooser_and_stream(
    grouping: CustomStreamGrouping | str, stream: str | CustomStreamGrouping
) -> tuple[CustomStreamGrouping, str]:
    """Return the object and the stream that a custom grouping was given, in either order of arguments."""
    chooser, stream_id = (stream, grouping) if isinstance(grouping, str) else (grouping, stream)
    return cast(CustomStreamGrouping, chooser), cast(str, stream_id)
