"""Texts that come from user code, on their way to a log or a terminal: bounded, and nothing that a terminal obeys."""

from __future__ import annotations

import re

TEXT_MAX = 20_000
"""Characters of one text that are shown; of a longer one its head and its tail."""

# C0 but tab and newline, DEL, C1, what turns the direction of text, and halves of characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return `text` with each character that could make a terminal do something shown as its escape: `\\x1b`."""
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], text)


def bounded(text: str, chars_max: int = TEXT_MAX) -> str:
    """Return `text`; of a longer one than `chars_max` its head and tail, and between them how much was left out."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"


def told(text: str) -> str:
    """Return a text of user code as it is shown: bounded and printable."""
    return printable(bounded(text))
