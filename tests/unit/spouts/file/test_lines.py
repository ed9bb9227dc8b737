"""FileTransactionalSpout: bad lines named or skipped, and each format."""

from __future__ import annotations

import csv
import datetime as dt
import importlib.util
import json
import logging
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormline.spouts.file import FileTransactionalSpout
from stormline.spouts.file.errors import BadHeader, BadLine, FileChanged, FileVanished, UnusableFile
from stormline.topology.contracts import Collector
from stormline.topology.errors import FailedException, MissingExtra, UnknownField
from tests.kits.file_spout import Run, context, declared_fields


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def with_bad_rows(good: int, bad: dict[int, str]) -> str:
    """Rows n,2n after a header; in row `key` stands `value` instead."""
    return "a,b\n" + "".join(f"{bad.get(n, f'{n},{2 * n}')}\n" for n in range(1, good + 1))


@pytest.mark.parametrize(
    ("row", "options", "problem"),
    [
        ("1,2,3", {}, r"the row has 3 values, expected 2: \['a', 'b'\]"),
        ("1", {}, "the row has 1 values, expected 2"),
        ('"1"x,2', {}, "not valid CSV: ',' expected after '\"'"),
        ('1,"2', {}, "not valid CSV: a quote is opened and never closed"),
        ("1\r,2", {}, "not valid CSV: a carriage return stands outside quotes"),
        ("1,x", {"types": {"b": float}}, "column 'b' is 'x', which float does not take: ValueError: could not convert"),
        ("1," + "x" * 200_000, {}, "not valid CSV: field larger than field limit"),
    ],
)
@pytest.mark.parametrize("rows_per_batch", [1, 3, 100])
@pytest.mark.parametrize("tasks", [1, 4])
def test_a_bad_csv_row_is_named_or_skipped(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    row: str,
    options: dict[str, Any],
    problem: str,
    rows_per_batch: int,
    tasks: int,
) -> None:
    path = write(tmp_path / "a.csv", with_bad_rows(20, {7: row}))
    error = FileTransactionalSpout(path, rows_per_batch=rows_per_batch, **options)
    with pytest.raises(BadLine, match=rf"a\.csv:8: {problem}.*; pass on_bad_line='skip' to FileTransactionalSpout"):
        Run(error, tasks).rows()
    skip = FileTransactionalSpout(path, rows_per_batch=rows_per_batch, on_bad_line="skip", **options)
    with caplog.at_level(logging.WARNING, "stormline"):
        rows = Run(skip, tasks).rows()
    assert sorted(int(a) for a, _ in rows) == [n for n in range(1, 21) if n != 7]
    assert len(caplog.records) == 1
    assert "a.csv: left out 1 of the" in caplog.text
    assert "the first: line 8: " in caplog.text


def test_many_bad_rows_are_one_warning_a_piece(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = {n: "x" for n in range(1, 1001) if n % 3 == 0}
    path = write(tmp_path / "a.csv", with_bad_rows(1000, bad))
    run = Run(FileTransactionalSpout(path, rows_per_batch=1000, on_bad_line="skip"), tasks=2)
    assert sorted(int(a) for a, _ in run.rows()) == [n for n in range(1, 1001) if n % 3]
    messages = sorted(record.getMessage() for record in caplog.records)
    assert [message.split("a.csv: ")[1][:70] for message in messages] == [
        "left out 166 of the 500 rows from line 2 on; the first: line 4: the ro",
        "left out 167 of the 500 rows from line 502 on; the first: line 502: th",
    ]


def test_lines_are_counted_through_quoted_line_feeds_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'a,b\n\n1,"x\n\ny"\n\r\n2,"z\n"\n\n"3\n",4,5\n')
    for rows_per_batch in (1, 2, 10):
        with pytest.raises(BadLine, match=r"a\.csv:10: the row has 3 values"):
            Run(FileTransactionalSpout(path, rows_per_batch=rows_per_batch)).rows()


