"""FileTransactionalSpout: every row in exactly one batch, and the same batch every time."""

from __future__ import annotations

import csv
import io
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormline.spouts.file import FileTransactionalSpout, byte_ranges
from stormline.spouts.file.errors import BadHeader, FileChanged
from stormline.topology.errors import CorruptData, FailedException, UnknownField
from tests.kits.file_spout import Run, declared_fields, ints, numbers, stored, write

pytestmark = pytest.mark.usefixtures("in_tmp")


# ------------------------------------------------------------------------------- every row exactly once

value = st.text(alphabet=st.sampled_from('ab,"\n\r;é√😀\u2028\x0b\x1c '), max_size=6)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(value, min_size=width, max_size=width), min_size=1, max_size=25)
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(tables, min_size=1, max_size=3),
    rows_per_batch=st.integers(1, 12),
    tasks=st.integers(1, 5),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    last_line_end=st.booleans(),
    bom=st.booleans(),
    read_bytes=st.sampled_from([1, 7, 1 << 20]),
)
def test_any_csv_of_the_csv_module_is_read_as_the_csv_module_reads_it(
    tmp_path: Path,
    files: list[list[list[str]]],
    rows_per_batch: int,
    tasks: int,
    line_end: str,
    quoting: Any,
    last_line_end: bool,
    bom: bool,
    read_bytes: int,
) -> None:
    width = len(files[0][0])
    names = [f"c{i}" for i in range(width)]
    paths = []
    expected = []
    for number, table in enumerate(files):
        table = [(row * width)[:width] for row in table]
        text = io.StringIO(newline="")
        # With \n as the line end csv.writer may leave a lone \r unquoted, which csv.reader refuses.
        writer = csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_ALL if line_end == "\n" else quoting)
        writer.writerows([names, *table])
        content = text.getvalue() if last_line_end else text.getvalue().removesuffix(line_end)
        path = tmp_path / f"{number}.csv"
        path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + content.encode())
        paths.append(path)
        expected += list(csv.reader(io.StringIO(content, newline="")))[1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_ranges, "READ_BYTES_MAX", read_bytes)
        run = Run(FileTransactionalSpout(paths, rows_per_batch=rows_per_batch), tasks)
        run.plan_all()
    batches = run.batches
    assert [row for batch in batches for row in run.emit(batch, tasks=1)] == expected
    for batch in batches:
        assert sorted(run.emit(batch)) == sorted(run.emit(batch, tasks=1))
    sizes = [sum(piece[4] for piece in batch["pieces"]) for batch in batches]
    assert all(size == rows_per_batch for size in sizes[:-1])
    assert 1 <= sizes[-1] <= rows_per_batch
    for restart in range(len(batches)):  # a fresh coordinator goes on with the very same batches
        assert Run(run.spout, tasks, batches[:restart]).plan_all() == batches


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(alphabet=st.sampled_from('a,"\n\r'), max_size=40),
    rows_per_batch=st.integers(1, 5),
    tasks=st.integers(1, 3),
    read_bytes=st.sampled_from([1, 3, 1 << 20]),
)
def test_broken_csv_gives_the_same_rows_however_it_is_cut(
    tmp_path: Path, text: str, rows_per_batch: int, tasks: int, read_bytes: int
) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(text.encode())
    found = []
    for per_batch, of_tasks, at_once in ((1000, 1, 1 << 20), (rows_per_batch, tasks, read_bytes)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(byte_ranges, "READ_BYTES_MAX", at_once)
            spout = FileTransactionalSpout(path, ["x", "y"], rows_per_batch=per_batch, header=False, on_bad_line="skip")
            run = Run(spout, of_tasks)
            found.append([row for batch in run.plan_all() for row in run.emit(batch, tasks=1)])
    assert found[0] == found[1]
    if '"' not in text:
        lines = [line.rstrip("\r").split(",") for line in text.split("\n")]
        assert found[0] == [line for line in lines if len(line) == 2 and "\r" not in "".join(line)]


def test_a_stray_quote_within_a_value_is_only_a_character(tmp_path: Path) -> None:
    path = write("a.csv", 'a,b\n5" pipe,"x\ny"\n"he said ""hi""",6" pipe\n')
    run = Run(FileTransactionalSpout(path, rows_per_batch=1))
    assert run.rows() == [['5" pipe', "x\ny"], ['he said "hi"', '6" pipe']]
    assert len(run.batches) == 2


def test_a_big_file_is_split_over_the_tasks(tmp_path: Path) -> None:
    path = write("a.csv", numbers(1, 100))
    run = Run(FileTransactionalSpout(path, rows_per_batch=40), tasks=4)
    assert [[piece[4] for piece in batch["pieces"]] for batch in run.plan_all()] == [[10] * 4, [10] * 4, [10, 10]]
    assert sorted(ints(run.rows())) == list(range(1, 101))
    # Another parallelism after a restart divides the same pieces.
    assert sorted(ints(run.emit(run.batches[0], tasks=3))) == list(range(1, 41))


def test_a_batch_runs_over_into_the_next_files() -> None:
    for number in range(3):
        write(f"{number}.csv", numbers(number * 5 + 1, number * 5 + 5))
    run = Run(FileTransactionalSpout("*.csv", rows_per_batch=7))
    assert [ints(run.emit(batch)) for batch in run.plan_all()] == [
        list(range(1, 8)),
        list(range(8, 15)),
        [15],
    ]


def test_the_metadata_is_plain_and_small() -> None:
    write("a.csv", numbers(1, 50_000))
    run = Run(FileTransactionalSpout("a.csv"), tasks=8)
    assert len(repr(run.plan())) < 1_000
    assert stored(run.batches[0]) == run.batches[0]


def test_the_spout_travels_by_pickle() -> None:
    write("a.csv", numbers(1, 3))
    spout = FileTransactionalSpout("a.csv", types={"n": int})
    assert declared_fields(spout) == ["attempt", "n"]
    assert Run(pickle.loads(pickle.dumps(spout))).rows() == [[1], [2], [3]]
    assert repr(spout) == "FileTransactionalSpout(['a.csv'], format='csv')"


# ------------------------------------------------------------------------------- restarts


def test_a_batch_that_was_never_stored_is_planned_again() -> None:
    write("a.csv", numbers(1, 9))
    run = Run(FileTransactionalSpout("a.csv", rows_per_batch=3))
    first = run.plan()
    lost = run.coordinator.initialize_transaction(2, first)
    assert run.coordinator.initialize_transaction(2, first) == lost


def test_a_coordinator_that_was_not_resumed_never_gives_rows_twice() -> None:
    write("a.csv", numbers(1, 3))
    run = Run(FileTransactionalSpout("a.csv", rows_per_batch=2))
    run.plan_all()
    fresh = Run(run.spout).coordinator
    with pytest.raises(FailedException, match="transaction 3: all rows"):
        fresh.initialize_transaction(3, run.batches[-1])
    assert not fresh.is_ready()


def test_nothing_of_a_batch_is_lost_that_failed_while_it_was_planned() -> None:
    write("a.csv", numbers(1, 3))
    write("b.csv", "other\n1\n")
    run = Run(FileTransactionalSpout(["a.csv", "b.csv"], ["n"]))
    with pytest.raises(BadHeader):
        run.plan()
    write("b.csv", numbers(4, 4))
    assert ints(run.emit(run.plan())) == [1, 2, 3, 4]


def test_a_touched_or_copied_file_is_still_the_same() -> None:
    write("a.csv", numbers(1, 9))
    run = Run(FileTransactionalSpout("a.csv", rows_per_batch=4))
    run.plan()
    os.utime("a.csv", (1, 1))
    run.plan()
    os.utime("a.csv", (2, 2))
    again = Run(run.spout, batches=run.batches)
    assert ints(again.rows()) == list(range(1, 10))


def test_a_file_that_was_read_may_go_and_its_name_is_remembered() -> None:
    path = write("a.csv", numbers(1, 3))
    run = Run(FileTransactionalSpout(path, ["n"]))
    run.plan_all()
    Path(path).unlink()
    assert not run.coordinator.is_ready()
    assert not Run(run.spout, batches=run.batches).coordinator.is_ready()
    write("a.csv", numbers(1, 3))
    assert not Run(run.spout, batches=run.batches).coordinator.is_ready()


def test_a_file_that_was_read_through_a_link_may_go() -> None:
    path = write("data/a.csv", numbers(1, 3))
    Path("link").symlink_to("data")
    run = Run(FileTransactionalSpout("link/a.csv", ["n"]))
    run.plan_all()
    Path(path).unlink()
    assert not Run(run.spout, batches=run.batches).coordinator.is_ready()


def test_another_file_under_the_name_of_one_that_was_read_is_refused_or_taken_for_it() -> None:
    path = write("a.csv", numbers(1, 3))
    run = Run(FileTransactionalSpout("*.csv", ["n"]))
    run.plan_all()
    Path(path).unlink()
    assert not run.coordinator.is_ready()
    write("a.csv", numbers(4, 6))
    assert not Run(run.spout, batches=run.batches).coordinator.is_ready()
    write("a.csv", numbers(4, 7))
    with pytest.raises(FileChanged, match=r"grew: .* with 8 bytes, found 10"):
        Run(run.spout, batches=run.batches)


def test_other_metadata_than_ours_halts() -> None:
    write("a.csv", numbers(1, 3))
    spout = FileTransactionalSpout("a.csv")
    with pytest.raises(CorruptData, match=r"not one of FileTransactionalSpout, version 1: \{'x': 1\}"):
        Run(spout, batches=[{"x": 1}])
    run = Run(spout)
    run.plan()
    text = FileTransactionalSpout("a.csv", format="text")
    with pytest.raises(CorruptData, match="read with format='csv', the spout now has format='text'; go on with"):
        Run(text, batches=run.batches)
    with pytest.raises(CorruptData, match="has 3 bytes, expected a multiple of 14"):
        Run(spout, batches=[{**run.batches[0], "read": b"abc"}])


def test_a_restart_with_other_fields_than_the_stored_columns_halts() -> None:
    write("a.csv", numbers(1, 3))
    run = Run(FileTransactionalSpout("a.csv", rows_per_batch=2))
    run.plan()
    with pytest.raises(UnknownField, match=r"a\.csv', read by .* has no field 'm'; its fields are \['n'\]"):
        Run(FileTransactionalSpout("a.csv", ["m"], rows_per_batch=2), batches=run.batches)
    write("0.csv", "m\n1\n")
    other = FileTransactionalSpout("*.csv")
    assert declared_fields(other) == ["attempt", "m"]
    with pytest.raises(BadHeader, match=r"0\.csv' has the columns \['m'\], but .*a\.csv' has \['n'\]"):
        Run(other, batches=run.batches)
