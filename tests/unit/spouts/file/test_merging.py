"""FileTransactionalSpout with `order_by`: times of every kind, late rows, new files, and what is refused."""

from __future__ import annotations

import datetime as dt
import logging
import os
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from stormline import (
    BaseTransactionalBolt,
    Collector,
    OutputFieldsDeclarer,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.spouts.file import FileTransactionalSpout, merging_coordinator
from stormline.spouts.file.errors import (
    BadLine,
    FileChanged,
    FileVanished,
    InvalidFileSpout,
    LateRow,
    MixedOrder,
    TooManyFiles,
)
from stormline.spouts.file.merged_metadata import MergedProgress, from_bits, to_bits
from stormline.spouts.file.order_key import FIRST, is_stored_key, key_of, order_key, stored_key
from stormline.spouts.file.rows import RowProblem
from stormline.topology.errors import CorruptData, FailedException, UnknownField
from tests.kits.file_spout import Gathered, Run, context, write

pytestmark = pytest.mark.usefixtures("in_tmp")


def by_time(**options: Any) -> FileTransactionalSpout:
    return FileTransactionalSpout("*.csv", **{"order_by": "time", **options})


def texts(run: Run) -> list[str]:
    return [row[1] for row in run.rows()]


def test_four_servers_come_in_the_order_of_their_times() -> None:
    for server in range(4):
        write(f"{server}.csv", "time,text\n" + "".join(f"{4 * n + server},{server}.{n}\n" for n in range(5)))
    run = Run(by_time(rows_per_batch=6))
    assert texts(run) == [f"{server}.{n}" for n in range(5) for server in range(4)]
    assert [len(run.emit(batch)) for batch in run.batches] == [6, 6, 6, 2]


@pytest.mark.parametrize(
    ("ordered", "types"),
    [
        (["-1", "0", "2", "10", "1e3", "99999999999999999999", "99999999999999999999.5"], {}),
        (
            [
                "2024-01-31",
                "2024-02-01T00:30:00+01:00",
                "2024-01-31T23:45:00Z",
                "2024-02-01 00:00:00.000001",
                "2024-02-01T00:00:00.000002+00:00",
            ],
            {},
        ),
        (["31/01/2024", "01/02/2024"], {"time": lambda text: dt.datetime.strptime(text, "%d/%m/%Y")}),
        (["0.1", "0.10000000000000000000001"], {"time": Decimal}),
        (["Mon", "Tue", "Wed"], {"time": ["Mon", "Tue", "Wed"].index}),
        (["1", "2"], {"time": lambda text: dt.date(2024, 1, int(text))}),
    ],
)
def test_numbers_iso_texts_and_what_types_make_are_times(ordered: list[str], types: Any) -> None:
    for place, time in reversed(list(enumerate(ordered))):
        write(f"{len(ordered) - place}.csv", f"time,text\n{time},{place}\n")
    run = Run(by_time(types=types, rows_per_batch=2))
    assert texts(run) == [str(place) for place in range(len(ordered))]
    for restart in range(len(run.batches)):
        assert Run(run.spout, 1, run.batches[:restart]).plan_all() == run.batches


def test_a_row_without_a_time_goes_with_the_row_before_it() -> None:
    write("a.csv", "time,text\n,head\n1,a1\n,more of a1\n5,a5\n,more of a5\n")
    write("b.csv", "time,text\n2,b2\n\n5,b5\n")
    assert texts(Run(by_time(rows_per_batch=2))) == [
        "head", "a1", "more of a1", "b2", "a5", "more of a5", "b5",
    ]  # fmt: skip
    write("a.jsonl", '{"time": null, "x": 0}\n{"time": 3, "x": 1}\n')
    write("b.jsonl", '{"time": 2, "x": 2}\n{"x": 3}\n{"time": 4.5, "x": 4}\n')
    spout = FileTransactionalSpout(
        "*.jsonl", ["x", "time"], "jsonl", order_by="time", defaults={"time": None}, rows_per_batch=2
    )
    assert Run(spout).rows() == [[0, None], [2, 2], [3, None], [1, 3], [4, 4.5]]


def test_a_late_row_halts_with_its_line_and_going_on_with_a_larger_window_loses_nothing() -> None:
    write("a.csv", 'time,text\n1,a1\n5,"a\n5"\n6,a6\n4,a4\n')
    write("b.csv", "time,text\n3,b3\n7,b7\n")
    run = Run(by_time(rows_per_batch=2, order_window=1))
    run.plan()
    with pytest.raises(
        LateRow, match=r"a.csv:6: the row's 'time' is earlier.*order_window=1 rows before it.*on_late_row='keep'"
    ):
        run.plan_all()
    again = Run(by_time(rows_per_batch=2, order_window=2), batches=run.batches)
    assert texts(again) == ["a1", "b3", "a4", "a\n5", "a6", "b7"]


def test_late_rows_that_are_kept_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    write("a.csv", "time,text\n1,a1\n9,a9\n2,late\n3,late too\n10,a10\n")
    write("b.csv", "time,text\n4,b4\n")
    with caplog.at_level(logging.WARNING):
        assert texts(Run(by_time(rows_per_batch=3, on_late_row="keep"))) == [
            "a1",
            "b4",
            "a9",
            "late",
            "late too",
            "a10",
        ]
    assert [record.getMessage().replace(os.getcwd(), "") for record in caplog.records] == [
        "transaction 2 has 2 rows that stood more than 0 rows too late; the first: /a.csv:4"
    ]


def test_files_that_appear_later_join_and_their_past_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    write("b.csv", "time,text\n1,b1\n2,b2\n9,b9\n")
    run = Run(by_time(rows_per_batch=2))
    first = run.plan()
    write("a.csv", "time,text\n1,a1\n10,a10\n")
    write("c.csv", "time,text\n7,c7\n")
    with caplog.at_level(logging.WARNING):
        assert [row[1] for batch in run.plan_all() for row in run.emit(batch)] == [
            "b1", "b2", "a1", "c7", "b9", "a10",
        ]  # fmt: skip
    warnings = [record.getMessage() for record in caplog.records]
    assert [text for text in warnings if "a.csv' begins before the time of rows that were emitted already" in text]
    assert not [text for text in warnings if "c.csv" in text]
    assert Run(run.spout, 1, [first]).plan_all() == run.batches
    write("d.csv", "time,text\n11,d11\n")
    assert run.coordinator.is_ready()
    assert [row[1] for row in run.emit(run.plan())] == ["d11"]
    assert not Run(run.spout, 1, run.batches).coordinator.is_ready()


def test_a_file_may_go_or_be_filled_before_its_first_row_is_taken() -> None:
    write("a.csv", "time,text\n1,a1\n2,a2\n")
    write("b.csv", "time,text\n5,b5\n")
    write("c.csv", "time,text\n6,c6\n")
    run = Run(by_time(rows_per_batch=1))
    run.plan()
    Path("b.csv").unlink()
    write("c.csv", "time,text\n6,c6\n7,c7\n")
    assert texts(run) == ["a1", "a2", "c6", "c7"]


def test_files_that_change_or_go_while_they_are_read_halt() -> None:
    path = write("a.csv", "time,text\n1,a1\n2,a2\n3,a3\n")
    write("b.csv", "time,text\n1,b1\n9,b9\n")
    run = Run(by_time(rows_per_batch=2))
    run.plan()
    write("a.csv", "time,text\n2,a1\n2,a2\n3,a3\n")
    with pytest.raises(FileChanged, match=r"a.csv.*has other content than when it was first read"):
        run.emit(run.batches[0])
    with pytest.raises(FileChanged, match="the first 15 bytes"):
        Run(run.spout, 1, run.batches)
    write("a.csv", "time,text\n1,a1\n2,a2\n3,a3\n4,a4\n")
    with pytest.raises(FileChanged, match=r"a.csv.*grew"):
        Run(run.spout, 1, run.batches)
    os.unlink(path)
    with pytest.raises(FileVanished, match=r"a.csv.*does not exist"):
        Run(run.spout, 1, run.batches)


def test_a_bad_row_or_time_is_named_or_left_out(caplog: pytest.LogCaptureFixture) -> None:
    write("a.csv", "time,text\n1,a1\n2,a2,3\nyesterday,a3\n\n3,a4\n,a5\n")
    write("b.csv", "time,text\n2,b2\nTrue,b3\n")
    run = Run(by_time())
    with pytest.raises(BadLine, match=r"a.csv:3: the row has 3 values, expected 2"):
        run.rows()
    with caplog.at_level(logging.WARNING):
        assert texts(Run(by_time(on_bad_line="skip", rows_per_batch=3))) == ["a1", "b2", "a4", "a5"]
    left_out = [record.getMessage() for record in caplog.records]
    assert any("a.csv: left out 2 of the" in text and "line 3: the row has 3 values" in text for text in left_out)
    write("a.csv", "time,text\n1,a1\nyesterday,a3\n")
    with pytest.raises(BadLine, match=r"a.csv:3: 'yesterday' \(a str\) is no time to order by: .*2024-01-31T.*types="):
        Run(by_time()).rows()


def test_numbers_and_dates_in_one_field_halt() -> None:
    write("a.csv", "time,text\n1,a1\n")
    write("b.csv", "time,text\n\n2024-01-01,b1\n")
    with pytest.raises(MixedOrder, match=r"b.csv:\d: 'time' is a date-time, but a number at .*a.csv:2: .*types="):
        Run(by_time())


def test_nothing_left_is_asked_again_later() -> None:
    run = Run(by_time(fields=["time"]))
    assert not run.coordinator.is_ready()
    with pytest.raises(FailedException, match=r"transaction 1: all rows of \['\*.csv'\] have been read"):
        run.coordinator.initialize_transaction(1, None)
    write("a.csv", "time\n")
    assert not run.coordinator.is_ready()
    write("b.csv", "time\n1\n")
    assert run.rows() == [["1"]]


def test_a_batch_that_was_never_stored_is_planned_again() -> None:
    write("a.csv", "time,text\n" + "".join(f"{n},a{n}\n" for n in range(9)))
    write("b.csv", "time,text\n" + "".join(f"{n},b{n}\n" for n in range(9)))
    run = Run(by_time(rows_per_batch=3))
    first = run.plan()
    lost = run.coordinator.initialize_transaction(2, first)
    assert run.coordinator.initialize_transaction(2, first) == lost
    assert Run(run.spout, 1, [first]).plan() == lost


def test_batches_take_turns_among_the_tasks_and_each_is_emitted_whole_by_one() -> None:
    write("a.csv", "time,text\n1,a1\n3,a3\n")
    write("b.csv", "time,text\n2,b2\n")
    run = Run(by_time())
    metadata = run.plan()
    for txid in (1, 2, 3):
        rows = []
        for task in range(3):
            gathered = Gathered()
            run.spout.get_emitter({}, context(3, task)).emit_batch(
                TransactionAttempt(txid, 1), metadata, cast(Collector, gathered)
            )
            rows.append([values[2] for values in gathered.values])
        assert rows[txid % 3] == ["a1", "b2", "a3"]
        assert sorted(map(len, rows)) == [0, 0, 3]


def test_many_files_that_overlap_end_batches_early_and_too_many_halt(monkeypatch: pytest.MonkeyPatch) -> None:
    for server in range(20):
        write(f"{server:02}.csv", f"time,text\n{server},{server}.0\n100,{server}.1\n")
    monkeypatch.setattr(merging_coordinator, "PATHS_BYTES_MAX", 20 * 300)
    run = Run(by_time(rows_per_batch=100))
    assert texts(run) == [f"{server}.0" for server in range(20)] + [f"{server}.1" for server in range(20)]
    assert 2 < len(run.batches) < 20
    monkeypatch.setattr(merging_coordinator, "PATHS_BYTES_MAX", 10 * 300)
    with pytest.raises(TooManyFiles, match=r"\d+ files overlap in time: each transaction stores how far .* join files"):
        Run(by_time(rows_per_batch=100)).plan_all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order_by": "time", "format": "parquet"}, "order_by is for format='csv' or 'jsonl'; leave it out with"),
        ({"order_window": 3}, "order_window is for files that are read in an order; name its field in order_by"),
        ({"on_late_row": "keep"}, "on_late_row is for files that are read in an order"),
        ({"order_by": "time", "order_window": -1}, "order_window is -1, expected a number of rows, 0 to 10000"),
        ({"order_by": "time", "order_window": 10_001}, "order_window is 10001, expected"),
        ({"order_by": "time", "order_window": True}, "order_window is True, expected"),
        ({"order_by": "time", "on_late_row": "skip"}, "on_late_row is 'skip', expected 'error' or 'keep'"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFileSpout, match=message):
        FileTransactionalSpout(**{"paths": "a.csv", **arguments})


def test_a_field_to_order_by_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnknownField, match=r"named in order_by.*did you mean 'time'"):
        FileTransactionalSpout("a.csv", ["time"], order_by="tiem")
    write("a.csv", "time,text\n1,a1\n")
    with pytest.raises(UnknownField, match=r"read by FileTransactionalSpout,.*'tiem'.*did you mean 'time'"):
        Run(by_time(order_by="tiem"))


