"""What all rows share."""

CORES = 2
MASTER = f"local[{CORES}]"
PENDING = 128
"""Transactions in a wave of large batches: 12.8 million tuples."""
PENDING_SMALL = 256
WARM_UP_SMALL = 32 * PENDING_SMALL
"""Small transactions before the first measurement. Until then Java compiles what runs for each: the first 2,000 take
its process three times the CPU of those after 8,000."""
BATCH_TUPLES = 100_000
TIMEOUT_SECS = 300.0
"""Time for one measurement; a row that needs more has failed."""

PATIENT = {"topology.message.timeout.secs": 120}
"""Nothing is to be replayed because the machine is busy."""
