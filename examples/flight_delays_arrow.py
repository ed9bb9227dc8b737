"""`examples.flight_delays` by columns: the same flights, the same results, in the same kind of database.

The bolts that meet every flight, `carriers-partial` and `departures-partial`, take record batches here. So the spout,
all of whose consumers do, reads its part of the file as columns, and by plain call they are handed over as they are.
What they emit, one tuple a key, is little, and the committers are those of the rows: row bolts and columnar bolts mix
in one topology, each at the place where it pays.

Needs pyarrow: pip install 'stormline[arrow,examples]'. The settings are those of `examples.flight_delays`.
"""

from __future__ import annotations

from examples import flight_delays
from stormline import Topology

TOPOLOGY_ID = "flight-delays-arrow"
config = flight_delays.config


def topology() -> Topology:
    """Declare the topology of `examples.flight_delays` by columns."""
    return flight_delays.topology(TOPOLOGY_ID, batches=True)


def report() -> str:
    """Return what the database holds."""
    return flight_delays.report(TOPOLOGY_ID)
