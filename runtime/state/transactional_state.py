"""TransactionalState: durable state of user code, at paths of its own beside the topology's, under the same fence."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from stormline.runtime.errors import InvalidPath, OtherEffects, StateElsewhere
from stormline.runtime.state.state_store import Delete, Op, Put, StateStore, check_path
from stormline.runtime.world.effects import only_effects_here
from stormline.runtime.world.own_thread import CallAbandoned
from stormline.runtime.world.wanted import wanted_here
from stormline.topology.config import TRANSACTIONAL_ID
from stormline.topology.errors import UnregisteredClass, shown
from stormline.topology.storm_names import storm_names

STATE_KEY = "stormline.state"
"""In the `conf` of what lives in the driver: by it user code, which has nothing but its `conf`, finds its topology."""

_DIRECTORY = "__dir__"
"""Value below a directory that was made by `mkdir`: it stays when all others below it are gone."""

Names = list[str]

_stores: WeakValueDictionary[str, StateStore] = WeakValueDictionary()
_numbers = itertools.count(1)


def offer_state(store: StateStore) -> dict[str, Any]:
    """Return what lets user code of this process find `store`, as part of its `conf`."""
    token = f"{os.getpid()}/{next(_numbers)}"
    _stores[token] = store
    return {STATE_KEY: token}


@storm_names()
class TransactionalState:
    """Values of user code at paths such as "orders/3", in the topology's own ZooKeeper.

    They belong to the topology as the engine's own state does: they outlive the driver, each write checks in the same
    ZooKeeper transaction that this driver still owns the topology, and is durable when the call returns. They are
    msgpack with the topology's registered classes. A path holds a value or has others below it, never both. All
    components of a topology see the same paths. May be used by several threads.

    It is kept by the driver process: by coordinators, by emitters unless they are on the executors, and in the commit
    phase. Elsewhere it can be made, and each use raises `StateElsewhere`.

    Args:
        store (StateStore | None): keeps the values; None: this process cannot reach it.
        subroot (str): directory below which all paths are.
    """

    def __init__(self, store: StateStore | None, subroot: str) -> None:
        self._store = store
        self._subroot = subroot

    @classmethod
    def new_user_state(
        cls, conf: Mapping[str, Any], topology_id: str, component_config: Mapping[str, Any] | None = None
    ) -> TransactionalState:
        """Return the state for emitters, committers and all else of the running topology that `conf` belongs to.

        Args:
            conf (Mapping[str, Any]): what `get_coordinator`, `get_emitter` or `prepare` was given, or a copy of it.
            topology_id (str): the topology's own id, which is `conf["topology.transactional.id"]`.
            component_config (Mapping[str, Any] | None): ignored: classes that any component registers may be stored.

        Raises:
            StateElsewhere: no topology that runs in this process has this `conf`, or this id.
        """
        return cls(_store_of(conf, topology_id), "user")

    @classmethod
    def new_coordinator_state(
        cls, conf: Mapping[str, Any], topology_id: str, component_config: Mapping[str, Any] | None = None
    ) -> TransactionalState:
        """Return the state for coordinators, whose paths are apart from those of `new_user_state`.

        Args:
            conf (Mapping[str, Any]): what `get_coordinator` was given, or a copy of it.
            topology_id (str): the topology's own id, which is `conf["topology.transactional.id"]`.
            component_config (Mapping[str, Any] | None): ignored: classes that any component registers may be stored.

        Raises:
            StateElsewhere: no topology that runs in this process has this `conf`, or this id.
        """
        return cls(_store_of(conf, topology_id), "coordinator")

    def set_data(self, path: str, obj: Any) -> None:
        """Create or replace the value at `path`.

        Args:
            path (str): names with "/" between them, such as "orders/3".
            obj (Any): plain data, or an object of a registered class.

        Raises:
            Fenced, SessionLost: this driver owns the topology no longer; nothing was written, or the next one knows.
            StateTooLarge: it has more than a megabyte; nothing was written.
            UnregisteredClass: it holds an object of a class that was not registered; nothing was written.
            InvalidPath: nothing can be stored there; nothing was written.
            CallAbandoned: the caller hung, and another attempt has taken its place; nothing was written.
            StateElsewhere: this process does not keep the state.
        """
        try:
            self._write([Put(self._full(path), obj)])
        except UnregisteredClass as error:
            raise UnregisteredClass(f"the value for path {path!r} of the user's state: {error}") from None

    def get_data(self, path: str) -> Any:
        """Return a fresh copy of the value at a path; None where there is none.

        Args:
            path (str): names with "/" between them, such as "orders/3".

        Raises:
            InvalidPath: nothing can be stored there.
            StateElsewhere: this process does not keep the state.
        """
        try:
            return self._needed().get(self._full(path))
        except KeyError:
            return None

    def list(self, path: str = "") -> Names:
        """Return the sorted names directly below a path; an empty list where there are none.

        Args:
            path (str): names with "/" between them; "" for the topmost.

        Raises:
            InvalidPath: nothing can be stored there.
            StateElsewhere: this process does not keep the state.
        """
        full = self._full(path) if path else self._subroot
        return [name for name in self._needed().children(full) if name != _DIRECTORY]

    def mkdir(self, path: str) -> None:
        """Let `list` show a path from now on, whether there is something below it or not.

        Args:
            path (str): names with "/" between them, such as "orders".

        Raises:
            InvalidPath: nothing can be stored there; nothing was written.
            Fenced, SessionLost, StateElsewhere, CallAbandoned: as for `set_data`.
        """
        full = self._full(path)
        if _DIRECTORY not in self._needed().children(full):
            self._write([Put(f"{full}/{_DIRECTORY}", None)])

    def delete(self, path: str) -> None:
        """Remove the value, or the empty directory, at a path, if there is one.

        Args:
            path (str): names with "/" between them, such as "orders/3".

        Raises:
            InvalidPath: there are others below it.
            Fenced, SessionLost, StateElsewhere, CallAbandoned: as for `set_data`.
        """
        full, below = self._full(path), self.list(path)
        if below:
            raise InvalidPath(
                f"path {path!r} of the user's state cannot be deleted, there are others below it: "
                f"{shown(below, 200)}; delete these first"
            )
        self._delete([full, f"{full}/{_DIRECTORY}"])

    def delete_all(self, paths: Sequence[str]) -> None:
        """Remove several values, those that exist, in one write.

        Args:
            paths (Sequence[str]): names with "/" between them, such as "orders/3".

        Raises:
            InvalidPath: nothing can be stored at one of them; nothing was removed.
            Fenced, SessionLost, StateElsewhere, CallAbandoned: as for `set_data`.
        """
        self._delete([self._full(path) for path in paths])

    def close(self) -> None:
        """Do nothing: the connection is the topology's, which closes it at its end."""

    def _full(self, path: str) -> str:
        if not isinstance(path, str):
            raise InvalidPath(f"path {path!r} of the user's state is {type(path).__name__}, expected text")
        if _DIRECTORY in path.split("/"):
            raise InvalidPath(f"path {path!r} of the user's state: {_DIRECTORY} is Stormline's own; take another name")
        return check_path(f"{self._subroot}/{path}")

    def _delete(self, paths: Sequence[str]) -> None:
        store = self._needed()
        while ops := [Delete(path) for path in paths if _has_value(store, path)]:
            with contextlib.suppress(KeyError):  # another thread has removed one of them meanwhile
                self._write(ops)
                return

    def _write(self, ops: Sequence[Op]) -> None:
        if not wanted_here():
            raise CallAbandoned(
                "this call took too long, and another attempt has its place: it writes nothing any more"
            )
        only = only_effects_here()
        if only is not None:
            raise OtherEffects.of(*only, type(self).__name__)
        self._needed().write(ops)

    def _needed(self) -> StateStore:
        if self._store is None:
            raise StateElsewhere(
                "TransactionalState is kept by the driver process, and this code runs on an executor. Use it in a "
                "coordinator, in the emitter of a spout without emits_on_executors, or in a committer or a bolt "
                "downstream of one: in finish_batch where that declares `gathers`, not with "
                "topology.commit.placement=executors. Send other bolts what they need of it in tuples"
            )
        return self._store


