"""Ownership: whether this driver still owns its topology."""

from __future__ import annotations

import logging
from typing import Any

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.states import EventType, KazooState

from stormline.runtime.errors import Fenced, SessionLost
from stormline.runtime.state.state_store import OnLost
from stormline.runtime.world.world import World
from stormline.runtime.zookeeper.claim import Owner
from stormline.runtime.zookeeper.interpreter_watch import WhySilent, never_silent
from stormline.runtime.zookeeper.session import CONNECTION_ERRORS, ZooKeeperSession
from stormline.topology.errors import StormlineError

log = logging.getLogger("stormline")

RETRY_SECS = 0.02
CHECK_SECS = 5.0


class Ownership:
    """What is known of an ownership: certain, uncertain while there is no connection, or lost for ever.

    After every interruption it is uncertain until it was read again that the topology is still ours. The fence
    does not lean on any of this: it is in each write.
    """

    def __init__(
        self,
        world: World,
        session: ZooKeeperSession,
        node: str,
        owner: Owner,
        on_lost: OnLost | None,
        session_secs: float = 0.0,
        why_silent: WhySilent = never_silent,
    ) -> None:
        self._world = world
        self._session = session
        self._node = node
        self._owner = owner
        self._on_lost = on_lost
        self._session_secs = session_secs
        self._why_silent = why_silent
        self._lock = world.lock()
        self._lost: StormlineError | None = None
        self._certain = False
        self._connection = 0  # number of the present connection or interruption
        session.listen(self._connection_changed)
        self._check(self._connection)

    def certain(self) -> bool:
        """Return whether the topology is ours, as far as can be known."""
        return self._certain and self._lost is None

    def raise_if_lost(self) -> None:
        """Raise what the ownership ended for, if it has ended."""
        if self._lost is not None:
            raise self._lost

    def lose(self, error: StormlineError) -> StormlineError:
        """End the ownership for `error` if it has not ended already; return what it ended for."""
        with self._lock:
            if self._lost is not None:
                return self._lost
            self._lost = error
        self._world.start_thread("stormline-zookeeper-lost", self._session.stop)
        if self._on_lost is not None:
            self._on_lost(error)
        return error

    def give_up(self) -> None:
        """End the ownership without telling anybody."""
        with self._lock:
            if self._lost is None:
                self._lost = SessionLost(f"the state store of {self._node} is closed")
        self._session.stop()

    def fenced(self, why: str) -> Fenced:
        """Return the error for a driver that was taken over."""
        return Fenced(
            f"{self._node} is no longer owned by this driver (epoch {self._owner.epoch}): {why}. Another driver may "
            f"have taken the topology over; this one must stop{self._reason()}"
        )

    def _reason(self) -> str:
        why = self._why_silent(self._session_secs)
        return f". The reason: {why}" if why else ""

    def _connection_changed(self, state: str) -> None:
        with self._lock:
            self._certain = False
            self._connection += 1
            connection = self._connection
        if state == KazooState.SUSPENDED:
            log.warning("%s: no connection to ZooKeeper; nothing is committed until there is one again", self._node)
        if state == KazooState.LOST:
            self.lose(
                SessionLost(
                    f"the ZooKeeper session of {self._node} has ended; another driver may own the topology. "
                    f"This one must stop: submit again{self._reason()}"
                )
            )
        elif state == KazooState.CONNECTED:
            log.info("%s: connected to ZooKeeper again", self._node)
            self._check_later(connection)

    def _live_changed(self, event: Any) -> None:
        if event.type == EventType.DELETED:
            self.lose(self.fenced("its node 'live' has vanished"))
        elif event.type == EventType.CHANGED:
            self._check_later(self._connection)

    def _check_later(self, connection: int) -> None:
        self._world.start_thread("stormline-zookeeper-check", self._check, connection)

    def _check(self, connection: int) -> None:
        """Become certain of the ownership, or lose it; leave both open if the connection is another one meanwhile."""
        while connection == self._connection and self._lost is None:
            deadline = self._world.monotonic() + CHECK_SECS
            try:
                live, _ = self._session.get_now(f"{self._node}/live", deadline, self._live_changed)
                data, _ = self._session.get_now(f"{self._node}/owner", deadline)
                stored = Owner.unseal(data, f"{self._node}/owner")
            except NoNodeError:
                self.lose(self.fenced("its node 'live' or 'owner' has vanished"))
            except NoAuthError:
                self.lose(self._session.denied(self._node))
            except StormlineError as error:
                self.lose(error)
            except CONNECTION_ERRORS:
                self._world.sleep(RETRY_SECS)
            else:
                if stored.token != self._owner.token:
                    self.lose(self.fenced(f"epoch {stored.epoch} owns it"))
                elif self._owner.token.encode() not in live:
                    self.lose(self.fenced("its node 'live' is another driver's"))
                with self._lock:
                    if connection == self._connection:  # a check of an earlier connection may end after a later one's
                        self._certain = True
                return
