"""The way from a replica to the coordinator.

It keeps its connection, so that a report costs no look-up of a name, and the address, so
that the job goes on while names cannot be looked up.
"""

import http.client
import json
import random
import socket
import threading
import time

RESOLVER = "/etc/resolv.conf"

# How often a name is looked up, in seconds: while the coordinator answers, to find the one
# that has taken its place, and while it does not.
LOOK_UP_SECONDS, LOST_LOOK_UP_SECONDS = 60, 5


# How long a replica waits for an answer, in seconds.
ANSWER_SECONDS = 5


class Link:
    """A connection to an address like HOST:PORT that is made again when it is lost."""

    def __init__(self, address, seconds=ANSWER_SECONDS):
        host, port = address.rsplit(":", 1)
        self.name, self.port, self.seconds = full_name(host), int(port), seconds
        self.address = None  # the one that the name last had
        self.known = threading.Event()  # set when there is one
        self.lost = threading.Event()  # set when it does not answer
        self.connection, self.connected = None, None
        threading.Thread(target=self.look_up, daemon=True).start()

    def look_up(self):
        """Keep the address that the name has. This may take long while it cannot be looked
        up, so it runs beside the reports."""
        while True:
            try:
                self.address = socket.getaddrinfo(self.name, self.port, type=socket.SOCK_STREAM)[0][4][0]
                self.known.set()
            except (OSError, UnicodeError):
                pass
            # Not all replicas at the same time.
            time.sleep(LOST_LOOK_UP_SECONDS * random.uniform(0.5, 1) if self.address else 0.5)
            if self.address:
                self.lost.wait(LOOK_UP_SECONDS * random.uniform(0.5, 1))
            self.lost.clear()

    def ask(self, question):
        """Send a question, and return the answer. It is an OSError, ValueError or
        HTTPException if there is none."""
        body = json.dumps(question).encode()
        if self.connected != self.address:
            self.close()
        kept = self.connection is not None
        try:
            return self.exchange(body)
        except (OSError, ValueError, http.client.HTTPException):
            self.close()
            if not kept:
                self.lost.set()
                raise
        # The connection may have been closed while it was idle.
        try:
            return self.exchange(body)
        except (OSError, ValueError, http.client.HTTPException):
            self.forget()
            raise

    def exchange(self, body):
        if not self.connection:
            if not self.known.wait(self.seconds):
                raise OSError(f"{self.name} cannot be looked up")
            self.connected = self.address
            self.connection = http.client.HTTPConnection(self.connected, self.port, timeout=self.seconds)
        self.connection.request("POST", "/report", body)
        return json.loads(self.connection.getresponse().read().decode())

    def forget(self):
        """Look the name up again: another has its address, or will."""
        self.close()
        self.lost.set()

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def full_name(host):
    """Return the name of a service as it is looked up in one step: with the cluster's domain
    and a final dot. The search list would have the resolver try other names first."""
    if not host.endswith(".svc"):
        return host
    try:
        with open(RESOLVER) as file:
            words = [line.split() for line in file]
    except OSError:
        return host
    for domain in (word for line in words if line[:1] == ["search"] for word in line[1:]):
        if domain.startswith("svc."):
            return host + domain[len("svc"):].rstrip(".") + "."
    return host
