"""What StarRocks' answers mean for the engine: replay, or stop; see docs/starrocks.md for the table."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from stormline.state.errors import StoreUnavailable
from stormline.state.starrocks.errors import LabelTaken, StarRocksRefused
from stormline.state.starrocks.exchange import Answer

_REFUSED = re.compile(
    r"(?i)access denied|no valid basic authorization|unknown (database|table)|(database|table)\S* does not exist|"
    r"can't find db|privilege|incorrect label"
)
_ROWS = re.compile(
    r"(?i)filtered rows|data quality|parse json|exceed the max size|exceed limit|column separator|unknown data format|"
    r"compress|not equal last"
)
_GONE = re.compile(r"(?i)txn_not_exists|trans\w+ (with label \S+ )?not exist|no transaction found|can't find the trans")
_TOO_MANY = re.compile(r"(?i)running txns .*larger than limit")
ALREADY = re.compile(r"(?i)\balready\b")


@dataclass(frozen=True)
class Reply:
    """An answer to an operation of the transaction interface; HTTP's code is 200 also for errors."""

    status: str
    message: str
    fields: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.status.upper() == "OK"


def read_reply(answer: Answer, what: str) -> Any:
    """Return the JSON of an answer.

    Raises:
        StarRocksRefused: The user is not let in, or this is no StarRocks.
        StoreUnavailable: It is none; something between may have answered.
    """
    if answer.code in (401, 403):
        raise StarRocksRefused(
            f"{what}: refused, HTTP {answer.code}: {_short(answer.body)}; check user and password, and that the user "
            "may INSERT into the tables"
        )
    if answer.code == 404:
        raise StarRocksRefused(
            f"{what}: HTTP 404: {_short(answer.body)}; is this the HTTP port (8030) of a StarRocks front end, 2.4 or "
            "newer?"
        )
    try:
        if answer.code != 200:
            raise ValueError(answer.code)
        return json.loads(answer.body)
    except ValueError:
        raise StoreUnavailable(
            f"{what}: HTTP {answer.code}: {_short(answer.body)}, expected JSON; the batch is replayed"
        ) from None


def transaction_reply(answer: Answer, what: str) -> Reply:
    """Return an answer of the transaction interface; raises as `read_reply`."""
    fields = read_reply(answer, what)
    if not isinstance(fields, dict):
        raise StoreUnavailable(f"{what}: {_short(answer.body)}, expected a JSON object; the batch is replayed")
    status = fields.get("Status", fields.get("status", ""))
    message = fields.get("Message", fields.get("msg", ""))
    return Reply(str(status), str(message), fields)


def meaning_of(reply: Reply, what: str) -> Exception:
    """Return what an answer that is not OK is for the engine."""
    told = f"{what}: {reply.status}: {reply.message}"
    if reply.status == "LABEL_ALREADY_EXISTS":
        existing = reply.fields.get("ExistingJobStatus", "")
        return LabelTaken(f"{told} ({existing or 'of an unknown status'}); each label can be used once")
    if reply.status == "TXN_NOT_EXISTS" or _GONE.search(reply.message):
        return StoreUnavailable(
            f"{told}; the back end that held it was restarted, or it took longer than its time-outs; the batch is "
            "replayed"
        )
    if _TOO_MANY.search(reply.message):
        return StoreUnavailable(
            f"{told}; the batch is replayed; keep topology.max.spout.pending, times the bolt's tasks, times its "
            "tables, below max_running_txn_num_per_db of the front end"
        )
    if _ROWS.search(reply.message):
        url = reply.fields.get("ErrorURL", "")
        return StarRocksRefused(
            f"{told}{url and f'; rows: {url}'}; a replay would send the same rows: let the table take them, or let "
            "max_filter_ratio leave some out"
        )
    if _REFUSED.search(reply.message) or reply.status == "INVALID_ARGUMENT":
        return StarRocksRefused(
            f"{told}; a replay would be answered in the same way: check database, tables, and that the user may INSERT"
        )
    return StoreUnavailable(f"{told}; the batch is replayed")


def _short(body: bytes) -> str:
    return repr(body.decode("utf-8", "replace")[:200])
