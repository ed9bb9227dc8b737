"""HTTP by hand, as the documentation's curl speaks it; with a body that is sent, held back, or broken off."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Raw:
    """One connection, and what was answered so far."""

    connection: socket.socket
    received: bytes = b""

    @classmethod
    def ask(
        cls,
        address: str,
        request: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        user: str = "root:",
        send: bool = True,
    ) -> Raw:
        """Send a request, its body at once, later (`send=False`), or never."""
        host, _, port = address.partition(":")
        raw = cls(socket.create_connection((host, int(port)), timeout=60))
        given = {
            "Host": address,
            "Expect": "100-continue",
            **({"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user else {}),
            "Content-Length": str(len(body)),
            **headers,
        }
        lines = [f"{request} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        raw.connection.sendall("\r\n".join(lines).encode() + (body if send else b""))
        return raw

    def until(self, text: bytes) -> bytes:
        """Return what was received once it holds a text, or the connection has ended."""
        while text not in self.received:
            data = self.connection.recv(1 << 16)
            if not data:
                break
            self.received += data
        return self.received

    def answer(self) -> dict[str, Any]:
        """Return the JSON of the answer, with HTTP's code as "code"; an empty one where there is none."""
        head, body = self._all()
        if not head:
            return {}
        location = [line for line in head.decode().split("\r\n") if line.startswith("Location: ")]
        answer = json.loads(body) if body else {}
        return {**answer, "code": int(head.split()[1]), **({"Location": location[0][10:]} if location else {})}

    def text(self) -> str:
        """Return the body of the answer."""
        return self._all()[1].decode()

    def _all(self) -> tuple[bytes, bytes]:
        with self.connection:
            received = self.until(b"no such text").removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        head, _, body = received.partition(b"\r\n\r\n")
        return head, body
