"""FileTransactionalSpout with `order_by`: whatever the logs, their rows come once each, in the order of their times."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormline.spouts.file import FileTransactionalSpout
from stormline.spouts.file import lane as lane_module
from tests.kits.file_spout import Run, write

pytestmark = pytest.mark.usefixtures("in_tmp")

Row = tuple[int | None, str]
"""What is between a row and the one before it in the order of times, None for a row without a time; and its name."""


@dataclass(frozen=True)
class Log:
    """A server's log: its rows as they stand in the file."""

    name: str
    rows: list[Row]

    def keyed(self) -> list[tuple[float, str, int, str]]:
        """Return each row with what it is ordered by: a row without a time goes with the one before it."""
        key = float("-inf")
        found = []
        for ordinal, (time, text) in enumerate(self.rows):
            key = key if time is None else time
            found.append((key, self.name, ordinal, text))
        return found

    def window(self) -> int:
        """Return how many rows the latest row stands behind a later time."""
        keys = [key for key, *_ in self.keyed()]
        return max(
            (late - early for late in range(len(keys)) for early in range(late) if keys[early] > keys[late]), default=0
        )


@st.composite
def logs(draw: st.DrawFn, disorder: int) -> list[Log]:
    """Draw the logs of some servers; `disorder` is how far a row may be moved."""
    found = []
    for server in range(draw(st.integers(1, 4))):
        steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, disorder), st.booleans()), max_size=25))
        time, rows = 0, []
        for place, (step, moved, missing) in enumerate(steps):
            time += step
            rows.append((place + moved, None if missing and step == 0 else time, f"{server}.{place}"))
        rows.sort(key=lambda row: row[0])
        found.append(Log(f"server{server}", [(time, text) for _, time, text in rows]))
    return found


def write_all(found: list[Log], format: str) -> None:
    for log in found:
        if format == "csv":
            lines = ["time,text", *(f"{'' if time is None else time},{text}" for time, text in log.rows)]
        else:
            lines = [json.dumps({"time": time, "text": text}) for time, text in log.rows]
        write(f"{log.name}.log", "".join(line + "\n" for line in lines))


def spout_of(format: str, rows_per_batch: int, **options: Any) -> FileTransactionalSpout:
    return FileTransactionalSpout(
        "*.log", ["time", "text"], format, rows_per_batch=rows_per_batch, order_by="time", **options
    )


quick = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(
    found=logs(disorder=4),
    format=st.sampled_from(["csv", "jsonl"]),
    rows_per_batch=st.integers(1, 30),
    spare=st.integers(0, 3),
    tasks=st.integers(1, 3),
    block_rows=st.sampled_from([1, 3, 4096]),
    replayed=st.lists(st.integers(0, 100), max_size=5),
)
def test_the_rows_of_several_logs_come_once_each_in_the_order_of_their_times(
    tmp_path: Path,
    found: list[Log],
    format: str,
    rows_per_batch: int,
    spare: int,
    tasks: int,
    block_rows: int,
    replayed: list[int],
) -> None:
    for old in tmp_path.glob("*.log"):
        old.unlink()
    write_all(found, format)
    expected = [text for *_, text in sorted(row for log in found for row in log.keyed())]
    window = max(log.window() for log in found) + spare
    spout = spout_of(format, rows_per_batch, order_window=window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_module, "BLOCK_ROWS_MAX", block_rows)
        run = Run(spout, tasks)
        batches = run.plan_all()
        emitted = [run.emit(batch) for batch in batches]
        assert [row[1] for batch in emitted for row in batch] == expected
        assert [len(batch) for batch in emitted[:-1]] == [rows_per_batch] * (len(batches) - 1)
        for number in replayed:
            if batches:
                assert run.emit(batches[number % len(batches)], tasks=1) == emitted[number % len(batches)]
    for restart in range(len(batches) + 1):  # a fresh coordinator goes on with the very same batches
        assert Run(spout, 1, batches[:restart]).plan_all() == batches


@quick
@given(
    found=logs(disorder=12),
    rows_per_batch=st.integers(1, 30),
    windows=st.lists(st.integers(0, 6), min_size=1, max_size=4),
)
def test_late_rows_that_are_kept_come_once_too_also_where_the_window_is_changed(
    tmp_path: Path, found: list[Log], rows_per_batch: int, windows: list[int]
) -> None:
    for old in tmp_path.glob("*.log"):
        old.unlink()
    write_all(found, "csv")
    batches: list[Any] = []
    while True:
        window = windows[len(batches) % len(windows)]
        run = Run(spout_of("csv", rows_per_batch, order_window=window, on_late_row="keep"), 1, batches)
        if not run.coordinator.is_ready():
            break
        run.plan()
        batches = run.batches
    texts = [[row[1] for row in run.emit(batch)] for batch in batches]
    assert sorted(text for batch in texts for text in batch) == sorted(text for log in found for _, text in log.rows)
    keys = {text: key for log in found for key, *_, text in log.keyed()}
    for batch in texts:
        assert [keys[text] for text in batch] == sorted(keys[text] for text in batch)
