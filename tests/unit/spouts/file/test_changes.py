"""FileTransactionalSpout: files that change after they were stored halt, and say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stormline.spouts.file import FileTransactionalSpout, byte_ranges
from stormline.spouts.file.errors import FileChanged, FileVanished
from stormline.spouts.file.metadata import Progress
from tests.kits.file_spout import Run, numbers, write

pytestmark = pytest.mark.usefixtures("in_tmp")


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
    assert isinstance(run.coordinator._progress, Progress)
    at = run.coordinator._progress.at
    assert at is not None
    monkeypatch.setattr("os.fstat", lambda _: os.stat_result((0,) * 6 + (size,) + (0,) * 3))
    monkeypatch.setattr(byte_ranges, "_crc_of_prefix", lambda *_: at.crc)
    os.truncate("a.csv", 14)
    with pytest.raises(FileChanged, match=r"shrank: .* with \d+ bytes, found 14"):
        run.plan()
