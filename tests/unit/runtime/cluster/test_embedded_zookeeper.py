from __future__ import annotations

from stormline.runtime.cluster.embedded_zookeeper import superfluous

FILES = ["log.1", "log.64", "log.c8", "log.12c", "snapshot.0", "snapshot.63", "snapshot.c7", "snapshot.12b", "lock"]


def test_what_came_before_the_kept_snapshots_is_superfluous() -> None:
    assert superfluous(FILES, ["snapshot.c7", "snapshot.12b"]) == ["log.1", "snapshot.0", "snapshot.63"]


def test_a_snapshot_that_is_still_being_written_stays() -> None:
    assert superfluous(["log.1", "snapshot.0", "snapshot.63"], ["snapshot.0"]) == []


def test_without_a_snapshot_to_start_from_all_stays() -> None:
    assert superfluous(FILES, []) == []
    assert superfluous(["log.64", "snapshot.0"], ["snapshot.0"]) == []
