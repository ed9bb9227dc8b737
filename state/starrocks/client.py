"""StreamLoadClient: the calls of StarRocks' Stream Load transactions, and what is certain after each."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from stormline.state.errors import StoreUnavailable
from stormline.state.starrocks.errors import OutcomeUnknown, StarRocksRefused
from stormline.state.starrocks.exchange import Answer, NoAnswer, exchange
from stormline.state.starrocks.meanings import ALREADY, Reply, meaning_of, read_reply, transaction_reply
from stormline.topology.two_phase_commit import CommitOutcome

log = logging.getLogger("stormline")

LISTED_MAX = 2000
"""How many running transactions a front end lists at most."""


class LoadState(StrEnum):
    """What a front end says about a label."""

    UNKNOWN = "UNKNOWN"
    PREPARE = "PREPARE"
    PREPARED = "PREPARED"
    COMMITTED = "COMMITTED"
    VISIBLE = "VISIBLE"
    ABORTED = "ABORTED"


@dataclass(frozen=True)
class Counted:
    """What was prepared.

    Attributes:
        loaded (int): rows that the table takes.
        filtered (int): rows that do not fit, and were left out.
    """

    loaded: int
    filtered: int


class StreamLoadClient:
    """Speaks with the front ends of one cluster about transactions of one database; made by `StarRocks.open_client`.

    It holds no connection, and no state but which front end answered last. Each call raises `StoreUnavailable` where
    nobody answers, or the answer is one that will be another one later, and `StarRocksRefused` where it will not.
    After an unclear answer `state` alone says what is true.
    """

    def __init__(
        self,
        name: str,
        front_ends: Sequence[tuple[str, int]],
        database: str,
        user: str,
        password: str,
        *,
        timeout_secs: float,
        load_timeout_secs: int,
        idle_timeout_secs: int,
        prepared_timeout_secs: int,
    ) -> None:
        self._name = name
        self._front_ends = list(front_ends)
        self._answering = 0
        self._database = database
        self._timeout_secs = timeout_secs
        self._load_timeout_secs = load_timeout_secs
        self._idle_timeout_secs = idle_timeout_secs
        self._prepared_timeout_secs = prepared_timeout_secs
        self._authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    # ------------------------------------------------------------------------------------ the five operations

    def begin(self, label: str, table: str) -> None:
        """Begin a transaction into one table.

        Args:
            label (str): its name, 1 to 128 of A-Z a-z 0-9 _ and -.
            table (str): where its loads go.

        Raises:
            LabelTaken: a transaction of this label runs, or is committed. An aborted one's label can be used again.
        """
        more = {"table": table, "timeout": str(self._load_timeout_secs)}
        if self._idle_timeout_secs:
            more["idle_transaction_timeout"] = str(self._idle_timeout_secs)
        self._done("begin", label, more)

    def load(self, label: str, table: str, data: bytes, parameters: Mapping[str, str]) -> None:
        """Write rows; may be called many times, one call after another.

        Args:
            label (str): the transaction's.
            table (str): that it was begun with.
            data (bytes): rows, each with its delimiter at the end.
            parameters (Mapping[str, str]): how to read them: equal in all loads of a transaction.
        """
        self._done("load", label, {"table": table, **parameters}, data)

    def prepare(self, label: str) -> Counted:
        """Make what was loaded survive all crashes; return how many rows. Something must have been loaded.

        Args:
            label (str): the transaction's.
        """
        reply = self._done("prepare", label, {"prepared_timeout": str(self._prepared_timeout_secs)})
        loaded, filtered = (reply.fields.get(name) for name in ("NumberLoadedRows", "NumberFilteredRows"))
        if not isinstance(loaded, int) or not isinstance(filtered, int):
            raise StoreUnavailable(
                f"{self._what('prepare', label)} answers without numbers of rows: {reply.fields!r:.200}; the batch is "
                "replayed"
            )
        return Counted(loaded, filtered)

    def commit(self, label: str) -> CommitOutcome:
        """Make what is prepared visible, now or soon; may be called again.

        Args:
            label (str): the transaction's.

        Raises:
            OutcomeUnknown: the front end knows no such label: it may have been committed, and forgotten.
        """
        try:
            reply = self._ask("commit", label, {})
        except StoreUnavailable as error:
            told = str(error)
        else:
            if reply.ok:
                return CommitOutcome.ALREADY if ALREADY.search(reply.message) else CommitOutcome.DONE
            told = f"{reply.status}: {reply.message}"
        state, reason = self.state(label)
        if state in (LoadState.COMMITTED, LoadState.VISIBLE):
            return CommitOutcome.DONE
        if state is LoadState.ABORTED:
            log.error("%s: %s; it was aborted: %s", self._what("commit", label), told, reason)
            return CommitOutcome.LOST
        if state is LoadState.PREPARED:
            log.warning("%s: %s; it is tried again", self._what("commit", label), told)
            return CommitOutcome.RETRY
        raise OutcomeUnknown(
            f"{self._what('commit', label)}: {told}; its state is {state}, expected PREPARED: either it was committed, "
            "and the label forgotten since (label_keep_max_num, streaming_label_keep_max_second), or it never was; "
            "look for its rows in the table before the topology goes on"
        )

    def rollback(self, label: str, table: str = "_") -> None:
        """Drop what was begun or prepared; do nothing where it is gone.

        Args:
            label (str): the transaction's.
            table (str): that it was begun with; StarRocks itself does not look at it.

        Raises:
            StarRocksRefused: it is committed.
        """
        try:
            reply = self._ask("rollback", label, {})
        except StoreUnavailable as error:
            told = str(error)
        else:
            if reply.ok:
                return
            told = f"{reply.status}: {reply.message}"
        state, _ = self.state(label)
        if state is LoadState.PREPARE:  # its back end has forgotten it
            told = self._cancelled(label, table, told)
            state, _ = self.state(label)
        if state in (LoadState.ABORTED, LoadState.UNKNOWN):
            return
        if state in (LoadState.COMMITTED, LoadState.VISIBLE):
            raise StarRocksRefused(
                f"{self._what('rollback', label)}: it is {state}: somebody has committed it, as no driver of this "
                "topology can have; its rows are in the table"
            )
        raise StoreUnavailable(f"{self._what('rollback', label)}: {told}; its state is {state}; it is tried again")

    # ------------------------------------------------------------------------------------ what a front end knows

    def state(self, label: str) -> tuple[LoadState, str]:
        """Return a label's state, and why it was aborted, if so.

        Args:
            label (str): a transaction's.
        """
        what = self._what("get_load_state", label)
        reply = transaction_reply(self._get(f"/api/{self._database}/get_load_state?label={quote(label)}", what), what)
        try:
            state = LoadState(str(reply.fields["state"]))
        except (KeyError, ValueError):
            raise meaning_of(reply, what) from None
        return state, str(reply.fields.get("reason") or "")

    def cancel(self, label: str, table: str = "_") -> None:
        """Abort what is not prepared, without its back end.

        Args:
            label (str): the transaction's.
            table (str): that it was begun with; StarRocks itself does not look at it.
        """
        what = self._what("_cancel", label)
        target = f"/api/{self._database}/{quote(table)}/_cancel?label={quote(label)}"
        reply = transaction_reply(self._send("POST", target, {}, b"", what), what)
        if not reply.ok:
            raise meaning_of(reply, what)

    def running(self, prefix: str) -> list[tuple[str, LoadState]] | None:
        """Return labels and states of what is begun or prepared, by SHOW PROC; None: this user may not see that.

        Args:
            prefix (str): how the labels begin.
        """
        databases = self._show_proc("/transactions")
        if databases is None:
            return None
        names = (self._database, f"default_cluster:{self._database}")
        found = next((one.get("DbId") for one in databases if one.get("DbName") in names), self._database)
        listed = self._show_proc(f"/transactions/{found}/running")
        if listed is None:
            return None
        if len(listed) >= LISTED_MAX:
            log.warning("%s lists %d running transactions, and perhaps not all", self._name, len(listed))
        rows = [(str(one.get("Label", "")), str(one.get("TransactionStatus", ""))) for one in listed]
        begun = (LoadState.PREPARE, LoadState.PREPARED)
        return [(label, LoadState(state)) for label, state in rows if label.startswith(prefix) and state in begun]

    def _show_proc(self, path: str) -> list[dict[str, Any]] | None:
        what = f"{self._name}: show_proc {path}"
        try:
            rows = read_reply(self._get(f"/api/show_proc?path={quote(path, safe='')}&forward=true", what), what)
        except StarRocksRefused:
            return None
        return rows if isinstance(rows, list) else None

    # ------------------------------------------------------------------------------------ requests

    def _cancelled(self, label: str, table: str, told: str) -> str:
        try:
            self.cancel(label, table)
        except (StoreUnavailable, StarRocksRefused) as error:
            log.info("%s", error)
        return told

    def _done(self, operation: str, label: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        reply = self._ask(operation, label, headers, body)
        if not reply.ok:
            raise meaning_of(reply, self._what(operation, label))
        return reply

    def _ask(self, operation: str, label: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        what = self._what(operation, label)
        method = "PUT" if operation == "load" else "POST"
        given = {"label": label, "db": self._database, **headers}
        return transaction_reply(self._send(method, f"/api/transaction/{operation}", given, body, what), what)

    def _get(self, target: str, what: str) -> Answer:
        return self._send("GET", target, {}, b"", what)

    def _send(self, method: str, target: str, headers: Mapping[str, str], body: bytes, what: str) -> Answer:
        """Ask the front ends in turn, until one is there; only what cannot have been done is asked of the next one."""
        given = {"Authorization": self._authorization, **headers}
        told = []
        for number in range(len(self._front_ends)):
            answering = (self._answering + number) % len(self._front_ends)
            try:
                answer = exchange(self._front_ends[answering], method, target, given, body, self._timeout_secs)
                self._answering = answering
                return answer
            except NoAnswer as error:
                told.append(str(error))
                if error.sent:
                    self._answering = answering + 1
                    break
        raise StoreUnavailable(f"{what}: no answer: {'; '.join(told)}; it is tried again")

    def _what(self, operation: str, label: str) -> str:
        return f"{self._name}: {operation} of {label!r}"
