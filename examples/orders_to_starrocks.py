"""Loads order events into StarRocks tables, each exactly once.

    spout (2 tasks) → sort-out (2 tasks) → load (2 tasks, two-phase sink)

`python -m examples.orders_to_starrocks`, in a checkout, writes events into files, starts an emulator of StarRocks
(`python -m tests.starrocks`), loads them, and shows what the tables hold. `STARROCKS_URL=starrocks://root@host:8030/shop
stormline run examples.orders_to_starrocks` loads the files of ORDERS_FILES into a StarRocks of yours, and goes on where
it stopped; docs/starrocks.md says what it needs, and `TABLES` which columns.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from stormline import (
    BaseBasicBolt,
    Collector,
    Config,
    Fields,
    FileTransactionalSpout,
    LocalCluster,
    OutputFieldsDeclarer,
    Topology,
    TransactionalTopologyBuilder,
    Tuple,
    Values,
)
from stormline.state.starrocks import CsvRows, StarRocks, StreamLoadBolt

EVENT = ("kind", "order_id", "customer", "item", "amount")
TABLES = dict.fromkeys(("orders", "returns"), "order_id BIGINT, customer VARCHAR(50), item VARCHAR(50), amount INT")
QUERIES = {"orders": "SELECT * FROM orders;", "returns": "SELECT * FROM returns;"}
ITEMS = ("pen", "ink", 'a 5" notebook, lined', "cap")


class SortOut(BaseBasicBolt):
    """Says which table an event belongs to, and leaves out what is none."""

    def execute(self, tup: Tuple, collector: Collector) -> None:
        """Emit the table's name and the row."""
        kind, *row = tup.values[1:]
        table = {"order": "orders", "return": "returns"}.get(kind)
        if table is not None:
            collector.emit(Values(tup[0], table, *row))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt, the table, and the table's columns."""
        declarer.declare(Fields("id", "table", *EVENT[1:]))


def shop() -> StarRocks:
    """Return the database that the environment names."""
    password = "env:STARROCKS_PASSWORD" if os.environ.get("STARROCKS_PASSWORD") else ""
    return StarRocks(os.environ.get("STARROCKS_URL", "starrocks://root@127.0.0.1:8030/shop"), password)


def topology() -> Topology:
    """Declare the topology."""
    files = os.environ.get("ORDERS_FILES", ".stormline/orders/*.csv")
    spout = FileTransactionalSpout(files, EVENT, types={"order_id": int, "amount": int}, rows_per_batch=500)
    load = StreamLoadBolt(shop(), table_field="table", rows=CsvRows(compression="gzip"))
    builder = TransactionalTopologyBuilder("orders-to-starrocks", "spout", spout, 2)
    builder.set_bolt("sort-out", SortOut(), 2).shuffle_grouping("spout")
    builder.set_bolt("load", load, 2).shuffle_grouping("sort-out")
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(4)


def write(folder: Path, files: int = 4, events: int = 2500) -> None:
    """Write files of events: every tenth is a return, every hundredth neither."""
    for file in range(files):
        with (folder / f"orders-{file:03}.csv").open("w", newline="", encoding="utf-8") as opened:
            lines = csv.writer(opened)
            lines.writerow(EVENT)
            for event in range(events):
                number = file * events + event
                kind = "order" if event % 10 else "return" if event % 100 else "remark"
                lines.writerow((kind, number, f"customer {number % 97}", ITEMS[number % len(ITEMS)], number % 13))


def rows(table: str) -> list[list[Any]]:
    """Return what a table holds, by StarRocks' SQL over HTTP."""
    server = shop()
    host, port = server.front_ends[0]
    login = base64.b64encode(f"{server.user}:{os.environ.get('STARROCKS_PASSWORD', '')}".encode()).decode()
    asked = Request(
        f"http://{host}:{port}/api/v1/catalogs/default_catalog/databases/{server.database}/sql",
        json.dumps({"query": QUERIES[table]}).encode(),
        {"Authorization": f"Basic {login}", "Content-Type": "application/json"},
    )
    with urlopen(asked, timeout=60) as answer:
        return [json.loads(line)["data"] for line in answer.read().decode().splitlines() if '"data"' in line]


def report() -> str:
    """Return what the tables hold."""
    lines = []
    for table in TABLES:
        found = rows(table)
        amounts: Counter[str] = Counter()
        for _, _, item, amount in found:
            amounts[item] += amount
        lines += [f"{table}: {len(found)} rows, {len({row[0] for row in found})} of them different"]
        lines += [f"    {item:<24} {amount:>6}" for item, amount in sorted(amounts.items())]
    return "\n".join(lines)


@contextmanager
def emulator() -> Iterator[str]:
    """Run an emulator, which is part of the checkout and not of the package; give its URL."""
    tables = [word for table, columns in TABLES.items() for word in ("--table", f"shop.{table}={columns}")]
    ports = ["--front-port", "0", "--back-port", "0", "--end-with-parent"]
    command = [sys.executable, "-m", "tests.starrocks", *ports, *tables]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            line = program.stdout.readline()
            if not line:
                raise RuntimeError("the emulator did not start: run this in a checkout, or give STARROCKS_URL")
            yield f"starrocks://root@{line.split('//')[1].split(',')[0]}/shop"
        finally:
            program.terminate()


def main() -> None:
    """Write events, start an emulator, load."""
    with tempfile.TemporaryDirectory() as folder, emulator() as url:
        write(Path(folder))
        os.environ.update(STARROCKS_URL=url, ORDERS_FILES=f"{folder}/*.csv")
        with LocalCluster() as cluster:
            cluster.submit_topology("orders-to-starrocks", config, topology()).await_drained(timeout_secs=120)
        print(report())


if __name__ == "__main__":
    main()
