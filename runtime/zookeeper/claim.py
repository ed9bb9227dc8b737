"""How a driver claims a topology: it reads everything, changes nothing, then claims all in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    InvalidACLError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)

from stormline.runtime.errors import InvalidPath, NewerState, StateCorrupt, ZooKeeperDenied
from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.state.graph_changes import check_description
from stormline.runtime.state.state_store import CheckState, check_sizes
from stormline.runtime.state.state_tree import FOLDER, StateTree, used_up
from stormline.runtime.state.stored_value import seal, unseal
from stormline.runtime.world.world import World
from stormline.runtime.zookeeper.session import CONNECTION_ERRORS, ZooKeeperSession
from stormline.topology.config import ZOOKEEPER_ROOT
from stormline.topology.errors import shown
from stormline.topology.serialization import PLAIN, Registry

VANISH_MARGIN_MS = 4000
"""A dead session lasts up to a tick longer than its timeout, and the server may have granted a longer one."""
POLL_SECS = 0.1
CHANGED_MEANWHILE = (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)
"""What an op of a transaction is refused with where somebody else has changed its znode."""
OURS = frozenset({"owner", "state", "live", "topology"})
"""Names of the znodes of a topology."""
CREATED_MAX = 4
"""Znodes that a claim creates: owner, state, live and topology."""
EPOCH_MAX = (1 << 31) - 1
"""Attempt ids begin anew a billion further with each epoch, and are 64 bits wide in many a database."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose writes count: the `token` is unique to one open; `writes` grows with each of its writes."""

    epoch: int
    token: str
    writes: int

    def seal(self) -> bytes:
        """Return the bytes to store."""
        return seal({"epoch": self.epoch, "token": self.token, "writes": self.writes}, PLAIN)

    @classmethod
    def unseal(cls, data: bytes, path: str) -> Owner:
        """Return the owner stored at `path`; raise `StateCorrupt` or `NewerState` where there is none."""
        value = unseal(data, PLAIN, path)
        kinds = {"epoch": int, "token": str, "writes": int}
        if not isinstance(value, dict) or {key: type(value[key]) for key in value} != kinds:
            raise StateCorrupt(f"{path} holds {shown(value, 100)}, which is no owner; nothing was changed")
        if not (0 < value["epoch"] <= EPOCH_MAX and 0 <= value["writes"] < 1 << 63):
            raise StateCorrupt(
                f"{path} holds {shown(value, 100)}; epochs go from 1 to {EPOCH_MAX}, and writes are counted from 0; "
                "nothing was changed"
            )
        return cls(**value)


@dataclass(frozen=True, slots=True)
class Claim:
    """A topology that is ours now."""

    owner: Owner
    owner_version: int
    tree: StateTree


@dataclass(frozen=True, slots=True)
class _Stored:
    """A topology as found; `owner` is None where there is none yet."""

    owner: Owner | None
    owner_version: int
    live: DriverIdentity | None
    live_version: int
    description: bytes | None
    description_version: int


def refusal(results: list[Any]) -> tuple[int, Exception] | None:
    """Return which op of a transaction was refused, and why; None where it was applied."""
    consequences = (RolledBackError, RuntimeInconsistency)
    refused = [(i, r) for i, r in enumerate(results) if isinstance(r, Exception)]
    return next((item for item in refused if not isinstance(item[1], consequences)), refused[0] if refused else None)


