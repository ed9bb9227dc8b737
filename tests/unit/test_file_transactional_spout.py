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

from stormline.spouts.file import FileTransactionalSpout, byte_ranges, coordinator, listing, metadata
from stormline.spouts.file.errors import (
    BadHeader,
    BadLine,
    FileChanged,
    FileMissing,
    FileVanished,
    InvalidFileSpout,
    TooManyFiles,
    UnusableFile,
)
from stormline.topology.errors import CorruptData, FailedException, InvalidStream, UnknownField
from tests.unit.file_spout_kit import Run, declared_fields, stored


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str | bytes) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path.resolve())


def numbers(first: int, last: int) -> str:
    return "n\n" + "".join(f"{n}\n" for n in range(first, last + 1))


def ints(rows: list[list[Any]]) -> list[int]:
    return [int(row[0]) for row in rows]


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


# ------------------------------------------------------------------------------- readiness


def test_no_file_and_empty_files_are_not_ready_and_no_batch() -> None:
    write("empty.csv", "")
    write("header.csv", "n\n\n\r\n")
    write("mark.csv", b"\xef\xbb\xbf")
    run = Run(FileTransactionalSpout("*.csv", ["n"]))
    assert not run.coordinator.is_ready()
    with pytest.raises(FailedException, match=r"transaction 1: all rows of \['\*\.csv'\] have been read"):
        run.coordinator.initialize_transaction(1, None)


def test_new_files_are_picked_up_after_the_old_ones_also_where_they_sort_first() -> None:
    write("data/m.csv", numbers(1, 3))
    run = Run(FileTransactionalSpout("data/**/*.csv", rows_per_batch=2))
    assert ints(run.rows()) == [1, 2, 3]
    assert not run.coordinator.is_ready()
    write("data/b.csv", numbers(4, 5))
    assert run.coordinator.is_ready()
    write("data/deep/er/a.csv", numbers(6, 6))
    assert ints(run.emit(run.plan())) == [4, 5]
    assert ints(run.emit(run.plan())) == [6]
    assert not run.coordinator.is_ready()
    again = Run(run.spout, batches=run.batches)
    assert not again.coordinator.is_ready()
    write("data/z.csv", numbers(7, 7))
    assert ints(again.emit(again.plan())) == [7]


def test_a_glob_may_match_nothing_yet_and_leaves_out_hidden_files_and_directories() -> None:
    Path("dir.csv").mkdir()
    write(".part.csv", numbers(8, 9))
    run = Run(FileTransactionalSpout("*.csv", ["n"]))
    assert not run.coordinator.is_ready()
    Path(".part.csv").rename("part.csv")
    assert ints(run.rows()) == [8, 9]


def test_an_empty_file_is_read_once_it_is_filled() -> None:
    path = write("a.csv", "")
    run = Run(FileTransactionalSpout(path, ["n"]))
    assert not run.coordinator.is_ready()
    write("a.csv", numbers(1, 2))
    assert ints(run.rows()) == [1, 2]


def test_a_file_named_twice_is_read_once() -> None:
    path = write("a.csv", numbers(1, 2))
    assert ints(Run(FileTransactionalSpout(["a.csv", path, "*.csv", "./a.csv"])).rows()) == [1, 2]


def test_a_file_that_symbolic_links_lead_to_is_read_once() -> None:
    real = write("2024-01-01.csv", numbers(1, 2))
    Path("current.csv").symlink_to("2024-01-01.csv")
    for paths in ("*.csv", ["current.csv", "2024-01-01.csv"], "current.csv"):
        assert listing.list_files([paths] if isinstance(paths, str) else paths).sizes == {real: 6}
        assert ints(Run(FileTransactionalSpout(paths)).rows()) == [1, 2]


def test_a_directory_that_links_lead_around_in_is_read_once() -> None:
    write("data/a.csv", numbers(1, 2))
    write("data/sub/b.csv", numbers(3, 4))
    Path("data/sub/up").symlink_to("..")
    for paths in ("data/**/*.csv", ["data/sub/up/a.csv", "data/a.csv", "data/sub/up/sub/b.csv"]):
        assert ints(Run(FileTransactionalSpout(paths)).rows()) == [1, 2, 3, 4]
    assert len(listing.list_files(["data/**"]).sizes) == 2