@pytest.mark.parametrize(("rows_per_batch", "tasks"), [(100, 1), (3, 1), (100, 4)])
def test_a_row_may_be_longer_than_what_is_looked_through_for_one_quote(
    tmp_path: Path, rows_per_batch: int, tasks: int
) -> None:
    long = ["x" * 60_000 + f"\n{n}" for n in range(30)]
    rows = [["b"] * 30, long, ["a"] * 30]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[f"c{n}" for n in range(30)], *rows])
    run = Run(FileTransactionalSpout(tmp_path / "a.csv", rows_per_batch=rows_per_batch), tasks)
    assert run.rows() == rows


def test_a_row_whose_quote_never_closes_does_not_take_those_after_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'a,b\n1,2\n"3,4\n5,6\n7,8')
    run = Run(FileTransactionalSpout(path, rows_per_batch=2, on_bad_line="skip"))
    assert run.rows() == [["1", "2"], ["5", "6"], ["7", "8"]]
    # Nor where the file is far longer than what is looked through for the quote.
    path = write(tmp_path / "b.csv", 'a,b\n"3,4\n' + "5,6\n" * 400_000)
    run = Run(FileTransactionalSpout(path, rows_per_batch=150_000, on_bad_line="skip"), tasks=2)
    assert len(run.rows()) == 400_000
    assert len(run.batches) == 3


def test_bytes_that_are_no_utf8_are_a_bad_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"a,b\n1,2\n3,caf\xe9\n4,5\n")
    with pytest.raises(
        BadLine, match=r"a\.csv:3: byte 0xe9 at position 6 of the row is not utf-8 .*; is encoding= right"
    ):
        Run(FileTransactionalSpout(path)).rows()
    assert Run(FileTransactionalSpout(path, on_bad_line="skip")).rows() == [["1", "2"], ["4", "5"]]
    assert Run(FileTransactionalSpout(path, encoding="latin-1")).rows()[1] == ["3", "café"]


def test_a_failed_exception_of_a_type_fails_the_batch_and_nothing_else(tmp_path: Path) -> None:
    def later(text: str) -> str:
        raise FailedException("not now")

    path = write(tmp_path / "a.csv", "a\n1\n")
    with pytest.raises(FailedException, match="not now"):
        Run(FileTransactionalSpout(path, types={"a": later}, on_bad_line="skip")).rows()


def test_an_error_of_the_collector_is_no_bad_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.csv", "a\n1\n")

    def refuse(*_: Any) -> None:
        raise ValueError("refused")

    monkeypatch.setattr("tests.kits.file_spout.Gathered.emit", refuse)
    with pytest.raises(ValueError, match=r"^refused$"):
        Run(FileTransactionalSpout(path, on_bad_line="skip")).rows()


# ------------------------------------------------------------------------------- text


