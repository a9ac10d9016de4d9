"""An HTTP proxy before an S3 server that loses requests and replies as a test scripts it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Kind = Literal["request lost", "reply lost", "body cut", "silence", "slow down", "conflict"]
_HOP_HEADERS = frozenset({"transfer-encoding", "connection", "content-length"})


@dataclass(kw_only=True)
class FaultyProxy:
    """What happens to requests; a fault is used up by the first request that it fits."""

    server: str
    endpoint: str = ""
    keeps_conditions: bool = True
    seen: list[str] = field(default_factory=list)
    """Method and path of every request, in order."""
    _faults: list[tuple[Kind, str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    released: threading.Event = field(default_factory=threading.Event)

    def lose(self, kind: Kind, method: str, part: str, *, times: int = 1) -> None:
        """Let a fault happen to the next requests with a method and a part of their path."""
        self._faults += [(kind, method, part)] * times

    def take(self, method: str, path: str) -> Kind | None:
        """The fault of a request."""
        with self._lock:
            self.seen.append(f"{method} {path}")
            for fault in self._faults:
                if fault[1] == method and fault[2] in path:
                    self._faults.remove(fault)
                    return fault[0]
        return None


def _handler(proxy: FaultyProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = proxy.take(self.command, self.path)
            self.close_connection = True
            if fault == "request lost":
                return
            if fault in ("slow down", "conflict"):
                self._refuse(fault)
                return
            response, data = _forward(proxy, self, body)
            if fault == "silence":
                proxy.released.wait()
            if fault not in ("reply lost", "silence"):
                self._answer(response, data, cut=fault == "body cut")

        def _refuse(self, fault: str) -> None:
            status, code = (
                (503, "SlowDown") if fault == "slow down" else (409, "ConditionalRequestConflict")
            )
            data = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

        def _answer(self, response: HTTPResponse, data: bytes, *, cut: bool) -> None:
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _HOP_HEADERS:
                    self.send_header(name, value)
            length = response.getheader("Content-Length") if self.command == "HEAD" else len(data)
            self.send_header("Content-Length", str(length))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if cut else data)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815 (fixed names)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    return Handler


def _forward(
    proxy: FaultyProxy, request: BaseHTTPRequestHandler, body: bytes
) -> tuple[HTTPResponse, bytes]:
    headers = dict(request.headers.items())
    if not proxy.keeps_conditions:
        headers = {name: v for name, v in headers.items() if name.lower() != "if-none-match"}
    connection = HTTPConnection(urlsplit(proxy.server).netloc, timeout=60)
    try:
        connection.request(request.command, request.path, body=body, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@contextmanager
def running_proxy(server: str) -> Iterator[FaultyProxy]:
    """A proxy before the server at an endpoint."""
    proxy = FaultyProxy(server=server)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy)) as listener:
        proxy.endpoint = f"http://127.0.0.1:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.released.set()
            listener.shutdown()
            thread.join()
