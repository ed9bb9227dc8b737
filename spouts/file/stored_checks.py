"""Checks of what is stored of a batch: it tells the spout which files to open, and how much of them to read."""

from __future__ import annotations

from typing import Any


def is_list(value: Any, length: int) -> bool:
    """Return whether it is a list of that many."""
    return type(value) is list and len(value) == length


def are(kind: type, values: list[Any]) -> bool:
    """Return whether all are of exactly that class."""
    return all(type(value) is kind for value in values)


def in_range(numbers: list[int]) -> bool:
    """Return whether all can be places in a file."""
    return min(numbers) >= 0 and max(numbers) < 1 << 63


def are_texts(values: Any) -> bool:
    """Return whether it is a list of texts."""
    return type(values) is list and are(str, values) and all(map(_is_utf8, values))


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:
        return False


def is_file(path: Any, size: Any) -> bool:
    """Return whether it can be the path and the size of a file."""
    if type(path) is not str or path[:1] != "/" or "\0" in path or not _is_utf8(path):
        return False
    return type(size) is int and 0 <= size < 1 << 48


def is_piece(files: int, file: Any, start: Any, end: Any, line: Any, rows: Any, before: Any, after: Any) -> bool:
    """Return whether it can be a piece of one of that many files."""
    numbers = [file, start, end, line, rows, before, after]
    return are(int, numbers) and in_range(numbers) and file < files and start <= end and end - start < 1 << 48
