"""What all rows share."""

CORES = 2
MASTER = f"local[{CORES}]"
PENDING = 128
"""Transactions in a wave of large batches: 12.8 million tuples."""
PENDING_SMALL = 256
BATCH_TUPLES = 100_000
TIMEOUT_SECS = 300.0
"""Time for one measurement; a row that needs more has failed."""

PATIENT = {"topology.message.timeout.secs": 120}
"""Nothing is to be replayed because the machine is busy."""
