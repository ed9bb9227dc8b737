"""StarRocks as what a topology loads into, each transaction exactly once."""

from stormline.state.starrocks.rows import CsvRows, JsonRows, Rows
from stormline.state.starrocks.server import StarRocks
from stormline.state.starrocks.stream_load_bolt import ArrowStreamLoadBolt, StreamLoadBolt

__all__ = ["ArrowStreamLoadBolt", "CsvRows", "JsonRows", "Rows", "StarRocks", "StreamLoadBolt"]
