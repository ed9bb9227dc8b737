"""Opens files of rows: regular ones only, for a path may come from stored state, and a pipe would never answer."""

from __future__ import annotations

import os
import socket
import stat
from typing import BinaryIO

from stormline.spouts.file.errors import FileVanished, UnusableFile


def open_rows(path: str, size: int | None = None) -> BinaryIO:
    """Open a file; `size` is the one that is stored of it, None where it is seen for the first time.

    Raises:
        FileNotFoundError: it is not there, and nothing is stored of it.
        FileVanished: it is not there any more.
        UnusableFile: it cannot be read, or is no regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        if size is None:
            raise
        raise FileVanished.at(path, size) from None
    except OSError as error:
        raise UnusableFile(
            f"file {path!r} cannot be opened on {socket.gethostname()} ({error.strerror}); the driver and every "
            "executor must be able to read it"
        ) from None
    if not stat.S_ISREG(os.stat(descriptor).st_mode):
        os.close(descriptor)
        raise UnusableFile(
            f"{path!r} is no regular file; a batch must be readable again, so pipes and devices will not do"
        )
    return open(descriptor, "rb")
