"""A cluster: one front end, back ends, tables, users, a clock that can be set; servers.py gives it ports."""

from __future__ import annotations

import base64
import binascii
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.starrocks.back_end import BackEnd
from tests.starrocks.faults import Faults
from tests.starrocks.front_end import FrontEnd
from tests.starrocks.refusals import Denied
from tests.starrocks.tables import Column, Row, Table
from tests.starrocks.transactions import Limits, Transactions


class Cluster:
    """What the servers answer from. Each call takes `lock`, so that one is made at a time.

    Args:
        users: passwords by user; the first one may do everything.
        back_ends: how many.
        databases: those that are there from the beginning.
    """

    def __init__(
        self, users: Mapping[str, str] | None = None, back_ends: int = 1, databases: Sequence[str] = ("shop",)
    ) -> None:
        self.users = dict(users or {"root": ""})
        self.limits = Limits()
        self.faults = Faults()
        self.lock = threading.RLock()
        self.databases: dict[str, dict[str, Table]] = {name: {} for name in databases}
        self.transactions = Transactions(self.databases, self.limits)
        self.back_ends = [BackEnd(self.transactions, number) for number in range(back_ends)]
        self.front_end = FrontEnd(self.transactions, self.back_ends)
        self.skew = 0.0
        self.body_bytes_at_front_end = 0
        """Of loads: what clients sent to the front end, which has no use for it."""

    # ------------------------------------------------------------------------------------------ time

    def now(self) -> float:
        """Return the time in seconds, after all that happens by time has happened."""
        now = time.time() + self.skew
        self.transactions.publish(now)
        self.transactions.pass_time(now)
        for back_end in self.back_ends:
            back_end.pass_time(now)
        return now

    def advance(self, secs: float) -> None:
        """Set the clock forward."""
        with self.lock:
            self.skew += secs
            self.now()

    # ------------------------------------------------------------------------------------------ what is in it

    def create_table(self, database: str, name: str, columns: str, key: Sequence[str] = ()) -> None:
        """Create a table: `create_table("shop", "orders", "id bigint not null, item varchar(20)")`."""
        with self.lock:
            self.databases[database][name] = Table([Column.of(text) for text in columns.split(",")], key)

    def rows(self, database: str, table: str) -> list[Row]:
        """Return what a query sees."""
        with self.lock:
            self.now()
            return self.databases[database][table].rows()

    def states(self, database: str) -> dict[str, str]:
        """Return the state of each label that is not forgotten."""
        with self.lock:
            self.now()
            labels = self.transactions.labels(database)
            return {label: self.transactions.state_of(database, label)[0] for label in labels}

    # ------------------------------------------------------------------------------------------ what befalls it

    def restart_front_end(self) -> None:
        """Lose what the front end has only in memory."""
        with self.lock:
            self.front_end.restart()

    def restart_back_end(self, number: int = 0) -> None:
        """Lose what a back end has: all of it is in memory."""
        with self.lock:
            self.back_ends[number].restart()

    def publish(self, on: bool) -> None:
        """Let what is committed become visible, or not yet."""
        with self.lock:
            self.transactions.publishing = on
            self.now()

    # ------------------------------------------------------------------------------------------ who may

    def user_of(self, headers: Mapping[str, Any]) -> str:
        """Return the user of a request.

        Raises:
            Denied: there is none, or the password is another one.
        """
        scheme, _, value = str(headers.get("authorization", "")).partition(" ")
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user, password = "", ""
        if scheme.lower() != "basic" or self.users.get(user) != password:
            raise Denied(f"Access denied for {user or 'a user without name'}")
        return user

    def is_admin(self, user: str) -> bool:
        """Return whether a user may see what SHOW PROC shows."""
        return user == next(iter(self.users))
