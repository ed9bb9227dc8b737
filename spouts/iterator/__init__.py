"""IteratorTransactionalSpout: any Python source that can begin anew at a position."""

from stormline.spouts.iterator.spout import IteratorTransactionalSpout

__all__ = ["IteratorTransactionalSpout"]