def test_text_gives_every_line_blank_ones_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", '\nfirst\r\n\n "open, x\ufeff\u2028y\x0bz\n\r\nlast')
    spout = FileTransactionalSpout(path, format="text", rows_per_batch=2)
    assert declared_fields(spout) == ["attempt", "line"]
    assert Run(spout).rows() == [[""], ["first"], [""], [' "open, x\ufeff\u2028y\x0bz'], [""], ["last"]]
    assert declared_fields(FileTransactionalSpout(path, ["words"], format="text")) == ["attempt", "words"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.text(st.sampled_from("ab\r\u2028é\x85 "), max_size=5), max_size=30),
    rows_per_batch=st.integers(1, 9),
    tasks=st.integers(1, 4),
)
def test_any_text_is_read_line_by_line(tmp_path: Path, lines: list[str], rows_per_batch: int, tasks: int) -> None:
    path = write(tmp_path / "a.txt", "".join(f"{line}\n" for line in lines))
    run = Run(FileTransactionalSpout(path, format="text", rows_per_batch=rows_per_batch), tasks)
    rows = [row for batch in run.plan_all() for row in run.emit(batch, tasks=1)]
    assert rows == [[line.removesuffix("\r")] for line in lines]
    assert len(run.batches) == -(-len(lines) // rows_per_batch)


# ------------------------------------------------------------------------------- JSON Lines


def test_json_lines_give_the_values_of_the_keys(tmp_path: Path) -> None:
    items = [{"n": n, "word": "é\n\u2028", "more": [1, {"x": None}]} for n in range(5)]
    text = "\n".join(json.dumps(item, ensure_ascii=False) for item in items).replace("\n", "\r\n", 1) + "\n\n\r\n"
    path = write(tmp_path / "a.jsonl", "\n" + text)
    spout = FileTransactionalSpout(path, ["more", "n"], format="jsonl", rows_per_batch=2)
    assert declared_fields(spout) == ["attempt", "more", "n"]
    assert Run(spout).rows() == [[[1, {"x": None}], n] for n in range(5)]
    assert Run(FileTransactionalSpout(path, ["n"], format="jsonl")).rows() == [[n] for n in range(5)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"n": 1', "not valid JSON: "),
        ("[1]", r"a JSON list, expected an object with the keys \['n', 'm'\]"),
        ("7", "a JSON int, expected an object"),
        (
            '{"nn": 1, "m": 2}',
            r"the object has no key 'n'; its keys are \['nn', 'm'\]; did you mean 'nn'\?; .*defaults=",
        ),
        ("[" * 100_000, "not valid JSON: "),
        (b"\xff", "byte 0xff at position 1 of the row is not utf-8"),
    ],
)
def test_a_bad_json_line_is_named_or_skipped(tmp_path: Path, line: str | bytes, problem: str) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    path = write(tmp_path / "a.jsonl", b'{"n": 1, "m": 2}\n\n' + raw + b'\n{"m": 4, "n": 3}\n')
    with pytest.raises(BadLine, match=rf"a\.jsonl:3: {problem}"):
        Run(FileTransactionalSpout(path, ["n", "m"], format="jsonl")).rows()
    skip = FileTransactionalSpout(path, ["n", "m"], format="jsonl", on_bad_line="skip")
    assert Run(skip).rows() == [[1, 2], [3, 4]]


def test_a_missing_key_takes_its_default(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"n": 1}\n{"n": 2, "m": null}\n{"n": 3, "m": 4}\n{"m": 5}\n')
    spout = FileTransactionalSpout(path, ["n", "m"], format="jsonl", defaults={"m": 0})
    run = Run(spout)
    with pytest.raises(BadLine, match=r"a\.jsonl:4: the object has no key 'n'"):
        run.rows()
    skip = FileTransactionalSpout(path, ["n", "m"], format="jsonl", defaults={"m": 0}, on_bad_line="skip")
    assert Run(skip).rows() == [[1, 0], [2, None], [3, 4]]


# ------------------------------------------------------------------------------- Parquet


