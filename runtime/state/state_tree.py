"""StateTree: what a driver knows of its own durable state. As the only writer it knows all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stormline.runtime.errors import InvalidPath, StateCorrupt
from stormline.runtime.state.state_store import Delete, Op, Put, check_path, check_sizes, parents
from stormline.runtime.state.stored_value import seal, unseal
from stormline.topology.identifiers import is_part
from stormline.topology.serialization import Registry

VERSION_MAX = (1 << 31) - 1
"""The version of a znode is how often it was written, which ZooKeeper counts in 32 bits."""
FOLDER = b"STLN/"
"""Data of a node that only has others below it: a value that somebody emptied must not look like one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One node to create (no `version`), to replace or (no `data`) to delete; one that is used up takes two changes."""

    path: str
    data: bytes | None
    version: int | None


class StateTree:
    """Values and folders with their versions.

    Args:
        node: the full path of the root, for messages.
        acl_bytes: what is sent with each node that is created, of an access control list.
    """

    def __init__(self, registry: Registry, node: str, acl_bytes: int = 0) -> None:
        self._registry = registry
        self._node = node
        self._acl_bytes = acl_bytes
        self._values: dict[str, tuple[bytes, int]] = {}
        self._folders: dict[str, int] = {}
        self._names: dict[str, set[str]] = {}

    def load(self, path: str, data: bytes, version: int) -> None:
        """Take in one stored node.

        Raises:
            StateCorrupt: Stormline did not write it, or not like this.
            NewerState: a newer Stormline wrote it.
        """
        full = f"{self._node}/{path}"
        if not all(map(is_part, path.split("/"))):
            raise StateCorrupt(f"{full!a} is no name that Stormline gives to a znode; nothing was changed. Remove it")
        if data == FOLDER:
            self._folders[path] = version
            return
        unseal(data, self._registry, full)
        value_above = next((above for above in parents(path) if above in self._values), None)
        if value_above is not None:
            raise StateCorrupt(f"{self._node}/{value_above} holds a value, and {full} is below it")
        self._add(path, data, version)

    def get(self, path: str) -> Any:
        """Return a fresh copy of the value at `path`, or raise `KeyError`."""
        if path not in self._values:
            raise KeyError(f"no value at {self._node}/{path}")
        return unseal(self._values[path][0], self._registry, f"{self._node}/{path}")

    def children(self, path: str) -> list[str]:
        """Return the sorted names directly below `path`."""
        return sorted(self._names.get(path, ()))

    def plan(self, ops: Sequence[Op]) -> list[Change]:
        """Return what `ops` change, in an order in which each folder comes before what it holds, and goes after it.

        A folder comes with the first value below it, and goes with the last one.

        Raises:
            KeyError: a `Delete` of what does not exist.
            InvalidPath: a path cannot be used, or comes twice.
            StateTooLarge: a value, or all of them together.
            UnregisteredClass: a value of a class that was not registered.
        """
        changes: list[Change] = []
        seen: set[str] = set()
        folders: set[str] = set()
        for op in ops:
            path = check_path(op.path)
            if path in seen:
                raise InvalidPath(f"{self._node}/{path} comes twice in one write; keep the op that is meant")
            seen.add(path)
            stored = self._values.get(path)
            if isinstance(op, Delete):
                if stored is None:
                    raise KeyError(f"no value to delete at {self._node}/{path}")
                changes.append(Change(path, None, stored[1]))
                continue
            for above in parents(path):
                if above not in self._folders and above not in folders:
                    folders.add(above)
                    changes.append(Change(above, FOLDER, None))
            version = stored[1] if stored else None
            if version is not None and used_up(version):
                changes.append(Change(path, None, version))
                version = None
            changes.append(Change(path, seal(op.value, self._registry), version))
        puts = {op.path for op in ops if isinstance(op, Put)}
        self._check_kinds(puts, folders)
        deleted = [op.path for op in ops if isinstance(op, Delete)]
        if deleted:
            kept = {above for path in puts for above in parents(path)}
            emptied = self._emptied(deleted, kept)
            changes += [Change(folder, None, self._folders[folder]) for folder in emptied]
        created = sum(change.version is None for change in changes)
        sizes = [(f"{self._node}/{change.path}", len(change.data or b"")) for change in changes]
        check_sizes(sizes, created * self._acl_bytes)
        return changes

    def apply(self, changes: Iterable[Change]) -> None:
        """Take in changes that have become durable."""
        for change in changes:
            if change.data is None:
                self._remove(change.path)
            elif change.data == FOLDER:
                self._folders[change.path] = 0
            else:
                self._add(change.path, change.data, 0 if change.version is None else next_version(change.version))

    def _check_kinds(self, puts: set[str], folders: set[str]) -> None:
        both = (puts & (self._folders.keys() | folders)) | (folders & self._values.keys())
        if both:
            raise InvalidPath(
                f"{self._node}/{min(both)} would hold a value and have others below it; give the value a "
                "name of its own"
            )

    def _emptied(self, deleted: Iterable[str], kept: set[str]) -> list[str]:
        """Return the folders that hold nothing once these values are gone, each after those in it."""
        left: dict[str, int] = {}
        emptied: list[str] = []
        for path in deleted:
            for folder in reversed(parents(path)):
                left[folder] = left.get(folder, len(self._names[folder])) - 1
                if left[folder] or folder in kept:
                    break
                emptied.append(folder)
        return emptied

    def _add(self, path: str, data: bytes, version: int) -> None:
        self._values[path] = (data, version)
        for child in [*parents(path), path]:
            folder, _, name = child.rpartition("/")
            self._names.setdefault(folder, set()).add(name)

    def _remove(self, path: str) -> None:
        if self._folders.pop(path, None) is not None:
            return
        del self._values[path]
        for child in [path, *reversed(parents(path))]:
            folder, _, name = child.rpartition("/")
            self._names[folder].discard(name)
            if self._names[folder]:
                return
            del self._names[folder]


def used_up(version: int) -> bool:
    """Return whether a znode of this version is to be deleted and made anew, in one transaction, where it is replaced.

    After that many writes (25 days of 1,000 a second) the server's count turns negative, which is harmless until -1:
    a write that expects -1 is compared with nothing, and some servers leave -1 out (ZOOKEEPER-4743; 3.9 does not), so
    that nobody knows what comes after -2. A znode that is made anew has version 0 everywhere. That 2³¹ writes later a
    version comes again fools no fence: who saw it first has had no session for as long.
    """
    return not 0 <= version < VERSION_MAX


def next_version(version: int) -> int:
    """Return the version of a znode after it was replaced, by a write or by a new one."""
    return 0 if used_up(version) else version + 1
