"""StarRocks as what a topology loads into, each transaction exactly once."""

from stormline.state.starrocks.rows import CsvRows, JsonRows, Rows
from stormline.state.starrocks.server import StarRocks

__all__ = ["CsvRows", "JsonRows", "Rows", "StarRocks"]
