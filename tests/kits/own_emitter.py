"""A spout in one object, to be subclassed."""

from __future__ import annotations

from typing import Any

from stormline import Fields


class OwnEmitter:
    """A spout that is its own coordinator and emitter; only for the driver process."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self

    def is_ready(self) -> bool:
        return True

    def close(self) -> None: ...
