"""FileTransactionalSpout: which files there are, and when there is a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormline.spouts.file import FileTransactionalSpout, coordinator, listing, lookout, metadata
from stormline.spouts.file.errors import FileMissing, TooManyFiles
from stormline.topology.errors import FailedException
from tests.kits.file_spout import Run, ints, numbers, write

pytestmark = pytest.mark.usefixtures("in_tmp")


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


@pytest.mark.parametrize("link", ["link", "in/link"])
def test_a_link_to_a_file_that_was_read_may_go_and_none_to_another(link: str) -> None:
    write("a", numbers(1, 2))
    write("b", numbers(3, 5))
    Path("in").mkdir()
    Path(link).symlink_to(Path("a").absolute())
    run = Run(FileTransactionalSpout([link, "*.csv"], ["n"], rows_per_batch=1))
    assert run.coordinator.is_ready()
    Path(link).unlink()
    with pytest.raises(FileMissing, match=r"link' does not exist"):
        run.coordinator._look()
    Path(link).symlink_to(Path("a").absolute())
    run.plan_all()
    Path(link).unlink()
    assert not run.coordinator.is_ready()
    write("c.csv", numbers(6, 6))
    assert run.coordinator.is_ready()
    Path(link).symlink_to(Path("b").absolute())
    run.coordinator._look()
    Path(link).unlink()
    with pytest.raises(FileMissing, match=r"link' does not exist"):
        run.coordinator._look()


def test_a_directory_that_was_a_link_may_go_when_its_files_were_read() -> None:
    write("data/a.csv", numbers(1, 2))
    Path("link").symlink_to("data")
    run = Run(FileTransactionalSpout("link/a.csv", ["n"]))
    run.plan_all()
    Path("link").unlink()
    assert not run.coordinator.is_ready()


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

    monkeypatch.setattr(lookout, "list_files", slow_look)
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
