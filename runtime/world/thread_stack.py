"""Where a thread is, for those who read a log."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from stormline.runtime.world.world import Thread

FRAMES_MAX = 5

# As frames name it, to the letter: on an executor the zip of a bundle is "./x.zip".
_OUR_ROOMS = f"{os.path.dirname(os.path.dirname(os.path.dirname(__file__)))}/"
_CALLERS = tuple(f"{_OUR_ROOMS}runtime/{name}.py" for name in ("tasks/user_code", "world/own_thread"))
_WAITS_FOR: dict[int, int] = {}


def is_ours(frame_file: str) -> bool:
    """Return whether a file of code, as a frame names it, is one of Stormline's."""
    return frame_file.startswith(_OUR_ROOMS)


@contextmanager
def waiting_for(thread: int | None) -> Iterator[None]:
    """Say that this thread does nothing but wait for a call in another one, while within."""
    me = threading.get_ident()
    if thread is not None:
        _WAITS_FOR[me] = thread
    try:
        yield
    finally:
        _WAITS_FOR.pop(me, None)


def place_of(thread: int) -> str:
    """Return where user code stands that a thread has called: its own line, and the innermost one if it is another."""
    while thread in _WAITS_FOR:
        thread = _WAITS_FOR[thread]
    frame: FrameType | None = sys._current_frames().get(thread)
    places: list[tuple[str, str]] = []
    while frame is not None and frame.f_code.co_filename not in _CALLERS:
        file = frame.f_code.co_filename
        places.append((file, f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"))
        frame = frame.f_back
    if not places:
        return "its end"
    innermost = places[0][1]
    users = next((place for file, place in reversed(places) if not is_ours(file)), innermost)
    return users if users == innermost else f"{users}, which has called {innermost}"


def stack_of(thread: Thread) -> str:
    """Return the innermost calls that a thread is in, a line each and one of its code; "" where it has ended."""
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)[-FRAMES_MAX:]) if frame else ""
