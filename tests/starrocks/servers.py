"""A cluster's ports: HTTP as the front end and the back ends speak it, with `Expect`, redirects and lost replies."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.starrocks.back_end import Context
from tests.starrocks.cluster import Cluster
from tests.starrocks.faults import Fault
from tests.starrocks.front_end import Redirect, Request
from tests.starrocks.refusals import INVALID_ARGUMENT, Denied, Refused

DRAIN_SECS = 10
SILENCE_SECS = 60


class Lost(Exception):
    """The connection is closed without an answer."""


class Handler(BaseHTTPRequestHandler):
    """What both ends have in common: one request a connection."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE_SECS
    cluster: Cluster

    def handle_expect_100(self) -> bool:
        """Answer nothing yet: whoever takes the body says `100 Continue` first."""
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Answer, or close the connection."""
        self.close_connection = True
        try:
            self._answer()
        except Denied as denied:
            self._send({"status": "FAILED", "msg": str(denied)}, 401)
        except Refused as refused:
            self._send({"Status": refused.status, "Message": refused.message, **refused.more})
        except LookupError as error:
            self._send({"status": "FAILED", "msg": f"not found: {error}"}, 404)
        except (Lost, OSError):
            return

    do_POST = do_PUT = do_GET

    def _answer(self) -> None:
        raise NotImplementedError

    def _request(self, admin: bool = False) -> Request:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command or "", parts.path, dict(parse_qsl(parts.query)), headers, b"", admin)

    def _body(self) -> bytes:
        """Ask for the body, and read it.

        Raises:
            Lost: it broke off.
        """
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        if len(body) < size:
            raise Lost
        return body

    def _fault(self, operation: str, when: Any) -> None:
        fault: Fault | None = self.cluster.faults.take(operation, when)
        if fault is None:
            return
        if fault.hold is not None:
            fault.hold.wait(SILENCE_SECS)
        elif fault.status:
            raise Refused(fault.status, fault.message)
        else:
            raise Lost

    def _send(self, answer: Any, code: int = 200, **headers: str) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text.encode())


class FrontHandler(Handler):
    """The front end's port. It never takes the body of a load."""

    back_addresses: list[str]

    def _answer(self) -> None:
        user = self.cluster.user_of({name.lower(): value for name, value in self.headers.items()})
        request = self._request(self.cluster.is_admin(user))
        operation = self.cluster.front_end.operation(request)
        moves = request.path.startswith("/api/transaction/")
        if not moves:
            request = Request(**{**_fields(request), "body": self._body()})
        if not moves or operation in ("commit", "rollback"):
            self._fault(operation, "before")
        with self.cluster.lock:
            try:
                answer = self.cluster.front_end.answer(request, self.cluster.now())
            except Refused as refused:
                if moves:  # what a Java exception looks like as text [fe]
                    message = refused.message
                    if refused.status == "FAILED" and message != "publish timeout":
                        message = f"class com.starrocks.common.StarRocksException: {message}"
                    raise Refused(refused.status, message, **refused.more) from None
                self._send({"status": "FAILED", "code": "1", "msg": refused.message, "message": refused.message})
                return
        if isinstance(answer, Redirect):
            self._fault("redirect", "before")
            location = f"http://{self.back_addresses[answer.back_end]}{self.path}"
            self._send("", 307, Location=location)
        else:
            self._fault(operation, "after")
            self._send({"Status": "OK", "Message": "", **answer} if moves and isinstance(answer, dict) else answer)
        if moves:
            self._drain()

    def _drain(self) -> None:
        """Count what the client sends in spite of the redirect, until it closes the connection."""
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(DRAIN_SECS)
        while data := self.rfile.read1(1 << 16):
            with self.cluster.lock:
                self.cluster.body_bytes_at_front_end += len(data)


