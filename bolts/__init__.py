"""What users subclass to write bolts."""

from stormline.bolts.arrow import ArrowBatchBolt, ArrowTransactionalBolt
from stormline.bolts.base import BaseBasicBolt, BaseBatchBolt, BaseTransactionalBolt

__all__ = ["ArrowBatchBolt", "ArrowTransactionalBolt", "BaseBasicBolt", "BaseBatchBolt", "BaseTransactionalBolt"]