def test_a_state_of_another_order_halts() -> None:
    write("a.csv", "time,text\n1,a1\n2,a2\n")
    ordered, plain = by_time(rows_per_batch=1), FileTransactionalSpout("*.csv", rows_per_batch=1)
    for stored, got in ((ordered, plain), (plain, ordered)):
        batch = Run(stored).plan()
        with pytest.raises(CorruptData, match=r"were read with order_by=.*, the spout now has order_by=.*begin anew"):
            Run(got, 1, [batch])
        with pytest.raises(CorruptData, match="were read with order_by="):
            Run(got).emit(batch)
    with pytest.raises(CorruptData, match="read with order_by='time', the spout now has order_by='text'"):
        Run(by_time(order_by="text"), 1, [Run(ordered).plan()])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": ["x"]}, "has the columns "),
        ({"files": [["relative", 3]]}, "has the files "),
        ({"pieces": [[9, 0, 4, 2, 1, 0, 0, b"", b"", 1]]}, "has the pieces "),
        ({"pieces": [[0, 0, 4, 2, 1, 0, 0, b"123", b"", 1]]}, "has the pieces "),
        ({"pieces": [[0, 0, 4, 2, 1, 0, 0, b"", b"\0" * 7 + b"\1\1", 1]]}, "has the pieces "),
        ({"pieces": [[0, 0, 4, 2, 1, 0, 0, b"", b"", "time"]]}, "has the pieces "),
        ({"pieces": [[0, 0, 4, 2, 1, 0, 0]]}, "has the pieces "),
        ({"open": [[9, 0, 1, 2, 3, b"", 0, 0]]}, "ends at "),
        ({"open": [[0, 0, -1, 2, 3, b"", 0, 0]]}, "ends at "),
        ({"open": [[0, 0, 1, 2, 3, b"", 0, float("nan")]]}, "ends at "),
        ({"open": [[0, 0, 1, 2, 3, 4, 0, 0]]}, "ends at "),
        ({"newest": "late"}, "has the newest time 'late'"),
        ({"read": "text"}, "has the files read "),
    ],
)
def test_stored_values_that_no_spout_stores_are_corrupt(change: dict[str, Any], message: str) -> None:
    write("a.csv", "time,text\n1,a1\n2,a2\n")
    metadata = Run(by_time(rows_per_batch=1)).plan()
    MergedProgress.from_metadata(metadata, "csv", "time")
    with pytest.raises(CorruptData, match=rf"^the stored batch of a FileTransactionalSpout {message}"):
        MergedProgress.from_metadata({**metadata, **change}, "csv", "time")
    with pytest.raises(CorruptData, match="of FileTransactionalSpout, version 1"):
        MergedProgress.from_metadata({key: metadata[key] for key in metadata if key not in change}, "csv", "time")