def test_a_link_that_is_pointed_at_another_file_names_a_new_one() -> None:
    write("a", numbers(1, 2))
    write("b", numbers(3, 5))
    Path("current").symlink_to("a")
    run = Run(FileTransactionalSpout("current", ["n"]))
    run.plan_all()
    Path("current").unlink()
    Path("current").symlink_to("b")
    assert ints(Run(run.spout, batches=run.batches).rows()) == [1, 2, 3, 4, 5]


def test_a_link_that_leads_nowhere_is_left_out_of_a_glob_and_missing_as_a_path() -> None:
    Path("a.csv").symlink_to("gone.csv")
    assert not Run(FileTransactionalSpout("*.csv", ["n"])).coordinator.is_ready()
    with pytest.raises(FileMissing, match=r"gone\.csv' does not exist"):
        Run(FileTransactionalSpout("a.csv", ["n"]))


def test_a_directory_name_with_glob_characters_is_no_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("odd[1]/a.csv", numbers(1, 2))
    monkeypatch.chdir(tmp_path / "odd[1]")
    assert ints(Run(FileTransactionalSpout("*.csv")).rows()) == [1, 2]


def test_a_slow_look_at_the_files_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(FileTransactionalSpout("*.csv", ["n"]))
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    look = listing.list_files

    def slow_look(paths: Any) -> Any:
        nonlocal now
        now += 1.0
        return look(paths)

    monkeypatch.setattr(coordinator, "list_files", slow_look)
    assert not run.coordinator.is_ready()
    write("a.csv", numbers(1, 1))
    now = 9.9
    assert not run.coordinator.is_ready()
    now = 10.1
    assert run.coordinator.is_ready()


def test_thousands_of_tiny_files_end_a_batch_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "PATHS_BYTES_MAX", 1000)
    for number in range(40):
        write(f"{number:03}.csv", numbers(number, number))
    run = Run(FileTransactionalSpout("*.csv"))
    assert ints(run.rows()) == list(range(40))
    assert 2 < len(run.batches) < 20


def test_more_files_than_the_state_can_remember_halt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "FILES_READ_MAX", 2)
    for number in range(3):
        write(f"{number}.csv", numbers(1, 1))
    with pytest.raises(TooManyFiles, match=r"more than 2 files were read.*ZooKeeper takes 1 MB at most: join small"):
        Run(FileTransactionalSpout("*.csv")).plan_all()


def test_the_largest_metadata_fits_in_a_znode() -> None:
    read = metadata.FilesRead()
    read.add((f"/data/{number}", number) for number in range(metadata.FILES_READ_MAX))
    assert len(read.to_bytes()) + metadata.PATHS_BYTES_MAX + 4096 + 65536 < 1_000_000
    assert metadata.FilesRead(read.to_bytes()).check("/data/7", 7)
    assert "/data/40000" not in read


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


# ------------------------------------------------------------------------------- files that change


def half_read(name: str = "a.csv") -> Run:
    run = Run(FileTransactionalSpout(name, ["n"], rows_per_batch=5))
    run.plan()
    return run


GREW = r"a\.csv' grew: the stored state has it with 23 bytes, found 26; a file must not change .* topology id"


def test_an_appended_file_halts_planning_restart_and_reading() -> None:
    write("a.csv", numbers(1, 10))
    run = half_read()
    write("a.csv", numbers(1, 11))
    with pytest.raises(FileChanged, match=GREW):
        run.plan()
    with pytest.raises(FileChanged, match=GREW):
        Run(run.spout, batches=run.batches)
    with pytest.raises(FileChanged, match=GREW):
        run.emit(run.batches[0])


def test_a_file_appended_after_it_was_read_halts() -> None:
    write("a.csv", numbers(1, 10))
    run = Run(FileTransactionalSpout("*.csv"))
    run.plan_all()
    write("a.csv", numbers(1, 11))
    with pytest.raises(FileChanged, match=GREW):
        run.coordinator.is_ready()


