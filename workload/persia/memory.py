"""Has a server load its part of a checkpoint, beside others that have kept their memory.

The server answers on its own HTTP port, in the format of Rust's crate speedy: little endian, a text with its length in 4 bytes,
and a result with 1 before it, or 0 before an error (PERSIA 606cf75, embedding_parameter_service/mod.rs).
"""

import contextlib
import http.client
import os
import struct
import threading
import time

# The states of a server's model (persia-model-manager).
LOADING, IDLE = 1, 2

# How often the server is asked, how long its state may stay the same until it is told again to load, in seconds, and how often it
# is told. PERSIA's threads may overwrite the last state with an older one, and the server then waits for ever.
POLL_SECONDS, STILL_SECONDS, TRIES = 0.2, 30, 4


class Loading:
    """Loads the part of a server, in a thread. memory is the name of the memory that it has then."""

    def __init__(self, address, checkpoint, replica, memory):
        self.address, self.checkpoint, self.memory = address, checkpoint, memory
        self.part = os.path.join(checkpoint, f"s{replica}")
        self.loaded, self.trouble = False, ""
        self.stopped = False  # whether the server ends, and its port may get another one
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            self.load()
        except (OSError, ValueError, http.client.HTTPException, struct.error) as error:
            self.trouble = f"{self.part} cannot be loaded: {error}"

    def load(self):
        wanted, seen, since, tries = embeddings(self.part), None, 0.0, 0
        while not self.stopped:
            try:
                status, number = self.ask("model_manager_status"), self.ask("get_embedding_size")
            except ConnectionRefusedError:
                time.sleep(POLL_SECONDS)
                continue
            status, number = struct.unpack("<I", status[:4])[0], struct.unpack("<xQ", number)[0]
            if tries and (status, number) == (IDLE, wanted):
                self.loaded = True
                return
            if status not in (IDLE, LOADING):
                raise ValueError(f"the server's model is in state {status}")
            if (status, number) != seen:
                seen, since = (status, number), time.monotonic()
            if not tries or time.monotonic() - since > STILL_SECONDS:
                if tries == TRIES:
                    raise ValueError(f"the server has {number} of {wanted} embeddings")
                path = self.checkpoint.encode()
                answer = self.ask("load", struct.pack("<I", len(path)) + path)
                if answer[:1] != b"\1":
                    raise ValueError(answer[9:].decode(errors="replace"))
                tries, since = tries + 1, time.monotonic()
            time.sleep(POLL_SECONDS)

    def ask(self, what, body=b""):
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=60)) as connection:
            connection.request("POST", f"/{what}_web_api", body)
            return connection.getresponse().read()


def embeddings(part):
    """Return how many embeddings the files of a part have. Each file begins with its number."""
    number = 0
    for name in os.listdir(part):
        if name.endswith(".emb"):
            with open(os.path.join(part, name), "rb") as file:
                number += struct.unpack("<Q", file.read(8))[0]
    return number