def test_stored_rows_that_the_unchanged_file_does_not_have_are_corrupt() -> None:
    write("a.csv", "time,text\n1,a1\n2,a2\n")
    run = Run(by_time())
    metadata = run.plan()
    metadata["pieces"][0][4] = 3
    with pytest.raises(CorruptData, match=r"a.csv:2: the stored batch has 3 rows from here on, and the file.* has 2"):
        run.emit(metadata)
    metadata["columns"] = [metadata["columns"][0], ["other", "text"]]
    with pytest.raises(CorruptData, match=r"the stored batch has the columns \['other', 'text'\], without 'time'"):
        run.emit(metadata)


def test_the_metadata_is_plain_and_small() -> None:
    for server in range(4):
        write(f"{server}.csv", "time,text\n" + "".join(f"{n ^ 1},{n}\n" for n in range(5000)))
    run = Run(by_time(rows_per_batch=999, order_window=1))
    assert max(len(repr(batch)) for batch in run.plan_all()) < 2_000


@pytest.mark.parametrize("value", [True, "nan", "inf", float("nan"), Decimal("NaN"), b"1", "1" * 200, "x", (1,)])
def test_what_is_no_time_is_said(value: Any) -> None:
    with pytest.raises(RowProblem, match="is no time to order by: expected a number, a datetime, or text such as"):
        order_key(value)


