"""FileTransactionalSpout by columns: for any file the very values that it gives by rows, and the same errors."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormline.spouts.file import FileTransactionalSpout
from stormline.spouts.file.errors import BadLine
from stormline.topology.errors import FailedException, MissingExtra
from tests.kits.file_spout import Gathered, Run
from tests.unit.topology.test_columns import same

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def both_ways(spout: FileTransactionalSpout, tasks: int = 1) -> tuple[Any, Any, int]:
    """Return what comes of all batches by rows and by columns, or what is raised; and how many tables were emitted."""
    run = Run(spout, tasks)
    batches = run.plan_all()
    found: list[Any] = []
    tables = 0
    for columnar in (False, True):
        try:
            gathered = [run.gather(batch, tasks, columnar) for batch in batches]
            found.append([values[1:] for each in gathered for values in each.values])
            tables = sum(len(each.batches) for each in gathered)
        except BadLine as error:
            found.append(str(error))
    return found[0], found[1], tables


def check(spout: FileTransactionalSpout, tasks: int = 1) -> int:
    by_rows, by_columns, tables = both_ways(spout, tasks)
    assert same(by_columns, by_rows)
    return tables


value = st.text(alphabet=st.sampled_from('ab,"\n\r;é√😀\u2028\x0b '), max_size=6)


@quick
@given(
    table=st.lists(st.lists(value, min_size=3, max_size=3), min_size=1, max_size=12),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    rows_per_batch=st.integers(1, 6),
    fields=st.sampled_from([None, ["c"], ["b", "a"]]),
)
def test_any_csv_of_the_csv_module_gives_the_same_by_columns(
    tmp_path: Path, table: list[list[str]], line_end: str, quoting: Any, rows_per_batch: int, fields: Any
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_ALL if line_end == "\n" else quoting)
    writer.writerows([["a", "b", "c"], *table])
    path = tmp_path / "a.csv"
    path.write_bytes(text.getvalue().encode())
    check(FileTransactionalSpout(path, fields, rows_per_batch=rows_per_batch), 2)


@quick
@given(
    text=st.text(alphabet=st.sampled_from('a1,"\n\r \0'), max_size=30),
    width=st.integers(1, 2),
    skip=st.sampled_from(["skip", "error"]),
    types=st.sampled_from([{}, {"x": int}]),
)
def test_any_text_gives_the_same_rows_or_the_same_error_by_columns(
    tmp_path: Path, text: str, width: int, skip: str, types: Any
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    fields = ["x", "y"][:width]
    check(FileTransactionalSpout(path, fields, header=False, on_bad_line=skip, types=types, rows_per_batch=3))


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2\n\n3,\n",
        'a,b\n"1\n",""\n"say ""hi""",","\n',
        "a,b\r\n1,2\r\n,NA\r\n",
        "a,b\nnull,NaN\n1, 2",
        'a,b\n"é√😀","\r\n"\n',
    ],
)
def test_plain_and_quoted_csv_is_read_as_tables(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    assert check(FileTransactionalSpout(path)) == 1


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ('a,b\n5" pipe,2\n', {}),
        ("a,b\n\xe9,2\n", {"encoding": "latin-1"}),
        ("a,b\n1,2\nx,2\n", {"types": {"a": lambda text: int(text) if text.isdigit() else text}}),
        ("a,b\n1,2\n", {"types": {"a": lambda text: {text}}}),
        ("a,b\n" + "x" * 150_000 + ",1\n", {"on_bad_line": "skip"}),
    ],
)
def test_what_the_readers_may_differ_on_is_read_row_by_row(tmp_path: Path, content: str, options: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode(options.get("encoding", "utf-8")))
    assert check(FileTransactionalSpout(path, **options)) == 0


def test_types_convert_as_by_rows_and_may_fail_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,amount,day,on\n" + "1,1.50,2020-01-02,y\n2,,2020-01-03,n\n" * 3)
    types: dict[str, Any] = {
        "n": int,
        "amount": lambda text: Decimal(text) if text else None,
        "day": dt.date.fromisoformat,
        "on": "y".__eq__,
    }
    assert check(FileTransactionalSpout(path, types=types, rows_per_batch=4)) == 2

    def later(text: str) -> int:
        raise FailedException("not yet")

    run = Run(FileTransactionalSpout(path, types={"n": later}))
    with pytest.raises(FailedException, match="not yet"):
        run.gather(run.plan(), columnar=True)


def test_a_bad_value_names_its_line_by_columns_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n\n1\n\n2\nx\n")
    by_rows, by_columns, _ = both_ways(FileTransactionalSpout(path, types={"n": int}))
    assert by_columns == by_rows
    assert "a.csv:5: column 'n' is 'x', which int does not take" in by_columns


def test_csv_columns_without_pyarrow_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n\n1\n")
    run = Run(FileTransactionalSpout(path))
    batch = run.plan()
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"FileTransactionalSpout, whose rows go to bolts that take .*\[arrow\]"):
        run.gather(batch, columnar=True)


MOMENT = dt.datetime(2020, 1, 1, 0, 0, 0, 7)
PARQUET = pa.table(
    {
        "n": pa.array(range(10), pa.int32()),
        "text": pa.array([f"w{n}" if n % 3 else None for n in range(10)]).dictionary_encode(),
        "amount": pa.array([Decimal("1.50")] * 10),
        "at": pa.array([MOMENT] * 10, pa.timestamp("ns")),
        "list": pa.array([[MOMENT]] * 10, pa.list_(pa.timestamp("ns"))),
        "struct": [{"a": n} for n in range(10)],
    }
)


@pytest.mark.parametrize("tasks", [1, 3])
def test_parquet_gives_the_same_by_columns(tmp_path: Path, tasks: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(PARQUET, path, row_group_size=4)
    assert check(FileTransactionalSpout(path, format="parquet", rows_per_batch=7), tasks) >= 4
    assert check(FileTransactionalSpout(path, ["text", "n"], format="parquet", rows_per_batch=100), tasks) >= 3
    (row, *_) = Run(FileTransactionalSpout(path, format="parquet")).rows()
    assert same(row, [0, None, Decimal("1.50"), MOMENT, [MOMENT], {"a": 0}])


def test_parquet_of_a_type_that_does_not_travel_is_emitted_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": pa.array(["x", None]).cast(pa.string_view())}), path)
    run = Run(FileTransactionalSpout(path, format="parquet"))
    gathered: Gathered = run.gather(run.plan(), columnar=True)
    assert [values[1:] for values in gathered.values] == [["x"], [None]]
    assert not gathered.batches