class BackHandler(Handler):
    """A back end's port."""

    number: int

    def _answer(self) -> None:
        request = self._request()
        operation = request.path.rpartition("/")[2]
        if not request.path.startswith("/api/transaction/") or (request.method == "PUT") != (operation == "load"):
            raise LookupError(f"{request.method} {request.path}")
        for header in ("db", "label"):
            if not request.headers.get(header):
                raise Refused(INVALID_ARGUMENT, f"empty {header}")
        try:
            self.cluster.user_of(request.headers)
        except Denied:  # [be]; a real one looks only when a transaction begins
            raise Refused("INTERNAL_ERROR", "no valid Basic authorization") from None
        if request.headers.get("transaction_type") and operation != "load":
            raise Refused(
                INVALID_ARGUMENT,
                "Multi-statement transaction requests can only be sent to FE nodes, not BE nodes",
            )
        self._fault(operation, "before")
        answer = self._load(request) if operation == "load" else self._do(operation, request)
        self._fault(operation, "after")
        self._send({"Status": "OK", "Message": "", **answer})

    def _do(self, operation: str, request: Request) -> dict[str, Any]:
        self._body()
        back_end = self.cluster.back_ends[self.number]
        with self.cluster.lock:
            now = self.cluster.now()
            if operation == "begin":
                return back_end.begin(request.headers, now)
            if operation in ("prepare", "commit"):
                return back_end.finish(request.headers, now, operation == "commit")
            if operation == "rollback":
                return back_end.rollback(request.headers, now)
        raise Refused(INVALID_ARGUMENT, f"unsupport transaction operation {operation}")

    def _load(self, request: Request) -> dict[str, Any]:
        back_end = self.cluster.back_ends[self.number]
        with self.cluster.lock:
            context = back_end.open_load(request.headers, self.cluster.now())
        body: bytes | None = None
        try:
            body = self._body()
            return self._loaded(context, request, body)
        finally:
            if body is None:  # the client went away in the middle: the transaction is aborted
                with self.cluster.lock, contextlib.suppress(Refused):
                    back_end.load(context, request.headers, None, self.cluster.now())

    def _loaded(self, context: Context, request: Request, body: bytes) -> dict[str, Any]:
        with self.cluster.lock:
            return self.cluster.back_ends[self.number].load(context, request.headers, body, self.cluster.now())


class Server(ThreadingHTTPServer):
    """A port, which a stopped one takes again."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128


class Servers:
    """A cluster's servers on 127.0.0.1; a port of 0 is any that is free.

    Args:
        cluster: what they answer from.
        front_port: the front end's.
        back_ports: the back ends'; one for each.
    """

    def __init__(self, cluster: Cluster, front_port: int = 0, back_ports: tuple[int, ...] = ()) -> None:
        self.cluster = cluster
        self._running: dict[str, tuple[Server, threading.Thread]] = {}
        ports = list(back_ports) + [0] * (len(cluster.back_ends) - len(back_ports))
        self._handlers: dict[str, Callable[..., Handler]] = {}
        self._ports: dict[str, int] = {}
        for number, port in enumerate(ports):
            handler: Any = type("BackHandlerOf", (BackHandler,), {"cluster": cluster, "number": number})
            self._handlers[f"back-{number}"] = handler
            self._ports[f"back-{number}"] = port
            self.start(f"back-{number}")
        addresses = [f"127.0.0.1:{self._ports[f'back-{number}']}" for number in range(len(ports))]
        front: Any = type("FrontHandlerOf", (FrontHandler,), {"cluster": cluster, "back_addresses": addresses})
        self._handlers["front"] = front
        self._ports["front"] = front_port
        self.start("front")

    @property
    def front_address(self) -> str:
        """Host and port of the front end."""
        return f"127.0.0.1:{self._ports['front']}"

    @property
    def back_addresses(self) -> list[str]:
        """Hosts and ports of the back ends."""
        return [f"127.0.0.1:{port}" for name, port in self._ports.items() if name != "front"]

    def start(self, name: str) -> None:
        """Open a port: `front`, `back-0`, …; the same as before."""
        server = Server(("127.0.0.1", self._ports[name]), self._handlers[name])
        self._ports[name] = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), name=f"starrocks-{name}", daemon=True)
        thread.start()
        self._running[name] = server, thread

    def stop(self, name: str) -> None:
        """Close a port: nobody is answered any more. What the end has in memory it keeps; see `Cluster.restart_…`."""
        server, thread = self._running.pop(name)
        server.shutdown()
        server.server_close()
        thread.join()

    def close(self) -> None:
        """Close all ports."""
        for name in list(self._running):
            self.stop(name)


def _fields(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ("method", "path", "query", "headers", "admin")}
