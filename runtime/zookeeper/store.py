"""The durable state store: one topology's node in ZooKeeper, fenced in each transaction (law 6, fencing).

<root>/<topology id>/owner      whose writes count: epoch, token, number of writes; set by every write
<root>/<topology id>/live       which process that is; ephemeral
<root>/<topology id>/topology   the description that the state belongs to
<root>/<topology id>/state/…    the values
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo.exceptions import NoAuthError, NoNodeError

from stormline.runtime.errors import InvalidPath, SessionLost, StateCorrupt
from stormline.runtime.state.state_store import CheckState, OnLost, Op, any_state, check_part
from stormline.runtime.state.state_tree import Change, next_version, used_up
from stormline.runtime.world.world import REAL, World
from stormline.runtime.zookeeper.claim import CHANGED_MEANWHILE, Claim, Owner, claim, refusal
from stormline.runtime.zookeeper.embedded_server import EmbeddedServer
from stormline.runtime.zookeeper.interpreter_watch import WhySilent, never_silent
from stormline.runtime.zookeeper.ownership import RETRY_SECS, Ownership
from stormline.runtime.zookeeper.polling import kazoo_client
from stormline.runtime.zookeeper.security import OPEN, ZooKeeperSecurity
from stormline.runtime.zookeeper.session import CONNECTION_ERRORS, MakeClient, ZooKeeperSession
from stormline.topology.identifiers import RESERVED_ROOT
from stormline.topology.serialization import PLAIN, Registry

WRITES_STEP_MAX = (1 << 24) - 1


class ZooKeeperStateStore:
    """A `StateStore` in ZooKeeper.

    Every write is one transaction, which sets the owner at the version that this driver left it at. A driver
    that was taken over can therefore change nothing, however late its requests arrive; and whether a write of
    which no answer came was applied can be read from the owner.
    """

    def __init__(
        self,
        world: World,
        session: ZooKeeperSession,
        node: str,
        claimed: Claim,
        wait_ms: int,
        ownership: Ownership,
    ) -> None:
        self._world = world
        self.epoch = claimed.owner.epoch
        self._session = session
        self._node = node
        self._owner = claimed.owner
        self._owner_version = claimed.owner_version
        self._tree = claimed.tree
        self._wait_ms = wait_ms
        self._lock = world.lock()
        self._ownership = ownership
        self._server: EmbeddedServer | None = None

    @classmethod
    def open(
        cls,
        hosts: str,
        root: str,
        topology_id: str,
        registry: Registry = PLAIN,
        description: Any = None,
        *,
        allow_changed: bool = False,
        check_state: CheckState = any_state,
        on_lost: OnLost | None = None,
        session_timeout_ms: int = 20_000,
        connection_timeout_ms: int = 15_000,
        debug: bool = False,
        security: ZooKeeperSecurity = OPEN,
        server: EmbeddedServer | None = None,
        why_silent: WhySilent = never_silent,
        world: World = REAL,
        make_client: MakeClient = kazoo_client,
    ) -> ZooKeeperStateStore:
        """Take the ownership of a topology, with all its state; or change nothing.

        Args:
            hosts: "host:port,host:port,…"
            root: znode below which the topology has its own, such as "/transactional".
            registry: the classes that values may hold.
            description: what the state belongs to, in dicts, lists and plain values; None: not checked.
            allow_changed: replace a stored description that is another one, where its spout can go on with the state.
            check_state: raises where the topology described cannot go on with the state, before it is claimed.
            on_lost: told once, as soon as the ownership ends without `close`; it must not wait, and runs in any
                thread.
            debug: let kazoo log.
            security: who this driver is. Where it says, all znodes that are created are its alone, and those that
                are found must be.
            server: the one at `hosts`, where it is this driver's own.
            why_silent: says, when the session has ended, what kept this process from its pings.
            make_client: makes kazoo's client.

        Raises:
            ZooKeeperUnreachable: nothing that is a ZooKeeper answers within the connection timeout.
            ZooKeeperDenied: its access control or a quota forbids it, or it does not accept who this driver says it is.
            InsecureState: others can change the topology's znodes.
            SecretMissing, InvalidConfig: what `security` refers to cannot be used.
            AlreadyRunning: another driver owns the topology. Raised at once if that can be known to live; dead
                ones on the same host are replaced at once; otherwise its session is given time to end.
            TopologyChanged: the state belongs to a topology described otherwise, or its spout cannot go on with it.
            StateCorrupt: something there was not written by Stormline, or not like this.
            NewerState: it was written by a newer Stormline.
            InvalidPath: `root` or `topology_id` cannot be used.
        """
        if not root.startswith("/") or root.split("/")[1] == RESERVED_ROOT:
            raise InvalidPath(
                f"root {root!r}: expected an absolute znode path such as '/transactional', not below ZooKeeper's own "
                f"/{RESERVED_ROOT}"
            )
        for part in root[1:].split("/"):
            check_part(part, f"part of the root {root!r},")
        node = f"{root}/{check_part(topology_id, 'topology id')}"
        keep_alive = None if server is None else server.keep_alive
        session = ZooKeeperSession.connect(
            world, hosts, node, session_timeout_ms, connection_timeout_ms, debug, security, keep_alive, make_client
        )
        try:
            claimed = claim(
                world,
                session,
                node,
                registry,
                description,
                allow_changed,
                check_state,
                session_timeout_ms,
                connection_timeout_ms,
            )
            ownership = Ownership(world, session, node, claimed.owner, on_lost, session_timeout_ms / 1000, why_silent)
            store = cls(world, session, node, claimed, session_timeout_ms + connection_timeout_ms, ownership)
            store._lean_on(server)
            store._ownership.raise_if_lost()
        except BaseException:
            session.stop()
            raise
        return store

    def get(self, path: str) -> Any:
        """Return a fresh copy of the value at `path`, or raise `KeyError`."""
        with self._lock:
            return self._tree.get(path)

    def children(self, path: str) -> list[str]:
        """Return the sorted names directly below `path`."""
        with self._lock:
            return self._tree.children(path)

    def write(self, ops: Sequence[Op]) -> None:
        """Apply all of `ops`, or none; see `StateStore.write`.

        Raises:
            StateCorrupt: somebody else changed a value by hand; nothing was written.
            StateDirGone: it was written to files that were deleted.
            ZooKeeperDenied: access control was changed meanwhile, or a quota is used up; nothing was written.
        """
        with self._lock:
            self._ownership.raise_if_lost()
            changes = self._tree.plan(ops)
            # By a random step, so that no clone of this process makes the same write: each tells its own from it.
            last = self._owner
            owner = Owner(last.epoch, last.token, last.writes + 1 + self._world.random_below(WRITES_STEP_MAX))
            deadline = self._world.monotonic() + self._wait_ms / 1000
            while not self._applied(owner, changes, deadline):
                self._world.sleep(RETRY_SECS)
                self._ownership.raise_if_lost()
            self._check_files()
            self._owner = owner
            self._owner_version = next_version(self._owner_version)
            self._tree.apply(changes)

    def _lean_on(self, server: EmbeddedServer | None) -> None:
        self._server = server
        if server is not None:
            server.when_files_gone(self._ownership.lose)
            self._check_files()

    def _check_files(self) -> None:
        """Raise `StateDirGone` where what the server has acknowledged is durable no more."""
        gone = None if self._server is None else self._server.files_gone()
        if gone is not None:
            raise self._ownership.lose(gone)

    def connected(self) -> bool:
        """Return whether the ownership is certain now."""
        return self._ownership.certain()

    def close(self) -> None:
        """Give the ownership up, at once where the server can be reached."""
        self._ownership.give_up()
        self._world.machine.remove_mark(self._owner.token)

    def _applied(self, owner: Owner, changes: Sequence[Change], deadline: float) -> bool:
        """Send a write; True: it is durable. False: it was not applied, and may be sent again."""

        make_anew = used_up(self._owner_version)
        position_live = 2 if make_anew else 1

        def fill(transaction: Any) -> None:
            if make_anew:
                transaction.delete(f"{self._node}/owner", version=self._owner_version)
                transaction.create(f"{self._node}/owner", owner.seal())
            else:
                transaction.set_data(f"{self._node}/owner", owner.seal(), version=self._owner_version)
            transaction.check(f"{self._node}/live", 0)
            for change in changes:
                path = f"{self._node}/state/{change.path}"
                if change.data is None:
                    transaction.delete(path, version=change.version)
                elif change.version is None:
                    transaction.create(path, change.data)
                else:
                    transaction.set_data(path, change.data, version=change.version)

        try:
            refused = refusal(self._session.multi(fill, deadline))
        except NoAuthError:
            raise self._session.denied(self._node) from None
        except CONNECTION_ERRORS:
            return self._applied_unanswered(owner, deadline)
        if refused is None:
            return True
        position, error = refused
        if isinstance(error, NoAuthError):
            raise self._session.denied(self._node)
        if not isinstance(error, CHANGED_MEANWHILE):
            raise self._session.refused(self._node, error)
        if position < position_live:
            return self._applied_unanswered(owner, deadline)
        if position == position_live:
            raise self._ownership.lose(self._ownership.fenced("its node 'live' has vanished"))
        raise StateCorrupt(
            f"{self._node}/state/{changes[position - position_live - 1].path} was changed by somebody else since this "
            f"driver read or wrote it ({type(error).__name__}); nothing was written"
        )

    def _applied_unanswered(self, owner: Owner, deadline: float) -> bool:
        """Find out whether a write was applied of which no answer tells it: never by sending it again."""
        while True:
            self._ownership.raise_if_lost()
            if not self._session.wait_connected(deadline):
                raise self._ownership.lose(
                    SessionLost(
                        f"no connection to ZooKeeper for {self._wait_ms} ms while {self._node} was written; the next "
                        "driver will know whether that was applied. This one must stop: submit again"
                    )
                )
            try:
                data, stat = self._session.get_now(f"{self._node}/owner", deadline)
            except NoNodeError:
                raise self._ownership.lose(self._ownership.fenced("it was deleted")) from None
            except NoAuthError:
                raise self._ownership.lose(self._session.denied(self._node)) from None
            except CONNECTION_ERRORS:
                self._world.sleep(RETRY_SECS)
                continue
            stored = Owner.unseal(data, f"{self._node}/owner")
            if (stored, stat.version) == (owner, next_version(self._owner_version)):
                return True
            if (stored, stat.version) == (self._owner, self._owner_version):
                return False
            raise self._ownership.lose(self._ownership.fenced(f"epoch {stored.epoch} owns it"))
