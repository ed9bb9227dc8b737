"""What users subclass to write bolts."""

from stormline.bolts.base import BaseBasicBolt, BaseBatchBolt, BaseTransactionalBolt

__all__ = ["BaseBasicBolt", "BaseBatchBolt", "BaseTransactionalBolt"]
