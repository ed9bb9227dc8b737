"""What the emulator answers where it does not do what was asked."""

from __future__ import annotations

FAILED = "FAILED"
"""The front end's word for all of its errors [fe]."""
LABEL_ALREADY_EXISTS = "LABEL_ALREADY_EXISTS"
TXN_NOT_EXISTS = "TXN_NOT_EXISTS"
TXN_IN_PROCESSING = "TXN_IN_PROCESSING"
INVALID_ARGUMENT = "INVALID_ARGUMENT"
INTERNAL_ERROR = "INTERNAL_ERROR"
ABORTED = "ABORTED"


class Refused(Exception):
    """A request that is answered with an error: HTTP's code stays 200, `Status` says what is wrong [txn].

    Args:
        status: what the answer says as `Status`.
        message: what it says as `Message`.
        more: what it says besides.
    """

    def __init__(self, status: str, message: str, **more: object) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.more = more


class Denied(Exception):
    """A request without the right user and password, which HTTP itself answers with 401."""
