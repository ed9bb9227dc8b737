"""FileTransactionalSpout: rows of CSV, JSON Lines, text and Parquet files, each exactly once."""

from stormline.spouts.file.spout import FileTransactionalSpout

__all__ = ["FileTransactionalSpout"]
