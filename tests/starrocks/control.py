"""A port by which a test, or a hand, in another process sets the clock, restarts ends, and lets faults come."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.starrocks.faults import Fault
from tests.starrocks.servers import Servers

HELP = """POST /advance?secs=600
POST /fault?operation=commit&when=after&times=1&skip=0&status=&message=
POST /clear_faults
POST /restart?end=front          or back-0: it loses what it has only in memory
POST /stop?end=front             nobody is answered
POST /start?end=front
POST /publish?on=no              what is committed does not become visible
POST /create_table?database=shop&name=orders&columns=id bigint not null,item varchar(20)&key=id
GET  /states?database=shop       the state of each label
GET  /rows?database=shop&table=orders
"""


class ControlHandler(BaseHTTPRequestHandler):
    """The port of `python -m tests.starrocks` that no real server has."""

    servers: Servers

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        """Do what the path says; an error is answered as text."""
        parts = urlsplit(self.path)
        try:
            code, answer = 200, self._do(parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)))
        except (KeyError, ValueError, TypeError, StopIteration) as error:
            code, answer = 400, f"{type(error).__name__}: {error}\n{HELP}"
        text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def _do(self, path: str, query: dict[str, str]) -> Any:
        cluster = self.servers.cluster
        match path:
            case "/advance":
                cluster.advance(float(query["secs"]))
            case "/fault":
                times, skip = int(query.pop("times", "1")), int(query.pop("skip", "0"))
                cluster.faults.add(Fault(times=times, skip=skip, **query))  # type: ignore[arg-type]
            case "/clear_faults":
                cluster.faults.clear()
            case "/restart" if query["end"] == "front":
                cluster.restart_front_end()
            case "/restart":
                cluster.restart_back_end(int(query["end"].removeprefix("back-")))
            case "/stop":
                self.servers.stop(query["end"])
            case "/start":
                self.servers.start(query["end"])
            case "/publish":
                cluster.publish(query["on"] == "yes")
            case "/create_table":
                key = tuple(query.get("key", "").split(",")) if query.get("key") else ()
                cluster.create_table(query["database"], query["name"], query["columns"], key)
            case "/states":
                return cluster.states(query["database"])
            case "/rows":
                return cluster.rows(query["database"], query["table"])
            case _:
                return HELP
        return "done"
