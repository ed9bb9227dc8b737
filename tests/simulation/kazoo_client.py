"""A kazoo client that keeps to what kazoo does: states, pending requests, watches; over a network that breaks.

Laws by number, as docs/laws.md has them: law 6 (fencing).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from greenlet import getcurrent
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, KazooException, SessionExpiredError
from kazoo.protocol.states import KazooState, WatchedEvent

from tests.simulation.faults import Faults
from tests.simulation.kazoo_requests import Request, Sent, SimAsyncResult, SimTransaction, refused
from tests.simulation.proofs import Proofs
from tests.simulation.scheduler import Process, Scheduler, SimQueue
from tests.simulation.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from tests.simulation.world import World

PROBE_SECS = 0.01
"""Time after which a driver must know that its connection is gone."""

PING_SECS = 1.3
"""Time after which a client finds by itself that its connection is gone: of a session of two seconds."""

FLAP_SECS = 0.0006
"""Within this time after it was read whose the topology is a connection that flaps breaks again."""


class Wire:
    """One connection. Messages arrive in order; when it breaks, those under way may still arrive, or not."""

    def __init__(self, client: SimKazooClient) -> None:
        self.client = client
        self.session: int | None = None
        self.watches: dict[str, Callable[[Any], None]] = {}
        self._there = 0.0
        self._back = 0.0

    def send(self, secs: float, call: Callable[..., None], *args: Any) -> None:
        """Send a message to the server."""
        world = self.client.process.world
        self._there = max(self._there, world.now + secs)
        world.after(self._there - world.now, call, *args)

    def give_back(self, secs: float, call: Callable[..., None], *args: Any) -> None:
        """Send a message to the client's process."""
        world = self.client.process.world
        self._back = max(self._back, world.now + secs)
        world.after(self._back - world.now, self.client.process.deliver, call, *args)

    def closed_by_server(self) -> None:
        self.give_back(self.client.faults.network_secs(), self.client.broken, self)

    def watched(self, event: WatchedEvent) -> None:
        self.give_back(self.client.faults.network_secs(), self._watched, event)

    def _watched(self, event: WatchedEvent) -> None:
        watch = self.watches.pop(event.path, None)
        if watch is not None:
            self.client.call_back(watch, event)