class TestParquet:
    @pytest.fixture
    def pq(self) -> Any:
        pytest.importorskip("pyarrow")
        import pyarrow.parquet

        return pyarrow.parquet

    def test_rows_are_read_across_row_groups_and_files(self, tmp_path: Path, pq: Any) -> None:
        import pyarrow as pa

        table = pa.table({"n": list(range(25)), "word": [f"w{n}" if n % 2 else None for n in range(25)]})
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
        pq.write_table(table.slice(0, 0), tmp_path / "b.parquet")
        pq.write_table(table.slice(0, 3), tmp_path / "c.parquet")
        spout = FileTransactionalSpout(tmp_path / "*.parquet", format="parquet", rows_per_batch=10)
        assert declared_fields(spout) == ["attempt", "n", "word"]
        run = Run(spout, tasks=3)
        batches = run.plan_all()
        assert [sum(piece[4] for piece in batch["pieces"]) for batch in batches] == [10, 10, 8]
        rows = [row for batch in batches for row in run.emit(batch, tasks=1)]
        assert rows == [[n, f"w{n}" if n % 2 else None] for n in [*range(25), *range(3)]]
        assert sorted(run.emit(batches[1])) == sorted(run.emit(batches[1], tasks=1))
        for restart in range(3):
            assert Run(spout, 3, batches[:restart]).plan_all() == batches
        picked = FileTransactionalSpout(tmp_path / "c.parquet", ["word"], format="parquet")
        assert Run(picked).rows() == [[None], ["w1"], [None]]

    def test_one_emitter_keeps_a_row_group_between_batches(self, tmp_path: Path, pq: Any) -> None:
        import pyarrow as pa

        from stormline.topology.attempt import TransactionAttempt
        from tests.kits.file_spout import Gathered

        pq.write_table(pa.table({"n": list(range(100))}), tmp_path / "a.parquet", row_group_size=60)
        spout = FileTransactionalSpout(tmp_path / "a.parquet", format="parquet", rows_per_batch=9)
        emitter, gathered = spout.get_emitter({}, context()), Gathered()
        for batch in Run(spout).plan_all():
            emitter.emit_batch(TransactionAttempt(1, 1), batch, cast(Collector, gathered))
        assert [values[1] for values in gathered.values] == list(range(100))

    def test_nanoseconds_come_as_microseconds_or_halt(self, tmp_path: Path, pq: Any) -> None:
        import pyarrow as pa

        def table(nanoseconds: int) -> Any:
            return pa.table(
                {
                    "at": pa.array([nanoseconds], pa.timestamp("ns")),
                    "took": pa.array([nanoseconds], pa.duration("ns")),
                    "time": pa.array([nanoseconds], pa.time64("ns")),
                    "day": [dt.date(2013, 1, 1)],
                }
            )

        path = tmp_path / "a.parquet"
        pq.write_table(table(5_000), path)
        spout = FileTransactionalSpout(path, format="parquet")
        took = dt.timedelta(microseconds=5)
        row = [dt.datetime(1970, 1, 1) + took, took, dt.time(0, 0, 0, 5), dt.date(2013, 1, 1)]
        assert Run(spout).rows() == [row]
        assert type(Run(spout).rows()[0][0]) is dt.datetime
        pq.write_table(table(5_001), path)
        with pytest.raises(UnusableFile, match=r"a\.parquet', row group 0, cannot be read: .* would lose data"):
            Run(spout).rows()

    def test_changed_vanished_and_broken_files_halt(self, tmp_path: Path, pq: Any) -> None:
        import pyarrow as pa

        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"n": list(range(10))}), path, compression="none")
        whole = path.read_bytes()
        run = Run(FileTransactionalSpout(path, ["n"], format="parquet", rows_per_batch=4))
        run.plan()
        pq.write_table(pa.table({"n": list(range(1, 11))}), path, compression="none")
        with pytest.raises(FileChanged, match=r"a\.parquet' has other content .*: the footer had the checksum"):
            run.plan()
        with pytest.raises(FileChanged, match="the footer"):
            run.emit(run.batches[0])
        path.write_bytes(whole + b"x")
        with pytest.raises(FileChanged, match=r"a\.parquet' grew"):
            Run(run.spout, batches=run.batches)
        path.unlink()
        with pytest.raises(FileVanished, match=r"a\.parquet' does not exist"):
            run.plan()
        path.write_bytes(whole[:-1])
        with pytest.raises(
            UnusableFile, match=r"a\.parquet' is not a whole Parquet file: it does not end with a footer"
        ):
            Run(run.spout).plan()
        path.write_bytes(b"\0" * 30 + (20).to_bytes(4, "little") + b"PAR1")
        with pytest.raises(UnusableFile, match=r"a\.parquet' cannot be read as Parquet: "):
            Run(run.spout).plan()
        path.write_bytes(b"\0" * 60 + whole[60:])
        broken = Run(run.spout)
        broken.plan()
        with pytest.raises(UnusableFile, match=r"a\.parquet', row group 0, cannot be read: "):
            broken.emit(broken.batches[0])

    def test_other_columns_halt(self, tmp_path: Path, pq: Any) -> None:
        import pyarrow as pa

        pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"m": [1]}), tmp_path / "b.parquet")
        spout = FileTransactionalSpout(tmp_path / "*.parquet", format="parquet")
        with pytest.raises(BadHeader, match=r"b\.parquet' has the columns \['m'\], but .*a\.parquet' has \['n'\]"):
            Run(spout).plan()
        with pytest.raises(UnknownField, match="has no field 'x'"):
            Run(FileTransactionalSpout(tmp_path / "a.parquet", ["x"], format="parquet")).plan()


def test_parquet_without_pyarrow_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from stormline.spouts.file.parquet import ParquetRanges

    message = r"needs the package pyarrow, which is not installed: pip install 'stormline\[parquet\]'"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=message):
        ParquetRanges().begin("a.parquet")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=message):
        FileTransactionalSpout("a.parquet", format="parquet")
