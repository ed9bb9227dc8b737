"""IteratorTransactionalSpout: sources as people have them, each row once; what cannot replay is refused."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stormline import FailedException, IteratorTransactionalSpout
from stormline.errors import (
    CannotReplay,
    CorruptData,
    InvalidComponent,
    InvalidConfig,
    InvalidStream,
    TopologyFailed,
)
from stormline.spouts.checksum import rows_checksum
from stormline.testing import MemoryStateServer
from tests.kits.sources import Crash, Sink, drain, new_sink

ROWS = [[f"word-{i}", i] for i in range(47)]


@pytest.fixture
def sink() -> Sink:
    return new_sink()


def spout(source: Any, rows_per_batch: int = 5, fields: Any = ("word", "n")) -> IteratorTransactionalSpout:
    return IteratorTransactionalSpout(source, fields, rows_per_batch)


def numbers(start: int | None) -> Iterator[tuple[int, int]]:
    """A generator function that begins anew: the position is the number itself."""
    for number in range(0 if start is None else start + 1, 23):
        yield number, number


class Pages:
    """An object that is called, and gives a new iterator each time: pages of three, by a token of two parts."""

    def __call__(self, start: Any) -> list[Any]:
        page, place = start or (0, -1)
        return [((p, i), 3 * p + i) for p in range(5) for i in range(3) if (p, i) > (page, place)]


class Begins:
    """A class that is iterated from where it begins."""

    def __init__(self, start: Any) -> None:
        self.start = 0 if start is None else start

    def __iter__(self) -> Iterator[Any]:
        return ((n + 1, n) for n in range(self.start, 23))


class Lookalike:
    """What has a length and rows by their numbers, and is no list."""

    def __init__(self, length: int, held: int) -> None:
        self.length, self.held = length, held

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: int) -> int:
        if number >= self.held:
            raise IndexError(number)
        return number


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize(
    ("source", "count"),
    [
        (list(range(23)), 23),
        (tuple(range(23)), 23),
        (range(23), 23),
        (Lookalike(23, 23), 23),
        (numbers, 23),
        (lambda start: enumerate(range(start or 0, 23), (start or 0) + 1), 23),
        (Pages(), 15),
        (Begins, 23),
        ([], 0),
        (lambda start: iter(()), 0),
    ],
    ids=["list", "tuple", "range", "object", "generator", "lambda", "pages", "class", "empty", "nothing"],
)
def test_each_row_is_in_one_batch_though_batches_fail_and_commits_crash(
    source: Any, count: int, tasks: int, sink: Sink
) -> None:
    server = MemoryStateServer()
    sink.crash_at = {2, 3} if count else set()
    for _ in range(len(sink.crash_at)):
        with pytest.raises(TopologyFailed) as stopped:
            drain(spout(source, fields=["n"]), tasks, server)
        assert isinstance(stopped.value.__cause__, Crash) or "Crash" in str(stopped.value)
    drain(spout(source, fields=["n"]), tasks, server)
    assert sink.rows == sorted(sink.rows) == list(range(count))
    assert all(len(batch) == 5 for batch in list(sink.stored.values())[:-1])


def test_rows_of_a_database_are_read_by_their_keys(tmp_path: Path, sink: Sink) -> None:
    path = tmp_path / "rows.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT)")
        db.executemany("INSERT INTO words (word) VALUES (?)", [(f"w{i}",) for i in range(20)])
        db.execute("DELETE FROM words WHERE id % 4 = 0")
    db.close()

    def after(start: Any) -> Iterator[Any]:
        db = sqlite3.connect(path)
        try:
            for row in db.execute("SELECT id, word FROM words WHERE id > ? ORDER BY id", (start or 0,)):
                yield row[0], [row[1], row[0]]
        finally:
            db.close()

    drain(spout(after))
    assert len(sink.rows) == len(set(sink.rows)) == 15


def test_a_list_that_grows_is_read_on(sink: Sink) -> None:
    rows = list(range(7))
    server = MemoryStateServer()
    drain(spout(rows, fields=["n"]), server=server)
    rows += range(7, 19)
    drain(spout(rows, fields=["n"]), server=server)
    assert sink.rows == list(range(19))


def test_a_source_that_grows_while_it_is_read_is_read_on(sink: Sink) -> None:
    rows: list[int] = []

    def growing(start: Any) -> Iterator[Any]:
        begin = 0 if start is None else start
        if len(rows) < 40:
            rows.extend(range(len(rows), len(rows) + 3))
        for number in range(begin, len(rows)):
            yield number + 1, rows[number]

    drain(spout(growing, fields=["n"]))
    assert sink.rows == list(range(len(rows)))
    assert len(rows) >= 40


def test_a_source_that_reuses_its_row_and_its_position_is_copied(sink: Sink) -> None:
    def reusing(start: Any) -> Iterator[Any]:
        row: list[Any] = ["", 0]
        position = [0]
        for number in range((start or [0])[0], 12):
            row[0], row[1] = f"word-{number}", number
            position[0] = number + 1
            yield position, row

    drain(spout(reusing))
    assert sorted(sink.rows) == sorted((f"word-{n}", n) for n in range(12))


def test_a_source_that_is_away_for_a_while_goes_on_where_it_was(sink: Sink) -> None:
    calls = itertools.count()

    def shaky(start: Any) -> Iterator[Any]:
        for number in range(start or 0, 23):
            if next(calls) % 4 == 3:
                raise FailedException("no route to host")
            yield number + 1, number

    drain(spout(shaky, fields=["n"]))
    assert sink.rows == list(range(23))


def test_one_that_raises_in_the_middle_stops_the_topology_which_goes_on_once_it_is_mended(sink: Sink) -> None:
    server = MemoryStateServer()
    broken = [True]

    def breaks(start: Any) -> Iterator[Any]:
        for number in range(start or 0, 23):
            if broken[0] and number == 12:
                raise ZeroDivisionError("at 12")
            yield number + 1, number

    with pytest.raises(TopologyFailed, match=r"(?s)in breaks.*ZeroDivisionError in the coordinator of 'spout': at 12"):
        drain(spout(breaks, fields=["n"]), server=server)
    assert sink.rows == list(range(len(sink.rows)))
    broken[0] = False
    drain(spout(breaks, fields=["n"]), server=server)
    assert sink.rows == list(range(23))


def stops(source: Any, match: str, sink: Sink, server: MemoryStateServer | None = None) -> None:
    with pytest.raises(TopologyFailed, match=match):
        drain(spout(source, fields=["n"]), server=server)


def test_a_list_that_shrinks_is_told(sink: Sink) -> None:
    server = MemoryStateServer()
    drain(spout(list(range(12)), fields=["n"]), server=server)
    stops(
        list(range(9)),
        r"spout 'spout' was read up to position 12, and its source has 9 rows now",
        sink,
        server,
    )
    drain(spout(list(range(14)), fields=["n"]), server=server)
    assert sink.rows == list(range(14))


def test_a_length_that_lies_is_told(sink: Sink) -> None:
    stops(Lookalike(30, 12), r"its source says that it has 30 rows, and has none at 12: its __len__ must", sink)
    assert sink.rows == list(range(len(sink.rows)))


def test_a_source_that_gives_fewer_rows_in_a_replay_is_told(sink: Sink) -> None:
    calls = itertools.count()
    stops(
        lambda start: enumerate(range(start or 0, 5 - next(calls)), (start or 0) + 1),
        r"spout 'spout' gave 5 rows after position None, and now gives [0-4]; the same start must give the same rows",
        sink,
    )
    assert sink.rows == []


@pytest.mark.parametrize(
    "source",
    [
        lambda start: ((n + 1, random.random()) for n in range(start or 0, 23)),
        lambda start: enumerate(range(23), 1),  # whatever the start
        lambda start: ((random.random(), n) for n in range(10)),
    ],
    ids=["random rows", "no start", "random positions"],
)
def test_a_source_that_gives_other_rows_the_second_time_is_told_before_its_rows_are_stored(
    source: Any, sink: Sink
) -> None:
    stops(source, r"spout 'spout' gives other rows after position .* than the 5 that it gave before, or gives", sink)
    assert len(sink.rows) <= 5


def test_a_source_that_changed_while_the_topology_was_stopped_is_told(sink: Sink) -> None:
    server = MemoryStateServer()
    sink.crash_at = {2}
    with pytest.raises(TopologyFailed):
        drain(spout(list(range(23)), fields=["n"]), server=server)
    changed = [n if n != 7 else "seven" for n in range(23)]
    stops(changed, r"gives other rows after position 5 than the 5 that it gave before", sink, server)
    drain(spout(list(range(23)), fields=["n"]), server=server)
    assert sink.rows == list(range(23))


class TestWhatIsNoSource:
    @pytest.mark.parametrize(
        ("made", "what"),
        [
            (lambda: numbers(None), "source is a generator object, which gives each row once"),
            (lambda: iter([1]), "source is a list_iterator object, which gives each row once"),
            (lambda: map(str, [1]), "source is a map object"),
            (
                lambda: open(__file__),  # noqa: SIM115
                "source is a TextIOWrapper object",
            ),
            (lambda: lambda: iter(()), r"source is <lambda>\(\), which does not take the one position at which to"),
        ],
    )
    def test_what_can_be_read_once_is_refused_with_the_reason_and_the_way_out(
        self, made: Callable[[], Any], what: str
    ) -> None:
        source = made()
        why = r".*must be given again exactly, so it is not a fit for a transactional spout since it cannot replay; pa"
        with pytest.raises(CannotReplay, match=what + why):
            spout(source)
        getattr(source, "close", lambda: None)()

    def test_so_is_what_can_only_begin_at_its_beginning(self) -> None:
        class Once:
            def __iter__(self) -> Iterator[int]:
                return iter((1, 2))

        with pytest.raises(CannotReplay, match=r"source is a Once object, which can be begun only at its beginning"):
            spout(Once())

    def test_so_is_a_function_that_returns_the_same_iterator_again(self, sink: Sink) -> None:
        rest = enumerate(range(7), 1)
        stops(lambda start: rest, r"source\(.*\) returned the same enumerate as before, part of which has", sink)

    @pytest.mark.parametrize("source", [{1, 2}, {"a": 1}, "text", b"bytes"])
    def test_what_has_no_order_is_refused(self, source: Any) -> None:
        with pytest.raises(InvalidComponent, match=r"source is a .*, expected a function source\(start\).*no num"):
            spout(source)

    def test_what_is_nothing_of_it_is_refused(self) -> None:
        with pytest.raises(InvalidComponent, match=r"source is 7, expected a function source\(start\) that gives"):
            spout(7)

    @pytest.mark.parametrize("count", [0, -1, True, 1.5, None])
    def test_a_batch_without_rows_is_refused(self, count: Any) -> None:
        with pytest.raises(InvalidConfig, match=r"rows_per_batch is .*, expected a whole number of at least 1"):
            spout([], count)

    def test_fields_that_are_none_are_refused(self) -> None:
        with pytest.raises(InvalidStream, match=r"an IteratorTransactionalSpout is the text 'word', expected"):
            spout([], fields="word")
        with pytest.raises(InvalidStream, match=r"are \['tx', 'word'\].*the spout itself puts 'tx', the attempt"):
            spout([], fields=["tx", "word"])


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (lambda start: None, r"source\(None\) returned a NoneType, expected an iterable of \(position, row\)"),
        (lambda start: [1, 2], r"the source gave 1 after position None, expected \(position, row\): the position is"),
        (lambda start: [(None, 1)], r"the source gave the position None after None, expected another one for each row"),
        (lambda start: [(5, 1), (5, 2)], r"the source gave the position 5 after 5, .*need more to tell them apart"),
        (lambda start: [(1, [1, 2])], r"the row at position 1 has 2 values \(\[1, 2\]\), expected 1, one for each"),
    ],
)
def test_a_source_that_gives_something_else_is_told(source: Any, why: str, sink: Sink) -> None:
    stops(source, f"spout 'spout'.*{why}", sink)


def test_a_source_that_begins_with_the_row_at_the_start_is_told(sink: Sink) -> None:
    stops(
        lambda start: ((n, n) for n in range(start or 0, 23)),
        r"gave the position (4|22) after \1, expected another",
        sink,
    )


def test_other_stored_metadata_is_told() -> None:
    made = spout([1], fields=["n"])

    class Context:
        this_component_id = "spout"

        def component_tasks(self, component: str) -> list[int]:
            return [1]

    for metadata in ("x", [1, 2], [None, None, 1, 1], [None, 1, 0, 1]):
        with pytest.raises(CorruptData, match=r"a spout of positions is .*, expected \[start, end, rows"):
            made.get_coordinator({}, Context()).resume(metadata)  # type: ignore[arg-type]


def test_checksums_go_by_value_and_type_and_not_by_the_order_of_a_dict() -> None:
    class Own:
        pass

    assert rows_checksum([[1, "a"]]) == rows_checksum([(1, "a")]) != rows_checksum([[1.0, "a"]])
    assert rows_checksum([[{"a": 1, "b": [{}]}]]) == rows_checksum([[{"b": [{}], "a": 1}]])
    assert rows_checksum([[{"a": 1}]]) != rows_checksum([[{"a": 2}]])
    assert rows_checksum([[Own(), 1]]) == rows_checksum([[Own(), 1]]) != rows_checksum([[Own(), 2]])
