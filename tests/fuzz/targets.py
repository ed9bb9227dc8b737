"""What takes in bytes from outside: each target makes one bad input from a generator, and gives it to the real code."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.fuzz.engine_data import Blocks, Zookeeper
from tests.fuzz.user_input import Files, Settings


class Target(NamedTuple):
    """`run` makes an input and gives it to the code; of a hundred inputs `share` are its."""

    name: str
    share: int
    run: Callable[[Random], None]


def targets(directory: Path) -> list[Target]:
    """Make all targets; those that need files write them into `directory`, which is the current one."""
    logging.getLogger("stormline").setLevel(logging.CRITICAL)
    os.environ.pop("X", None)
    znodes, travelling, files, settings = Zookeeper(), Blocks(), Files(directory), Settings(directory)
    return [
        Target("znode", 18, znodes.as_bytes),
        Target("znode with a sound checksum", 14, znodes.with_checksum),
        Target("znode of other values", 10, znodes.as_values),
        Target("stored batches", 6, znodes.as_state),
        Target("block", 10, travelling.as_bytes),
        Target("block of other values", 4, travelling.as_values),
        Target("rows", 10, travelling.as_rows),
        Target("record batch", 6, travelling.as_arrow),
        Target("stored pieces of files", 4, files.as_metadata),
        Target("csv file", 3, files.as_csv),
        Target("jsonl file", 2, files.as_jsonl),
        Target("text file", 2, files.as_text),
        Target("parquet file", 2, files.as_parquet),
        Target("configuration", 3, settings.as_values),
        Target("--conf", 3, settings.as_pairs),
        Target("file of a secret", 2, settings.as_secrets),
        Target("command line", 1, settings.as_command_line),
    ]
