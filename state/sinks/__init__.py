"""Two-phase commit sinks that need no server: files, and the memory of this process."""

from stormline.state.sinks.file_sink import FileTwoPhaseSink
from stormline.state.sinks.memory_sink import MemoryTwoPhaseSink

__all__ = ["FileTwoPhaseSink", "MemoryTwoPhaseSink"]
