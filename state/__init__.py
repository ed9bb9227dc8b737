"""Databases in which a topology's committers store, each transaction exactly once."""

from stormline.state.maps import NonTransactionalMap, OpaqueMap, SnapshottableMap, StateMap, TransactionalMap
from stormline.state.memory import MemoryStore
from stormline.state.open_map import OpenMap, OpenValue
from stormline.state.sqlite import SQLiteStore
from stormline.state.store import Store

__all__ = [
    "MemoryStore",
    "NonTransactionalMap",
    "OpaqueMap",
    "OpenMap",
    "OpenValue",
    "SQLiteStore",
    "SnapshottableMap",
    "StateMap",
    "Store",
    "TransactionalMap",
]
