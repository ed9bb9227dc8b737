"""The fault matrix: every way to fail that we know of, what must happen, and what covers it: see docs/faults.md.

tests/unit/docs/test_fault_matrix.py sees that all that is named exists, and that no kind of fault is left out.
"""

from __future__ import annotations

from tests.fault_matrix import (
    bolts,
    databases,
    driver,
    kafka,
    operators,
    sinks,
    spark,
    spouts,
    starrocks,
    stores,
    zookeeper,
)
from tests.fault_matrix.row import Row

MATRIX: dict[str, tuple[Row, ...]] = {
    "Driver": driver.ROWS,
    "Spark": spark.ROWS,
    "ZooKeeper": zookeeper.ROWS,
    "Spout": spouts.ROWS,
    "Bolts": bolts.ROWS,
    "The user's database": databases.ROWS,
    "Stores": stores.ROWS,
    "Two-phase sinks": sinks.ROWS,
    "StarRocks": starrocks.ROWS,
    "Kafka": kafka.ROWS,
    "Operator": operators.ROWS,
}
"""Rows by area."""
