"""Which files there are: paths and globs, looked at again and again."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from stormline.spouts.file.errors import UnusableFile


class Listing(NamedTuple):
    """The files of one look: their sizes by real path, and where the paths without wildcards lead, and do not.

    `led_to` and `missing` are real paths by the path that was given. A missing one, too, is resolved as far as it
    goes: what a file that was read is known by, unless it was the last link that went.
    """

    sizes: dict[str, int]
    led_to: dict[str, str]
    missing: dict[str, str]


def list_files(patterns: Sequence[str]) -> Listing:
    """Look up `patterns`, relative to the current directory; each file is listed once, under its real path.

    So what several names or symbolic links lead to is one file. A glob takes regular files only and leaves out hidden
    names. `**` stands for any number of directories.

    Raises:
        UnusableFile: a path without wildcards is no regular file, or a name is no UTF-8.
    """
    sizes: dict[str, int] = {}
    led_to: dict[str, str] = {}
    missing: dict[str, str] = {}
    real_path = cache(os.path.realpath)
    for pattern in patterns:
        is_glob = glob.has_magic(pattern)
        here = os.path.join(glob.escape(os.getcwd()), pattern)  # an absolute pattern stays itself
        for name in glob.iglob(here, recursive=True) if is_glob else (pattern,):
            named = os.path.abspath(name)
            directory, base = os.path.split(named)
            path = os.path.join(real_path(directory), base)
            try:
                found = os.lstat(path)
                if stat.S_ISLNK(found.st_mode):
                    path = os.path.realpath(path)
                    found = os.stat(path)
            except FileNotFoundError:
                if not is_glob:
                    missing[name] = path
                continue
            if not stat.S_ISREG(found.st_mode):
                if not is_glob:
                    raise UnusableFile(_no_file(named, found.st_mode))
                continue
            try:
                path.encode()
            except UnicodeEncodeError:
                raise UnusableFile(f"the name of file {path!r} is not valid UTF-8; rename it") from None
            sizes[path] = found.st_size
            if not is_glob:
                led_to[name] = path
    return Listing(sizes, led_to, missing)


def _no_file(path: str, mode: int) -> str:
    if stat.S_ISDIR(mode):
        inside = os.path.join(path, "*")
        return f"{path!r} is a directory, expected a file; to read the files in it pass {inside!r}"
    return f"{path!r} is no regular file; a batch must be readable again, so pipes and devices will not do"
