"""EngineFailure: what an engine raises where nothing came back."""

from __future__ import annotations


class EngineFailure(Exception):
    """A whole wave, or one turn of a commit, came to nothing. `lasting`: trying again would give the same."""

    def __init__(self, message: str, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
