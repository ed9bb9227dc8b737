"""Calls that hold the interpreter's lock, so that no other thread runs Python code meanwhile."""

from __future__ import annotations

import itertools
import re
import time
from collections import deque

TRIED = 20_000_000


def hold_interpreter(secs: float) -> None:
    """Compute in calls of C code that do not release the interpreter's lock, until one has taken so long."""
    counted, took = TRIED, 0.0
    while took < secs:
        begun = time.perf_counter()
        deque(itertools.repeat(None, counted), maxlen=0)
        took = time.perf_counter() - begun
        counted = int(counted * max(1.3, 1.2 * secs / took))


def match_for(secs: float) -> float:
    """Match regular expressions that take twice as long each time, until one has taken so long; return its time."""
    for length in itertools.count(18):
        begun = time.perf_counter()
        re.match("(a*)*b", "a" * length)
        took = time.perf_counter() - begun
        if took >= secs:
            break
    return took
