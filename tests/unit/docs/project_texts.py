"""What people read in this project: its pages, and the comments and docstrings of its modules."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LAW = re.compile(r"\b[Ll]aw (\d+)\b")
COMMENT = re.compile(r"(?:^[ \t]*|  )#.*$", re.MULTILINE)
"""As ruff formats them; a tokenizer takes ten times as long for all the project."""


@cache
def files() -> tuple[str, ...]:
    """Return the files that are, or would be, committed, by their paths below the root; links are left out."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    names = sorted(name for name in listed.stdout.split("\0") if name)
    return tuple(name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink())


def is_file_of_the_project(name: str) -> bool:
    """Return whether `name` is a file of the project, or the end of one's path."""
    return name in _ends_of_paths()


@cache
def _ends_of_paths() -> frozenset[str]:
    paths = [name.split("/") for name in files()]
    return frozenset("/".join(path[first:]) for path in paths for first in range(len(path)))


def comments_and_docstrings(code: str) -> list[str]:
    """Return the comments of a module, and the texts that stand alone: its docstrings."""
    comments = COMMENT.findall(code)
    alone = [node.value for node in _statements(ast.parse(code)) if isinstance(node, ast.Expr)]
    texts = [value.value for value in alone if isinstance(value, ast.Constant)]
    return comments + [text for text in texts if isinstance(text, str)]


def _statements(within: ast.AST) -> Iterator[ast.AST]:
    """Give what stands in a module, class, function or block, at any depth."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in getattr(within, block, ()):
            yield node
            yield from _statements(node)


@cache
def what_people_read(name: str) -> tuple[str, ...]:
    """Return the texts of a file that are for people: all of a page, comments and docstrings of a module."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return tuple(comments_and_docstrings(text)) if name.endswith(".py") else (text,)


@cache
def laws() -> dict[int, str]:
    """Return the names of the laws by number, as docs/laws.md has them."""
    page = (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
    return {int(number): name for number, name in re.findall(r"^## Law (\d+): (.+)$", page, re.MULTILINE)}
