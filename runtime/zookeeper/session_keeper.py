"""SessionKeeper: keeps ZooKeeper sessions alive within the server's own JVM, where no Python code can hold it up.

kazoo's pings come from a Python thread. One call of user code that holds the interpreter's lock for longer than the
session lasts (a regular expression, an extension) would end it, though nobody else can have taken the topology over:
whoever wants the embedded ZooKeeper's data waits for the end of this JVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KeepAlive = Callable[[int, int], Callable[[], None]]
"""Keeps the session of this id, which lasts so many milliseconds, alive until what it returns is called."""

TOUCHES_A_SESSION = 4


class SessionKeeper:
    """Touches sessions of the `server` from a thread of the JVM; `gateway` is py4j's."""

    def __init__(self, gateway: Any, server: Any) -> None:
        self._gateway = gateway
        self._tracker = server.getSessionTracker()
        self._timer = gateway.jvm.java.util.concurrent.Executors.newSingleThreadScheduledExecutor()

    def keep(self, session_id: int, timeout_ms: int) -> Callable[[], None]:
        """Keep a session alive until what this returns is called; one that has ended stays so."""
        unit = self._gateway.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        pause_ms = max(1, timeout_ms // TOUCHES_A_SESSION)
        touching = self._timer.scheduleAtFixedRate(self._touch(session_id, timeout_ms), 0, pause_ms, unit)

        def release() -> None:
            touching.cancel(False)

        return release

    def stop(self) -> None:
        """Keep no session alive any more."""
        self._timer.shutdownNow()

    def _touch(self, session_id: int, timeout_ms: int) -> Any:
        """Return a Runnable of the JVM's own making: one of py4j's would run Python code."""
        lang = self._gateway.jvm.java.lang
        invoke = lang.invoke
        parameters = self._array(lang.Class, lang.Long.TYPE, lang.Integer.TYPE)
        kind = invoke.MethodType.methodType(lang.Boolean.TYPE, parameters)
        touch = invoke.MethodHandles.publicLookup().findVirtual(self._tracker.getClass(), "touchSession", kind)
        session = lang.Long.valueOf(str(session_id))  # as text: py4j sends a small number as an Integer
        given = self._array(lang.Object, self._tracker, session, timeout_ms)
        bound = invoke.MethodHandles.insertArguments(touch, 0, given)
        return invoke.MethodHandleProxies.asInterfaceInstance(lang.Class.forName("java.lang.Runnable"), bound)

    def _array(self, kind: Any, *items: Any) -> Any:
        array = self._gateway.new_array(kind, len(items))
        for index, item in enumerate(items):
            array[index] = item
        return array
