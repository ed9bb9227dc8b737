"""What needs PySpark beside a topology: spouts that read through it, and a sink for its own queries.

`DataFrameTransactionalSpout` reads DataFrames that have an order, `DataSourceTransactionalSpout` Python data sources.

For queries of Structured Streaming: the stores of `stormline.state` as their sink, each batch once.

from stormline.spark import register

register(spark)
counts.writeStream.format("stormline").queryName("counts").option("store", "sqlite:counts.sqlite")…
"""

from typing import TYPE_CHECKING

from stormline.runtime.spark.data_frame_spout import DataFrameTransactionalSpout
from stormline.runtime.spark.data_source_spout import DataSourceTransactionalSpout
from stormline.runtime.spark.stream_sink import StormlineDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DataFrameTransactionalSpout", "DataSourceTransactionalSpout", "StormlineDataSource", "register"]


def register(spark: "SparkSession") -> None:
    """Let a session know the format "stormline".

    Args:
        spark (SparkSession): The session whose queries write it.
    """
    spark.dataSource.register(StormlineDataSource)
