"""Rates: how fast a run is now, from looks at it."""

from __future__ import annotations

from collections import deque

from stormline.runtime.coordination.progress import Snapshot

WINDOW_SECS = 5.0


class Rates:
    """Transactions and tuples a second over the last few seconds."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, int]] = deque([(0.0, 0, 0)])

    def look(self, snapshot: Snapshot) -> tuple[float, float]:
        """Record a look; return transactions/s and tuples/s since the look that is a window old."""
        now = snapshot.elapsed_secs
        while len(self._looks) > 1 and self._looks[1][0] <= now - WINDOW_SECS:
            self._looks.popleft()
        then, transactions, tuples = self._looks[0]
        self._looks.append((now, snapshot.transactions, snapshot.tuples))
        secs = max(now - then, 1e-3)
        return (snapshot.transactions - transactions) / secs, (snapshot.tuples - tuples) / secs
