"""A real S3 server process for tests, and what a process needs to talk to it."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

# Not a secret: the server takes any credentials. Tests of secrecy look for it where it must not be.
CANARY_SECRET = "canary-0123456789-never-to-be-written"  # noqa: S105
CANARY_KEY_ID = "CANARYKEYID0123456789"

# One request at a time: between moto's look whether an object exists and its storing of a new one
# another thread can store, and then two conditional writers win. (Seen within ten rounds of eight.)
_SERVER = """
import logging, sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

moto, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()

def application(environ, start_response):
    with one_at_a_time:
        return moto(environ, start_response)

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, application, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
server.shutdown()
"""
_numbers = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A server that is up."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach the server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": CANARY_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": CANARY_SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def new_bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"bucket-{next(_numbers)}"
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            return name


@contextmanager
def running_server() -> Iterator[S3Server]:
    """A server process; it ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        port = json.loads(process.stdout.readline())
        yield S3Server(endpoint=f"http://127.0.0.1:{port}")
    finally:
        process.communicate(timeout=60)
