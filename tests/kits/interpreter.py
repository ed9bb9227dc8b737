"""Calls that hold the interpreter's lock, so that no other thread runs Python code meanwhile."""

from __future__ import annotations

import itertools
import re
import time
from collections import deque

TRIED = 20_000_000


def hold_interpreter(secs: float) -> None:
    """Compute for about so long, or longer, in one call of C code that does not release the interpreter's lock."""
    begun = time.perf_counter()
    deque(itertools.repeat(None, TRIED), maxlen=0)
    rate = TRIED / (time.perf_counter() - begun)
    deque(itertools.repeat(None, int(rate * secs)), maxlen=0)


def match_for(secs: float) -> float:
    """Match regular expressions that take twice as long each time, until one has taken so long; return its time."""
    for length in itertools.count(18):
        begun = time.perf_counter()
        re.match("(a*)*b", "a" * length)
        took = time.perf_counter() - begun
        if took >= secs:
            break
    return took
