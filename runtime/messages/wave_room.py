"""WaveRoom: how many bytes one slot may hand to Spark in one piece, shared by the attempts of a wave.

What the driver emits, and what comes back to it for the commit, goes through the memory of Spark's JVM; what is
exchanged between executors goes through files, and has no such limit.
"""

from __future__ import annotations

BYTES_MAX = 1 << 30
"""Where no JVM says how much it takes."""

SHARE_OF_MEMORY = 4
"""All slots together may take one part in so many of the driver's memory: Spark holds what it is given, or gives, more
than once."""

SHARE_AT_LEAST = 16

EMITTED_SHARE = 2
"""What the driver emits in one wave may take one part in so many: large ones go through files."""

NO_ROOM_BESIDE = "its wave has no room for it beside those before it"


def bytes_for_each(memory_bytes: int, slots: int, result_bytes_max: int = 0) -> int:
    """Return what one of `slots` may take, given the driver's memory and spark.driver.maxResultSize, 0: unlimited."""
    share = max(memory_bytes // SHARE_OF_MEMORY // max(1, slots), memory_bytes // SHARE_AT_LEAST)
    return min(share, result_bytes_max // max(1, slots)) if result_bytes_max else share


class WaveRoom:
    """Counts the bytes of each attempt, by its index in the wave: earlier attempts come first."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._bytes: dict[int, int] = {}
        self._total = 0

    def take(self, index: int, size: int) -> list[int]:
        """Count bytes of one attempt; return the attempts that must go, the last first. 0 is among them where it alone
        takes more than there is."""
        self._bytes[index] = self._bytes.get(index, 0) + size
        self._total += size
        gone = []
        while self._total > self.bytes_max:
            last = max(self._bytes)
            self._total -= self._bytes.pop(last)
            gone.append(last)
        return gone

    def too_large(self, component: str, on_driver: bool) -> str:
        """Say that one attempt alone finds no room, by what `component` emits in the driver, or is to commit."""
        most = f"more than the {self.bytes_max:,} bytes that go to or from Spark at a time here"
        raise_it = "raise spark.driver.memory (and spark.driver.maxResultSize, where it is set)"
        if on_driver:
            return (
                f"the emitters of {component!r}, in the driver, give one batch {most}; make batches smaller, set "
                f"emits_on_executors = True where they depend on metadata alone, or {raise_it}"
            )
        return (
            f"{component!r} is to get {most} of one batch at its commit; aggregate before it, declare what it gathers "
            f"(gathers) where that is less, make batches smaller, or {raise_it}"
        )