def test_a_shrunk_file_halts() -> None:
    write("a.csv", numbers(1, 10))
    run = half_read()
    write("a.csv", numbers(1, 9))
    with pytest.raises(FileChanged, match=r"a\.csv' shrank: the stored state has it with 23 bytes, found 20"):
        run.plan()


def test_other_bytes_in_what_was_read_halt() -> None:
    write("a.csv", numbers(1, 10))
    run = half_read()
    write("a.csv", numbers(1, 10).replace("3", "4"))
    os.utime("a.csv", (1, 1))
    message = (
        r"a\.csv' has other content .*: the first 12 bytes had the checksum [0-9a-f]{8}, found [0-9a-f]{8}; a file"
    )
    with pytest.raises(FileChanged, match=message):
        run.plan()
    with pytest.raises(FileChanged, match=message):
        Run(run.spout, batches=run.batches)
    with pytest.raises(FileChanged, match=r"content .*: the range of bytes 2 to 12, from line 2 on, had the checksum"):
        run.emit(run.batches[0])


def test_a_restart_reads_the_prefix_again_even_if_size_and_time_are_the_same() -> None:
    write("a.csv", numbers(1, 10))
    before = os.stat("a.csv")
    run = half_read()
    write("a.csv", numbers(1, 10).replace("3", "4"))
    os.utime("a.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(FileChanged, match="the first 12 bytes"):
        Run(run.spout, batches=run.batches)


VANISHED = r"a\.csv' does not exist on .*; the stored state has it with 23 bytes .*; put the same file back"


@pytest.mark.parametrize("paths", ["a.csv", "*.csv"])
def test_a_vanished_file_halts(paths: str) -> None:
    write("a.csv", numbers(1, 10))
    run = half_read(paths)
    Path("a.csv").unlink()
    with pytest.raises(FileVanished, match=VANISHED):
        run.plan()
    with pytest.raises(FileVanished, match=VANISHED):
        Run(run.spout, batches=run.batches)
    with pytest.raises(FileVanished, match=VANISHED):
        run.emit(run.batches[0])


def test_a_file_of_a_glob_may_go_before_it_is_begun() -> None:
    for name in "abc":
        write(f"{name}.csv", numbers(1, 1))
    run = Run(FileTransactionalSpout("*.csv", rows_per_batch=1))
    run.plan()
    Path("b.csv").unlink()
    Path("c.csv").write_text("")
    assert len(run.plan_all()) == 1


def test_a_file_cut_off_while_it_is_read_halts(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.csv", numbers(1, 10_000))
    run = half_read()
    size = os.path.getsize("a.csv")
    at = run.coordinator._progress.at
    assert at is not None
    monkeypatch.setattr("os.fstat", lambda _: os.stat_result((0,) * 6 + (size,) + (0,) * 3))
    monkeypatch.setattr(byte_ranges, "_crc_of_prefix", lambda *_: at.crc)
    os.truncate("a.csv", 14)
    with pytest.raises(FileChanged, match=r"shrank: .* with \d+ bytes, found 14"):
        run.plan()


# ------------------------------------------------------------------------------- paths that will not do


def test_a_file_that_does_not_exist_is_named_when_declared_and_at_the_start() -> None:
    message = r"nowhere\.csv' does not exist on .*; the driver and every executor read the files, so put it"
    with pytest.raises(FileMissing, match=message):
        declared_fields(FileTransactionalSpout("nowhere.csv"))
    with pytest.raises(FileNotFoundError, match=message):
        Run(FileTransactionalSpout("nowhere.csv", ["n"]))


def test_a_glob_without_files_cannot_name_the_fields() -> None:
    write("empty.csv", "")
    with pytest.raises(
        FileMissing, match=r"no file with a header matches \['\*\.csv'\] yet, .* name them with fields="
    ):
        declared_fields(FileTransactionalSpout("*.csv"))


def test_a_directory_and_a_pipe_are_refused() -> None:
    Path("dir").mkdir()
    with pytest.raises(
        UnusableFile, match=r"dir' is a directory, expected a file; to read the files in it pass '.*dir/\*"
    ):
        Run(FileTransactionalSpout("dir", ["n"]))
    os.mkfifo("pipe")
    with pytest.raises(UnusableFile, match="pipe' is no regular file; a batch must be readable again"):
        Run(FileTransactionalSpout("pipe", ["n"]))


def test_a_name_that_is_no_text_is_refused() -> None:
    try:
        with open(b"\xff.csv", "wb") as file:
            file.write(b"n\n1\n")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    with pytest.raises(UnusableFile, match="is not valid UTF-8; rename it"):
        Run(FileTransactionalSpout("*.csv"))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\x1f\x8b\x08\0", "compressed with gzip; unpack it first"),
        (b"BZh91AY&SY", "compressed with bzip2; unpack it first"),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"PAR1\0\0", "a Parquet file; pass format='parquet'"),
        ("n\n1\n".encode("utf-16"), "UTF-16; convert it to UTF-8 first"),
    ],
)
def test_files_that_are_no_plain_text_are_refused(head: bytes, message: str) -> None:
    write("a.csv", head)
    with pytest.raises(UnusableFile, match=rf"a\.csv' is {message}"):
        declared_fields(FileTransactionalSpout("a.csv"))


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_ranges, "LINE_BYTES_MAX", 1000)
    monkeypatch.setattr(byte_ranges, "READ_BYTES_MAX", 100)
    write("a.txt", "short\n" + "x" * 5000)
    with pytest.raises(UnusableFile, match=r"a\.txt:2: the line is longer than 1000 bytes; is this a file of lines"):
        Run(FileTransactionalSpout("a.txt", format="text")).plan()


