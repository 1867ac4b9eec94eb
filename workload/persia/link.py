"""Connects a replica to the coordinator.

A link keeps its connection, so a report needs no DNS lookup, and the addresses, so the job goes on while DNS does not answer.

The coordinator's name can have two addresses: Kubernetes replaces the pod of a lost node, and lists the old pod until the node
is gone. The old coordinator may still run, so a link keeps a connection that works, and tries another address when it does not.
"""

import contextlib
import http.client
import json
import random
import re
import select
import socket
import threading
import time

# How often a link looks up the name, in seconds: while the coordinator answers, to find its successor, and while it does not.
LOOK_UP_SECONDS, LOST_LOOK_UP_SECONDS = 60, 2

# How long a replica waits for an answer, and for a connection, which nothing refuses where a pod has gone, in seconds.
ANSWER_SECONDS, CONNECT_SECONDS = 5, 1


class Refused(OSError):
    """The coordinator has answered that it does not take a report."""


class Link:
    """A connection to an address like HOST:PORT. It reconnects when the connection is lost."""

    def __init__(self, address, token, seconds=ANSWER_SECONDS):
        host, port = address.rsplit(":", 1)
        self.headers = {"Authorization": "Bearer " + token}
        self.name, self.port, self.seconds = full_name(host), int(port), seconds
        self.addresses = []  # the last ones that DNS returned
        self.known = threading.Event()  # set when there are some
        self.lost = threading.Event()  # set while none answers
        self.failed = set()  # the addresses that failed since the link last had tried all
        self.connection, self.connected = None, None
        threading.Thread(target=self.look_up, daemon=True).start()

    def look_up(self):
        """Look up the name again and again. While DNS does not answer, a lookup takes long, so this has its own thread."""
        while True:
            with contextlib.suppress(OSError, UnicodeError):
                found = socket.getaddrinfo(self.name, self.port, type=socket.SOCK_STREAM)
                self.addresses = [address[0] for *_, address in found]
                self.known.set()
            # Not all replicas at the same time.
            time.sleep(LOST_LOOK_UP_SECONDS * random.uniform(0.5, 1) if self.addresses else 0.5)
            if self.addresses:
                self.lost.wait(LOOK_UP_SECONDS * random.uniform(0.5, 1))

    def ask(self, question):
        """Send a question, and return the answer. Without one, raise an OSError, ValueError, or HTTPException."""
        body = json.dumps(question).encode()
        if self.connected not in self.addresses or self.called():
            self.close()
        kept = self.connection
        try:
            return self.exchange(body)
        except (OSError, ValueError, http.client.HTTPException) as error:
            if kept and isinstance(error, ConnectionError):
                self.close()  # a call has closed the connection meanwhile
                return self.ask(question)
            self.leave()
            raise

    def called(self):
        """Report whether the coordinator has closed the connection: it has ended, or has every replica report now."""
        poll = select.poll()  # select takes no descriptors above 1023, which nn-worker 0 may have
        if self.connection and self.connection.sock:
            poll.register(self.connection.sock, select.POLLIN)
        return bool(poll.poll(0))

    def exchange(self, body):
        if not self.connection:
            if not self.known.wait(self.seconds):
                raise OSError(f"{self.name} cannot be looked up")
            addresses = self.addresses
            if self.failed.issuperset(addresses):
                self.failed.clear()
            self.connected = next(address for address in addresses if address not in self.failed)
            self.connection = http.client.HTTPConnection(self.connected, self.port, timeout=CONNECT_SECONDS)
            self.connection.connect()
            self.connection.sock.settimeout(self.seconds)
        self.connection.request("POST", "/report", body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status != http.client.OK:
            raise Refused(f"{answer.status} {answer.reason} {text}".strip())
        values = json.loads(text)
        self.lost.clear()
        return values

    def leave(self):
        """Try another address next, and look up the name again."""
        self.close()
        if self.connected:
            self.failed.add(self.connected)
        self.lost.set()

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def full_name(host):
    """Return the name of a service with the cluster's domain and a final dot, which DNS resolves in one step."""
    with contextlib.suppress(OSError), open("/etc/resolv.conf") as file:
        domain = re.search(r"^search\b.*?[ \t]svc(\.\S+)", file.read(), re.MULTILINE)
        if domain and host.endswith(".svc"):
            return host + domain.group(1).rstrip(".") + "."
    return host
