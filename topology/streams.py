"""What a component says it emits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stormline.topology.errors import InvalidStream
from stormline.topology.fields import Fields
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.identifiers import NAME_CHARS_MAX, problem_of_name
from stormline.topology.storm_names import storm_names


@dataclass(frozen=True, slots=True)
class StreamDeclaration:
    """One output stream: its fields (the first one carries the attempt), and whether it is direct."""

    fields: Fields
    direct: bool = False


@storm_names()
class OutputFieldsDeclarer:
    """Collects the streams that one component declares in `declare_output_fields`.

    Args:
        component (str): id of the component, for messages.
    """

    def __init__(self, component: str) -> None:
        self._component = component
        self.streams: dict[str, StreamDeclaration] = {}

    def declare(self, fields: Sequence[str], direct: bool = False) -> None:
        """Declare the default stream.

        Args:
            fields (Sequence[str]): names of its fields; the first one carries the attempt.
            direct (bool): whether the producer names the task that gets a tuple, by `emit_direct`.

        Raises:
            InvalidStream: as for `declare_stream`.
        """
        self.declare_stream(DEFAULT_STREAM, fields, direct)

    def declare_stream(self, stream_id: str, fields: Sequence[str], direct: bool = False) -> None:
        """Declare one more stream.

        Args:
            stream_id (str): its id, unique in the component.
            fields (Sequence[str]): names of its fields; the first one carries the attempt.
            direct (bool): whether the producer names the task that gets a tuple, by `emit_direct`.

        Raises:
            InvalidStream: the stream is declared already, has no, empty or repeated field names, or `direct` is no
                bool.
        """
        who = f"component {self._component!r}"
        if not isinstance(stream_id, str) or not stream_id:
            raise InvalidStream(f"{who} declares stream {stream_id!r}; expected non-empty text")
        problem = problem_of_name(stream_id)
        if problem is not None:
            raise InvalidStream(
                f"{who} declares stream {stream_id[:NAME_CHARS_MAX]!a}, which {problem}; give it a name that is told "
                "from others at a glance"
            )
        if stream_id in self.streams:
            raise InvalidStream(f"{who} declares stream {stream_id!r} twice; declare each stream once")
        if isinstance(fields, str):
            raise InvalidStream(f"{who}, stream {stream_id!r}: got the text {fields!r}, expected Fields({fields!r}, …)")
        if not isinstance(fields, Iterable) or not isinstance(direct, bool):
            raise InvalidStream(
                f"{who}, stream {stream_id!r}: got fields {fields!r} and direct {direct!r}; expected "
                "declare_stream(stream_id, Fields(…), direct=False)"
            )
        try:
            names = Fields(*fields)
        except InvalidStream as error:
            raise InvalidStream(f"{who}, stream {stream_id!r}: {error}") from None
        if not names:
            raise InvalidStream(
                f"{who}, stream {stream_id!r} declares no field; the first field of every stream carries the "
                "transaction attempt, so at least one is needed"
            )
        self.streams[stream_id] = StreamDeclaration(names, direct)