# ------------------------------------------------------------------------------- CSV headers and columns


def test_fields_pick_and_order_the_columns() -> None:
    write("a.csv", "a,b,c\n1,2,3\n4,,6\n")
    assert declared_fields(FileTransactionalSpout("a.csv")) == ["attempt", "a", "b", "c"]
    picked = FileTransactionalSpout("a.csv", ["c", "a"])
    assert declared_fields(picked) == ["attempt", "c", "a"]
    assert Run(picked).rows() == [["3", "1"], ["6", "4"]]
    assert Run(FileTransactionalSpout("a.csv", ["b"])).rows() == [["2"], [""]]


def test_without_a_header_the_fields_name_the_columns() -> None:
    write("a.csv", "1;2\n3;4\n")
    spout = FileTransactionalSpout("a.csv", ["x", "y"], header=False, delimiter=";", types={"y": int})
    assert Run(spout).rows() == [["1", 2], ["3", 4]]


def test_types_convert_also_columns_that_are_not_taken() -> None:
    write("a.csv", "a,b\n1,2\n")
    assert Run(FileTransactionalSpout("a.csv", types={"b": float})).rows() == [["1", 2.0]]


def test_another_header_in_a_later_file_halts() -> None:
    write("a.csv", "a,b\n1,2\n")
    write("b.csv", "b,a\n1,2\n")
    spout = FileTransactionalSpout(["a.csv", "b.csv"])
    with pytest.raises(
        BadHeader, match=r"b\.csv' has the columns \['b', 'a'\], but .*a\.csv' has \['a', 'b'\]; all fi"
    ):
        Run(spout).rows()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,a\n", "has 2 columns named 'a'; name others with fields="),
        ("a,\n", "has a column without a name; name others"),
        ("attempt,a\n", "has a column 'attempt', the name of the first field of every tuple; name others"),
        ('a,"b"c\n', r"a\.csv:1: the header row cannot be read: not valid CSV: ',' expected after '\"'; correct"),
        ('\n\na,"b', r"a\.csv:3: the header row cannot be read: not valid CSV: a quote is opened and never closed"),
    ],
)
def test_a_header_that_gives_no_fields_is_refused(header: str, message: str) -> None:
    write("a.csv", header)
    with pytest.raises(BadHeader, match=message):
        declared_fields(FileTransactionalSpout("a.csv"))


