"""Where a thread is, for those who read a log."""

from __future__ import annotations

import sys
import threading
import traceback

FRAMES_MAX = 5


def stack_of(thread: threading.Thread) -> str:
    """Return the innermost calls that a thread is in, a line each and one of its code; "" where it has ended."""
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)[-FRAMES_MAX:]) if frame else ""
