"""TransactionLabel: the name of one transaction of a two-phase commit sink, which no other one ever has (rule R1)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

NAME_CHARS_MAX = 20
"""Of a topology's or component's name in a label: for people; the checksum behind it tells one from another."""

_TEXT = re.compile(r"(?P<scope>\w+-\w+)-(?P<number>\d+-\d+-\d+-\d+-[0-9a-f]{16})", re.ASCII)


def _short(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9]", "_", name[:NAME_CHARS_MAX])
    return f"{plain}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@lru_cache(maxsize=256)  # asked for by each task of each attempt
def label_scope(topology: str, component: str) -> str:
    """Return what the labels of all transactions of a component begin with, without the dash behind it."""
    return f"{_short(topology)}-{_short(component)}"


@dataclass(frozen=True, slots=True)
class TransactionLabel:
    """The name of one transaction of a two-phase commit sink.

    Two executions of one Spark task never share one, nor do two attempts or two drivers. `text` consists of at most 123
    letters of A-Z a-z 0-9 _ and -; `scope` and `number` are its two halves of at most 59 and 63, as XA's gtrid and
    bqual take them.

    Attributes:
        scope (str): topology and component, shortened, each with a checksum of its whole name.
        txid (int): number of the topology's transaction.
        epoch (int): number of the driver's ownership of the topology.
        attempt (int): number of the attempt, which grows from driver to driver.
        task (int): number of the task that writes.
        execution (int): random number of this execution of the Spark task.
    """

    scope: str
    txid: int
    epoch: int
    attempt: int
    task: int
    execution: int

    @property
    def number(self) -> str:
        """What tells it from the other transactions of its component."""
        return f"{self.txid}-{self.epoch}-{self.attempt}-{self.task}-{self.execution:016x}"

    @property
    def text(self) -> str:
        """The whole: `scope`, a dash, `number`."""
        return f"{self.scope}-{self.number}"

    def __str__(self) -> str:
        return self.text

    @classmethod
    def read(cls, text: str) -> TransactionLabel | None:
        """Return the label that a text is, or None: it is none of ours.

        Args:
            text (str): what a resource lists.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        *numbers, execution = match["number"].split("-")
        txid, epoch, attempt, task = map(int, numbers)
        return cls(match["scope"], txid, epoch, attempt, task, int(execution, 16))