def test_a_field_or_type_that_no_column_has_is_refused() -> None:
    write("a.csv", "word,n\n")
    with pytest.raises(UnknownField, match=r"has no field 'wrod'; its fields are \['word', 'n'\]; did you mean 'word'"):
        Run(FileTransactionalSpout("a.csv", ["wrod"])).coordinator.is_ready()
    with pytest.raises(UnknownField, match="has no field 'm'"):
        declared_fields(FileTransactionalSpout("a.csv", types={"m": int}))


def test_a_header_may_hold_quotes_and_line_feeds() -> None:
    write("a.csv", '"a\nb",c\n1,2\n')
    spout = FileTransactionalSpout("a.csv")
    assert declared_fields(spout) == ["attempt", "a\nb", "c"]
    write("a.csv", '"a\nb",c\n1\n')
    with pytest.raises(BadLine, match=r"a\.csv:3: the row has 1 values"):
        Run(spout).rows()


# ------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "cvs"}, r"format is 'cvs', expected one of .*; did you mean 'csv'"),
        ({"on_bad_line": "warn"}, "on_bad_line is 'warn', expected 'error' or 'skip'"),
        ({"rows_per_batch": 0}, "rows_per_batch is 0, expected a whole number of at least 1"),
        ({"rows_per_batch": True}, "rows_per_batch is True, expected a whole"),
        ({"paths": []}, r"paths is \[\], expected a path or a list with at least one"),
        ({"paths": [""]}, "paths holds '', expected non-empty text or a Path"),
        ({"paths": [3]}, "paths holds 3, expected"),
        ({"fields": "n"}, r"fields is the text 'n', expected a list: \['n'\]"),
        ({"fields": []}, "fields is empty; name at least one field"),
        ({"format": "jsonl"}, "format='jsonl' needs fields: name the keys"),
        ({"header": False}, "header=False needs fields: name the columns"),
        ({"format": "text", "fields": ["a", "b"]}, "gives one field, the line; fields names 2"),
        ({"format": "text", "types": {"line": int}}, "types is for format='csv'; leave it out with format='text'"),
        ({"format": "text", "delimiter": ";"}, "delimiter is for format='csv'"),
        ({"format": "text", "header": False}, "header is for format='csv'"),
        ({"defaults": {"n": 1}}, "defaults is for format='jsonl'; leave it out with format='csv'"),
        ({"fields": ["n"], "types": {"n": 3}}, r"types\['n'\] is 3, expected a callable"),
        ({"delimiter": '"'}, "delimiter is '\"', expected one ASCII character"),
        ({"encoding": "utf8x"}, "encoding 'utf8x' is not known to Python"),
        (
            {"encoding": "utf-16"},
            "encoding 'utf-16' does not keep ASCII characters as single bytes.* convert the files",
        ),
        ({"encoding": "iso2022_jp"}, "encoding 'iso2022_jp' does not keep"),
        ({"encoding": "cp500"}, "encoding 'cp500' does not keep"),
        (
            {"encoding": "gbk", "delimiter": "|"},
            r"delimiter '\|' is also the second byte of characters in encoding 'gbk'.* convert the files to UTF-8",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFileSpout, match=message):
        FileTransactionalSpout(**{"paths": "a.csv", **arguments})


@pytest.mark.parametrize("encoding", ["gbk", "big5", "shift_jis", "gb18030", "latin-1", "utf-8"])
def test_a_comma_is_a_delimiter_in_every_encoding(encoding: str) -> None:
    FileTransactionalSpout("a.csv", encoding=encoding)


def test_field_names_are_checked_when_declared() -> None:
    with pytest.raises(UnknownField, match=r"named in types: the spout has no field 'm'; its fields are \['n'\]"):
        FileTransactionalSpout("a.csv", ["n"], types={"m": int})
    with pytest.raises(InvalidStream, match="field 'n' is given twice"):
        FileTransactionalSpout("a.csv", ["n", "n"])


def test_a_glob_that_matches_nothing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(FileTransactionalSpout("*.csv", fields=["a"]))
    assert not run.coordinator.is_ready()
    assert not run.coordinator.is_ready()
    assert [record.getMessage() for record in caplog.records] == ["no file matches ['*.csv'] yet"]