def claim(
    world: World,
    session: ZooKeeperSession,
    node: str,
    registry: Registry,
    description: Any,
    allow_changed: bool,
    check_state: CheckState,
    session_timeout_ms: int,
    connection_timeout_ms: int,
) -> Claim:
    """Take the topology over, or change nothing; see `ZooKeeperStateStore.open` for what is raised."""
    topology_id = node.rpartition("/")[2]
    _check_not_within_another(session, node)
    token = world.new_id()
    me = DriverIdentity.this_process(world, session_timeout_ms, token)
    world.machine.leave_mark(token)
    sealed = None if description is None else seal(description, PLAIN)
    if sealed is not None:
        check_sizes([(f"{node}/topology", len(sealed))], CREATED_MAX * session.acl_bytes)
    wait_until: float | None = None
    # Each further turn means that something has changed meanwhile: our claim, or another driver's, or its end.
    while True:
        try:
            session.ensure(node)
            stored = _read(session, node)
            if stored.owner is not None and stored.owner.token == token:
                return Claim(stored.owner, stored.owner_version, _read_tree(session, node, registry))
            if stored.live is not None:
                alive = stored.live.alive(world.machine)
                wait_ms = stored.live.session_timeout_ms + VANISH_MARGIN_MS
                wait_until = wait_until or world.monotonic() + wait_ms / 1000
                if alive:
                    raise stored.live.refuse(topology_id, node)
                if alive is None:
                    if world.monotonic() > wait_until:
                        raise stored.live.refuse(topology_id, node, f"; its session did not end in {wait_ms} ms")
                    world.sleep(POLL_SECS)
                    continue
            before = now = None
            if sealed is not None and stored.description is not None:
                before, now = (unseal(data, PLAIN, f"{node}/topology") for data in (stored.description, sealed))
                if not allow_changed:
                    check_description(before, now, topology_id, node)
            if stored.owner is not None:
                tree = _read_tree(session, node, registry)  # what cannot be read is not claimed
                check_state(before, now, tree, topology_id, node)
        except NoNodeError:  # it was removed in this moment
            world.sleep(POLL_SECS)
            continue
        _send(session, node, stored, me, sealed, world.monotonic() + connection_timeout_ms / 1000)


def _check_not_within_another(session: ZooKeeperSession, node: str) -> None:
    """Raise `InvalidPath` where the root is a topology's: one more znode among its own, and it never starts again."""
    root, _, topology_id = node.rpartition("/")
    parts = root[1:].split("/")
    for above in ("/" + "/".join(parts[: i + 1]) for i in range(len(parts) if root else 0)):
        if _is_topology(session, above):
            raise InvalidPath(
                f"root {root!r} lies within topology {above.rpartition('/')[2]!r} ({above}), whose znodes must be its "
                f"alone: that one could never start again beside {topology_id!r}; nothing was changed. Give this one "
                f"another {ZOOKEEPER_ROOT}"
            )


def _is_topology(session: ZooKeeperSession, node: str) -> bool:
    """Return whether a znode is a topology's; not so where somebody keeps us from looking: nothing can be put there."""
    try:
        session.sync(node)
        ((data, _),) = session.get_all([f"{node}/owner"])
        Owner.unseal(data, f"{node}/owner")
    except NewerState:
        return True
    except (NoNodeError, ZooKeeperDenied, StateCorrupt):  # the last: a topology is called "owner"
        return False
    return True


def _read(session: ZooKeeperSession, node: str) -> _Stored:
    """Read whose a topology is; what is read afterwards is its state if the owner's version stays the same."""
    session.sync(node)
    names = session.children(node)
    session.check_acls([node, *(f"{node}/{name}" for name in names)])
    if not names:
        return _Stored(None, -1, None, -1, None, -1)
    if not {"owner", "state"} <= set(names) <= OURS:
        within = [name for name in names if name not in OURS and _is_topology(session, f"{node}/{name}")]
        if within:
            root, _, topology_id = node.rpartition("/")
            raise InvalidPath(
                f"{node} is the root of topology {within[0]!r}, so it cannot be the place of topology {topology_id!r}: "
                f"beside others' znodes it could never start again; nothing was changed. Give topology "
                f"{topology_id!r} another id, or another {ZOOKEEPER_ROOT} than {root!r}"
            )
        raise StateCorrupt(
            f"{node} holds {names}, expected owner and state, and beside them nothing but live and topology; "
            "nothing was changed. If other software uses this node, give the topology another id or another "
            f"{ZOOKEEPER_ROOT}"
        )
    # The owner first: while its version stays, so does whose node 'live' is. That one's own version tells nothing, it
    # is 0 with each driver: read before the owner it could be a dead driver's, and the living one lose its own.
    names.sort(key=lambda name: name != "owner")
    found = dict(zip(names, session.get_all([f"{node}/{name}" for name in names]), strict=True))
    data, stat = found["owner"]
    owner, owner_version = Owner.unseal(data, f"{node}/owner"), stat.version
    if owner_version == -1:
        raise StateCorrupt(
            f"{node}/owner has version -1, which Stormline never leaves it at, and with which ZooKeeper compares "
            "nothing: two drivers could own the topology. Nothing was changed; write its bytes to it once more, as "
            "they are"
        )
    live, live_version = None, -1
    if "live" in found:
        data, stat = found["live"]
        live, live_version = _holder(data, stat, f"{node}/live"), stat.version
    description, description_version = None, -1
    if "topology" in found:
        description, stat = found["topology"]
        description_version = stat.version
        unseal(description, PLAIN, f"{node}/topology")
    return _Stored(owner, owner_version, live, live_version, description, description_version)