@pytest.mark.parametrize("key", [FIRST, -3, 1 << 62, 2.5, Decimal("0.10000000000000000000000000000001")])
def test_a_stored_key_comes_back(key: Any) -> None:
    assert is_stored_key(stored_key(key))
    assert key_of(stored_key(key)) == key


@pytest.mark.parametrize("value", ["", "x", "NaN", "1" * 500, None, float("inf"), True])
def test_what_is_no_stored_key_is_known(value: Any) -> None:
    assert not is_stored_key(value)


@pytest.mark.parametrize("ordinals", [(), (0,), (7,), (5, 6, 90), (1 << 40,)])
def test_ordinals_come_back_from_their_bits(ordinals: tuple[int, ...]) -> None:
    assert from_bits(to_bits(ordinals)) == ordinals


SEEN: list[str] = []


class Remember(BaseTransactionalBolt):
    """Remembers what it has seen, when its batch commits."""

    def prepare(self, conf: Any, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.texts: list[str] = []

    def execute(self, tup: Tuple) -> None:
        self.texts.append(tup.get_string(2))

    def finish_batch(self) -> None:
        SEEN.extend(self.texts)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


def test_one_bolt_task_sees_the_rows_of_all_servers_in_order() -> None:
    SEEN.clear()
    for server in range(4):
        write(f"{server}.csv", "time,text\n" + "".join(f"{4 * n + server},{4 * n + server}\n" for n in range(100)))
    builder = TransactionalTopologyBuilder("merged", "logs", by_time(rows_per_batch=37), 3)
    builder.set_committer_bolt("remember", Remember()).global_grouping("logs")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("merged", {}, builder.build_topology())
        handle.await_drained(30)
        handle.kill()
    assert [str(n) for n in range(400)] == SEEN
