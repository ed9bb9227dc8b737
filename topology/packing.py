"""The one place where msgpack is found: an installed one first, else the fallback of a bundle.

Bundles of `stormline compile` come first on the path, and a zip cannot hold msgpack's compiled extension. So they
keep the pure-Python msgpack in a folder of its own, which goes on the path, last, only where none is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

FALLBACK = "stormline-fallback"

try:
    import msgpack
except ModuleNotFoundError:
    sys.path.append(str(Path(__file__).parents[2] / FALLBACK))
    import msgpack

__all__ = ["FALLBACK", "msgpack"]
