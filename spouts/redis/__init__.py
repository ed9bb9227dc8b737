"""A spout that reads Redis Streams, each entry in exactly one batch (pip install 'stormline[redis]')."""

from stormline.spouts.redis.spout import RedisStreamTransactionalSpout

__all__ = ["RedisStreamTransactionalSpout"]
