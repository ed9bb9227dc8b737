"""Lookout: which files are there that are not read yet."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from stormline.spouts.file.errors import FileMissing, FileVanished
from stormline.spouts.file.listing import list_files
from stormline.spouts.file.metadata import FilesRead

log = logging.getLogger("stormline")

# A look at the files that took longer than this is not repeated before ten times as long has passed.
SLOW_LOOK_SECS = 0.05


class Lookout:
    """Looks for files again and again; says once where there are none."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._led_to: dict[str, str] = {}
        self._not_before = 0.0
        self._warned = False

    def may_look_at_once(self) -> None:
        """Forget that the last look was slow."""
        self._not_before = 0.0

    def look(self, read: FilesRead, begun: Mapping[str, int]) -> dict[str, int] | None:
        """Return the sizes of the files that are neither `read` nor `begun` (path → size), in the order of their paths.

        An empty file is left for the next look: it may be filled yet. None: the last look was a slow one.

        Raises:
            FileMissing: a path without wildcards, not read yet, leads nowhere.
            FileVanished: one that is begun does.
            FileChanged: a file that was read has another size now.
        """
        now = time.monotonic()
        if now < self._not_before:
            return None
        listing = list_files(self._patterns)
        for name, path in listing.missing.items():
            if path in begun:
                raise FileVanished.at(path, begun[path])
            # A link may go as what it led to: its own path is none that a file was read by.
            if path not in read and self._led_to.get(name, path) not in read:
                raise FileMissing.at(path)
        self._led_to.update(listing.led_to)
        found = {
            path: size
            for path, size in sorted(listing.sizes.items())
            if path not in begun and not read.check(path, size) and size
        }
        if not listing.sizes and not self._warned:
            self._warned = True
            log.warning("no file matches %s yet", list(self._patterns))
        took = time.monotonic() - now
        self._not_before = now + 10 * took if took > SLOW_LOOK_SECS else 0.0
        return found
