"""Which files there are: paths and globs, looked at again and again."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from stormline.spouts.file.errors import UnusableFile


class Listing(NamedTuple):
    """The files of one look: their sizes by absolute path, and the paths without wildcards that lead nowhere."""

    sizes: dict[str, int]
    missing: list[str]


def list_files(patterns: Sequence[str]) -> Listing:
    """Look up `patterns`, relative to the current directory; a file that several of them name is listed once.

    A glob takes regular files only and leaves out hidden ones. `**` stands for any number of directories.

    Raises:
        UnusableFile: a path without wildcards is no regular file, or a name is no UTF-8.
    """
    sizes: dict[str, int] = {}
    missing: list[str] = []
    for pattern in patterns:
        is_glob = glob.has_magic(pattern)
        here = os.path.join(glob.escape(os.getcwd()), pattern)  # an absolute pattern stays itself
        for name in glob.iglob(here, recursive=True) if is_glob else (pattern,):
            path = os.path.abspath(name)
            try:
                found = os.stat(path)
            except FileNotFoundError:
                if not is_glob:
                    missing.append(path)
                continue
            if not stat.S_ISREG(found.st_mode):
                if not is_glob:
                    raise UnusableFile(_no_file(path, found.st_mode))
                continue
            try:
                path.encode()
            except UnicodeEncodeError:
                raise UnusableFile(f"the name of file {path!r} is not valid UTF-8; rename it") from None
            sizes[path] = found.st_size
    return Listing(sizes, missing)


def _no_file(path: str, mode: int) -> str:
    if stat.S_ISDIR(mode):
        inside = os.path.join(path, "*")
        return f"{path!r} is a directory, expected a file; to read the files in it pass {inside!r}"
    return f"{path!r} is no regular file; a batch must be readable again, so pipes and devices will not do"