class SimKazooClient:
    """One client of one process. What it is told by the network happens in a thread of its own, in order."""

    def __init__(self, process: Process, server: ZooKeeper, faults: Faults, timeout: float) -> None:
        self.process = process
        self.server = server
        self.faults = faults
        self.state = "closed"
        self.suspended_at: float | None = None
        self.connected_at = 0.0
        self.certain: Callable[[], bool] = lambda: False  # whether its driver is, of owning the topology
        self.proofs = Proofs(process)
        self._deaf_until = 0.0
        self._timeout_secs = timeout
        self._listeners: list[Callable[[str], None]] = []
        self._wire: Wire | None = None
        self._session: int | None = None
        self._stopped = False
        self._pending: dict[SimAsyncResult, Sent] = {}
        self._queue: deque[tuple[SimAsyncResult, Request, bool, Any, str]] = deque()
        self._todo = SimQueue(process.world)
        process.world.spawn(process, self._work, "kazoo")
        process.on_pause.append(self._paused)
        process.on_kill.append(self._killed)

    # ------------------------------------------------------------------------------------ what Stormline calls

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def start_async(self) -> None:
        self.state = "connecting"
        self._connect_later()

    def transaction(self) -> SimTransaction:
        return SimTransaction(self)

    def sync_async(self, path: str) -> SimAsyncResult:
        return self.request(lambda number: self.server.sync(number, path))

    def get_async(self, path: str, watch: Callable[[Any], None] | None = None) -> SimAsyncResult:
        world = self.process.world
        asked_at = world.now

        def get(number: int) -> Any:
            behind_secs = self.server.behind_secs(number, path) - (world.now - asked_at)
            if path.endswith("/live") and behind_secs > 0:
                _whole(world).oracle.looks(behind_secs)
            return self.server.get(number, path, watch is not None)

        return self.request(get, watch=(path, watch))

    def get_children_async(self, path: str) -> SimAsyncResult:
        return self.request(lambda number: self.server.children(number, path))

    def exists_async(self, path: str) -> SimAsyncResult:
        return self.request(lambda number: self.server.exists(number, path))

    def create_async(self, path: str, value: bytes = b"") -> SimAsyncResult:
        return self.request(lambda number: self.server.create(number, path, value), write=True)

    def got(self, result: SimAsyncResult) -> Any:
        """Wait for an answer."""
        return result.get()

    def retry(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """As kazoo's: again and again, also in a new session. For broken versions of Stormline only."""
        while True:
            try:
                return call(*args, **options)
            except (ConnectionLoss, SessionExpiredError):
                self.process.world.sleep(0.1)

    def stop(self) -> None:
        """Say goodbye: the session ends at once where the server can be reached."""
        self._stopped = True
        wire = self._wire
        if wire is not None and self.state == "connected" and wire.session is not None:
            wire.send(self.faults.network_secs(), self._goodbye, wire, wire.session)
            self.process.world.sleep(self.faults.network_secs() * 2)
        self._lose(ConnectionClosedError(), "closed")

    def close(self) -> None: ...

    # ------------------------------------------------------------------------------------ requests

    def request(self, request: Request, write: bool = False, watch: Any = None) -> SimAsyncResult:
        """Send a request, or queue it until there is a connection."""
        result = SimAsyncResult(self)
        if self.state == "closed":
            result.set_exception(ConnectionClosedError())
        elif self.state == "expired":
            result.set_exception(SessionExpiredError())
        elif self.state == "connecting":
            self._queue.append((result, request, write, watch, _thread()))
        else:
            self._send(result, request, write, watch)
        return result

    def _send(
        self, result: SimAsyncResult, request: Request, write: bool, watch: Any, thread: str | None = None
    ) -> None:
        wire = self._wire
        assert wire is not None
        reads_owner = watch is not None and watch[0].endswith("/owner")
        self._pending[result] = Sent(self.process.world.now, thread or _thread(), reads_owner, reads_owner or write)
        fault = self.faults.of_request(write)
        secs = self.faults.network_secs()
        if fault == "slow":
            secs = self.faults.long_secs()
        if fault == "lost request":
            self.process.world.after(secs, self.process.deliver, self.broken, wire)
            return
        if fault == "late request":  # the client knows that the connection is gone, but not what is under way
            wire.send(self.faults.long_secs(), self._arrive, wire, result, request, watch, None)
            self.process.world.after(secs, self.process.deliver, self.broken, wire)
            return
        if fault == "driver: killed in a write":  # it arrives all the same, perhaps after another driver's claim
            there_secs = self.faults.long_secs() if self.faults.chance(0.5) else secs
            wire.send(there_secs, self._arrive, wire, result, request, watch, None)
            self.process.world.after(secs, self.process.kill)
            return
        if fault == "driver: paused in a write":  # it is applied, and its answer read when the driver wakes up
            self.process.world.after(secs, self.process.pause)
            self.process.world.after(secs + self.faults.pause_secs(), self.process.resume)
        wire.send(secs, self._arrive, wire, result, request, watch, fault)

    def _arrive(self, wire: Wire, result: SimAsyncResult, request: Request, watch: Any, fault: str | None) -> None:
        number = wire.session
        if number is None or not self.server.reachable or not self.server.hears(number, wire):
            return
        if fault == "expired before":
            self.server.expire(number)
            return
        if watch is not None and watch[1] is not None:
            wire.watches[watch[0]] = watch[1]
        answer: Any
        try:
            answer = request(number)
        except KazooException as error:
            answer = error
        if fault == "expired after":
            self.server.expire(number)
        elif fault == "driver: ousted":  # what it finds when it connects again is a follower that has not heard of it
            self.server.lag(number, self.faults.lag_secs())
            wire.give_back(self.faults.network_secs(), self.broken, wire)
            _whole(self.process.world).oust()
        elif fault == "lost reply":
            wire.give_back(self.faults.network_secs(), self.broken, wire)
        else:
            wire.give_back(self.faults.network_secs(), self._answered, wire, result, answer)

    def _answered(self, wire: Wire, result: SimAsyncResult, answer: Any) -> None:
        sent = self._pending.pop(result, None)
        if sent is None:
            return
        world = self.process.world
        self.proofs.answered(sent.thread)
        if sent.reads_owner and self.faults.strikes("connection: flaps"):
            world.after(FLAP_SECS * world.random.random(), self.process.deliver, self.broken, wire)
        if sent.proves and not refused(answer):
            self.proofs.came(sent.at)
        if isinstance(answer, KazooException):
            result.set_exception(answer)
        else:
            result.set(answer)

    # ------------------------------------------------------------------------------------ connections

    def _connect_later(self, secs: float | None = None) -> None:
        world = self.process.world
        wait = self.faults.network_secs() if secs is None else secs
        world.after(wait, self.process.deliver, self._connect)

    def _connect(self) -> None:
        if self._stopped or self.state not in ("connecting", "expired"):
            return
        if not self.server.reachable or self.faults.of_connect():
            self._connect_later(self.faults.reconnect_secs())
            return
        wire = Wire(self)
        wire.send(self.faults.network_secs(), self._connect_arrives, wire)

    def _connect_arrives(self, wire: Wire) -> None:
        if not self.server.reachable:
            wire.give_back(self.faults.network_secs(), self._connect_later, self.faults.reconnect_secs())
            return
        wire.session = self.server.connect(self._session, self._timeout_secs, wire)
        if wire.session is not None and self.faults.strikes("follower: lags"):
            self.server.lag(wire.session, self.faults.lag_secs())
        if wire.session is not None and (self.process.paused or not self.process.alive):
            self.server.silent(wire.session, wire, closed=not self.process.alive)
        wire.give_back(self.faults.network_secs(), self._connected, wire)

    def _connected(self, wire: Wire) -> None:
        if self._stopped:
            if wire.session is not None:
                self._goodbye(wire, wire.session)
            return
        if wire.session is None:
            self._session = None
            self._lose(SessionExpiredError(), "expired")
            self._connect_later()
            return
        self._session = wire.session
        self._wire = wire
        self.server.heard(wire.session, wire)
        self.state = "connected"
        self.connected_at = self.process.world.now
        self.suspended_at = None
        for secs in (PROBE_SECS / 5, 2 * PROBE_SECS):
            self.process.world.after(secs, self._probe_claim, self._session)
        self._tell(KazooState.CONNECTED)
        while self._queue and self.state == "connected":
            self._send(*self._queue.popleft())

    def broken(self, wire: Wire) -> None:
        """The connection is gone."""
        if wire is not self._wire or self.state != "connected":
            return
        world = self.process.world
        if world.now < self._deaf_until:
            world.after(self._deaf_until - world.now, self.process.deliver, self.broken, wire)
            return
        if wire.session is not None:
            self.process.world.after(self.faults.network_secs(), self._silent, wire, wire.session)
        self._lose(ConnectionLoss(), "connecting")
        self._connect_later(self.faults.reconnect_secs())

    def _silent(self, wire: Wire, number: int) -> None:
        self.server.silent(number, wire, closed=False)

    def _goodbye(self, wire: Wire, number: int) -> None:
        if self.server.reachable and self.server.hears(number, wire):
            self.server.expire(number)

    def _lose(self, error: Exception, state: str) -> None:
        was, self.state = self.state, state
        self._wire = None
        if self.suspended_at is None:
            self.suspended_at = self.process.world.now
        pending = list(self._pending)
        pending += [result for result, *_ in self._queue]
        self._pending.clear()
        self._queue.clear()
        for result in pending:
            result.set_exception(error)
        if state == "connecting":
            self.process.world.after(PROBE_SECS, self._probe, self.suspended_at)
        if state != was:
            self._tell(KazooState.SUSPENDED if state == "connecting" else KazooState.LOST)

    def _probe(self, suspended_at: float) -> None:
        """See that who has had no connection for a while knows it."""
        world, process = self.process.world, self.process
        awake = process.alive and not process.paused and world.now - process.resumed_at >= PROBE_SECS
        if self.suspended_at == suspended_at and awake and self.certain():
            _whole(world).oracle.broken("law 6: a driver without a connection is certain that it owns the topology")

    def probe_unclaimed(self, removed_at: float) -> None:
        """See that who has been told that its claim has vanished knows it."""
        world, process = self.process.world, self.process
        told = self.suspended_at is None and self.connected_at < removed_at and world.now > self._deaf_until
        awake = process.alive and not process.paused and process.resumed_at < removed_at
        if told and awake and self._session is not None and self.server.up_to_date(self._session) and self.certain():
            _whole(world).oracle.broken("law 6: a driver whose claim was deleted is certain that it owns the topology")

    def _probe_claim(self, session: int) -> None:
        """See that who has connected after another one's claim is not certain of its own."""
        if self._session == session and self.process.alive and self.suspended_at is None and self.certain():
            _whole(self.process.world).oracle.certain(session, self.connected_at)

    def _killed(self) -> None:
        """What was sent before still arrives, and then that the connection is closed."""
        for number, wire in self.server.connections_of(self):
            wire.send(self.faults.network_secs(), partial(self.server.silent, closed=True), number, wire)

    def _paused(self, paused: bool) -> None:
        if paused:
            for number, wire in self.server.connections_of(self):
                self.server.silent(number, wire, closed=False)
            return
        if self.faults.strikes("closed unheard"):  # who sleeps misses that the server closes the connection
            self._deaf_until = self.process.world.now + PING_SECS * self.process.world.random.random()
        if self._wire is not None and self._wire.session is not None:
            self.server.heard(self._wire.session, self._wire)

    # ------------------------------------------------------------------------------------ calling back

    def _tell(self, state: str) -> None:
        for listener in self._listeners:
            self._todo.put((listener, state))

    def call_back(self, watch: Callable[[Any], None], event: WatchedEvent) -> None:
        """Call a watch."""
        self._todo.put((watch, event))

    def _work(self) -> None:
        while True:
            call, argument = self._todo.get()
            call(argument)


def _whole(world: Scheduler) -> World:
    """Return the world that a process is in as what it is: with an oracle, and databases."""
    return cast("World", world)


def _thread() -> str:
    """Return the name of the thread that asks."""
    return str(getattr(getcurrent(), "name", ""))
