import http.server
import os
import struct
import tempfile
import threading
import unittest
from unittest import mock

import memory

IDLE, LOADING = struct.pack("<I", 2), struct.pack("<If", 1, 0.5)


def number(embeddings):
    return b"\1" + struct.pack("<Q", embeddings)


class Loads(unittest.TestCase):
    """A server with three embeddings in two files, and what it answers: recorded from PERSIA 0.1.dev251."""

    def serve(self, states, answer=b"\1"):
        """Return the requests to a server that goes through some states, one for each time it is told to load, and its end."""
        told = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/load_web_api":
                    told.append(body)
                status, embeddings = states[min(len(told), len(states) - 1)]
                text = {"/load_web_api": answer, "/model_manager_status_web_api": status, "/get_embedding_size_web_api": number(embeddings)}[self.path]
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        folder = tempfile.mkdtemp()
        os.mkdir(os.path.join(folder, "s1"))
        for name in "ab":
            with open(os.path.join(folder, "s1", name + ".emb"), "wb") as file:
                file.write(struct.pack("<Q", 1 + (name == "b")) + bytes(100))
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with mock.patch.object(threading, "Thread"), mock.patch.object(Handler, "log_message"), mock.patch.multiple(memory, POLL_SECONDS=0.01, STILL_SECONDS=0.05):
            loading = memory.Loading(f"127.0.0.1:{server.server_port}", folder, 1, 7)
            loading.run()
        self.assertEqual({struct.pack("<I", len(folder)) + folder.encode()}, set(told))
        return len(told), loading.loaded, loading.trouble

    def test_a_server_loads_its_part(self):
        for name, states, answer, want in (
            ("at once", [(IDLE, 0), (IDLE, 3)], b"\1", (1, True, "")),
            ("a late thread has overwritten the last state", [(IDLE, 0), (LOADING, 3), (IDLE, 3)], b"\1", (2, True, "")),
            ("it never ends", [(IDLE, 0), (LOADING, 3)], b"\1", (4, False, "cannot be loaded: the server has 3 of 3 embeddings")),
            ("it refuses", [(IDLE, 0)], b"\0" + bytes(8) + b"no such folder", (1, False, "cannot be loaded: no such folder")),
        ):
            with self.subTest(name):
                told, loaded, trouble = self.serve(states, answer)
                self.assertEqual(want[:2], (told, loaded), trouble)
                self.assertIn(want[2], trouble)