def _read_tree(session: ZooKeeperSession, node: str, registry: Registry) -> StateTree:
    root = f"{node}/state"
    tree = StateTree(registry, root, session.acl_bytes)
    ((data, _),) = session.get_all([root])
    session.check_acls([root])
    if data != FOLDER:
        raise StateCorrupt(f"{root} holds {data[:40]!r}, which Stormline did not write; nothing was changed")
    folders = [""]
    while folders:
        paths = [f"{folder}{name}" for folder in folders for name in session.children(f"{root}/{folder}".rstrip("/"))]
        nodes = session.get_all([f"{root}/{path}" for path in paths])
        session.check_acls([f"{root}/{path}" for path in paths])
        for path, (data, stat) in zip(paths, nodes, strict=True):
            tree.load(path, data, stat.version)
        folders = [f"{path}/" for path, (_, stat) in zip(paths, nodes, strict=True) if stat.numChildren]
    return tree


def _holder(data: bytes, stat: Any, path: str) -> DriverIdentity:
    try:
        holder = DriverIdentity.from_data(unseal(data, PLAIN, path))
    except TypeError as error:
        raise StateCorrupt(f"{path} names no driver ({error}); nothing was changed") from None
    if not stat.ephemeralOwner:
        raise StateCorrupt(
            f"{path} would outlive its driver: Stormline did not create it; nothing was changed. Delete it if no "
            f"driver runs ({holder.host}, process {holder.pid})"
        )
    return holder


def _send(
    session: ZooKeeperSession,
    node: str,
    stored: _Stored,
    me: DriverIdentity,
    description: bytes | None,
    deadline: float,
) -> None:
    """Send the claim; the next `_read` tells whether it was applied."""
    epoch = stored.owner.epoch + 1 if stored.owner else 1
    owner = Owner(epoch, me.token, 0).seal()

    def fill(transaction: Any) -> None:
        if stored.owner is None:
            transaction.create(f"{node}/owner", owner)
            transaction.create(f"{node}/state", FOLDER)
        elif used_up(stored.owner_version):
            transaction.delete(f"{node}/owner", version=stored.owner_version)
            transaction.create(f"{node}/owner", owner)
        else:
            transaction.set_data(f"{node}/owner", owner, version=stored.owner_version)
        if stored.live is not None:
            transaction.delete(f"{node}/live", version=stored.live_version)
        transaction.create(f"{node}/live", seal(me.to_data(), PLAIN), ephemeral=True)
        if description is not None and stored.description is None:
            transaction.create(f"{node}/topology", description)
        elif description is not None and description != stored.description:
            transaction.set_data(f"{node}/topology", description, version=stored.description_version)

    try:
        refused = refusal(session.multi(fill, deadline))
    except NoAuthError:
        raise session.denied(node) from None
    except InvalidACLError:
        raise session.not_authenticated() from None
    except CONNECTION_ERRORS:
        return
    if refused is not None and isinstance(refused[1], NoAuthError):
        raise session.denied(node)
    if refused is not None and isinstance(refused[1], InvalidACLError):
        raise session.not_authenticated()
    if refused is not None and not isinstance(refused[1], CHANGED_MEANWHILE):
        raise session.refused(node, refused[1])
