"""Rows that executors write into a database while batches are processed, each transaction visible at its commit."""

from stormline.state.xa.mariadb import MariaDbXaBolt, MariaDbXaSink
from stormline.state.xa.postgresql import PostgresTwoPhaseBolt, PostgresTwoPhaseSink

__all__ = ["MariaDbXaBolt", "MariaDbXaSink", "PostgresTwoPhaseBolt", "PostgresTwoPhaseSink"]
