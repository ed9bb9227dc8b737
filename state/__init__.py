"""Databases in which a topology's committers store, each transaction exactly once."""

from stormline.state.aggregators import Aggregator, Count, Distinct, Max, Mean, Min, Reduce, Sum, Top
from stormline.state.maps import NonTransactionalMap, OpaqueMap, SnapshottableMap, StateMap, TransactionalMap
from stormline.state.memory import MemoryStore
from stormline.state.mysql import MySQLStore
from stormline.state.opaque_value import OpaqueValue
from stormline.state.open_map import OpenMap, OpenValue
from stormline.state.persistent_aggregate import persistent_aggregate
from stormline.state.postgresql import PostgreSQLStore
from stormline.state.redis import RedisStore
from stormline.state.sinks import FileTwoPhaseSink, MemoryTwoPhaseSink
from stormline.state.sqlite import SQLiteStore
from stormline.state.store import Store
from stormline.state.store_url import store_at

__all__ = [
    "Aggregator",
    "Count",
    "Distinct",
    "FileTwoPhaseSink",
    "Max",
    "Mean",
    "MemoryStore",
    "MemoryTwoPhaseSink",
    "Min",
    "MySQLStore",
    "NonTransactionalMap",
    "OpaqueMap",
    "OpaqueValue",
    "OpenMap",
    "OpenValue",
    "PostgreSQLStore",
    "RedisStore",
    "Reduce",
    "SQLiteStore",
    "SnapshottableMap",
    "StateMap",
    "Store",
    "Sum",
    "Top",
    "TransactionalMap",
    "persistent_aggregate",
    "store_at",
]