def _has_value(store: StateStore, path: str) -> bool:
    try:
        store.get(path)
    except KeyError:
        return False
    return True


def _store_of(conf: Mapping[str, Any], topology_id: str) -> StateStore | None:
    """Return the store of the running topology that `conf` belongs to; None on an executor."""
    mine = conf.get(TRANSACTIONAL_ID) if isinstance(conf, Mapping) else None
    if mine is None:
        raise StateElsewhere(
            "TransactionalState needs the conf of a running topology, which get_coordinator, get_emitter and prepare "
            f"are given; this one, of type {type(conf).__name__}, has no {TRANSACTIONAL_ID}"
        )
    if topology_id != mine:
        raise StateElsewhere(
            f"TransactionalState of {shown(topology_id)} asked for in topology {mine!r}, which alone this driver owns; "
            f"give it conf[{TRANSACTIONAL_ID!r}], and take paths of their own for what is to be apart"
        )
    token = conf.get(STATE_KEY)
    if token is None:
        return None
    store = _stores.get(token)
    if store is None or token.partition("/")[0] != str(os.getpid()):
        raise StateElsewhere(
            f"TransactionalState of topology {mine!r} asked for in a process that does not run it (any more); ask for "
            "it where get_coordinator, get_emitter or prepare was called, while the topology runs"
        )
    return store
