"""Tuples a second of examples.flight_delays, against csv.reader with the same sums in a bare Python loop.

    python -m benchmarks.flights [--repeats 3]

Both take turns in one run. Spark and its JVM are up when the job's time begins; its ZooKeeper and, in the first run,
its Python workers are not. The bare loop reads, parses and sums in one process, without transactions or a database.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import tempfile
import time
from pathlib import Path

from examples import flight_delays
from examples.flights_data import flights_csv
from stormline import LocalCluster
from stormline.runtime.spark.context import start_spark


def bare(path: Path) -> tuple[float, int]:
    """Return seconds and rows of the same sums in a plain loop."""
    begun = time.perf_counter()
    carriers: dict[str, tuple[int, float]] = {}
    hours: dict[tuple[str, str], int] = {}
    rows = 0
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows += 1
            count, total = carriers.get(row["carrier"], (0, 0.0))
            delay = row["dep_delay"]
            carriers[row["carrier"]] = (count + 1, total + (0.0 if delay == "NA" else float(delay)))
            key = (row["origin"], row["hour"])
            hours[key] = hours.get(key, 0) + 1
    return time.perf_counter() - begun, rows


def job(run: int, directory: Path) -> tuple[float, int]:
    """Return seconds and tuples of the job, from submission to the last commit."""
    os.environ["FLIGHT_DELAYS_STORE"] = f"sqlite:{directory / str(run)}.sqlite"
    topology = flight_delays.topology()
    with LocalCluster(directory / str(run)) as cluster:
        begun = time.perf_counter()
        handle = cluster.submit_topology("flights", flight_delays.config, topology)
        handle.await_drained(300)
        return time.perf_counter() - begun, handle.snapshot().tuples


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    rates: dict[str, list[float]] = {"job": [], "bare loop": []}
    sc, _ = start_spark("flights", "local[*]", {})
    with tempfile.TemporaryDirectory() as directory:
        for run in range(args.repeats):
            secs, tuples = job(run, Path(directory))
            rates["job"].append(tuples / secs)
            secs, rows = bare(flights_csv())
            rates["bare loop"].append(rows / secs)
    sc.stop()
    for name, values in rates.items():
        print(f"{name:10} {statistics.median(values):12,.0f} tuples/s  ({min(values):,.0f} to {max(values):,.0f})")
    print(f"ratio      {statistics.median(rates['job']) / statistics.median(rates['bare loop']):12.2f}")


if __name__ == "__main__":
    main()
