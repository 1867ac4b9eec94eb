import asyncio
import json
import resource
import socket
import time
import types
import unittest
from unittest import mock

import coordinator
import link
import server
from job import JobTest

TOKEN = "Authorization: Bearer of the job"


class Writer:
    """The end of a connection to which the server writes."""

    def __init__(self):
        self.said, self.closed = "", False

    def write(self, text):
        self.said += text.decode()

    async def drain(self):
        pass

    def close(self):
        self.closed = True


class Requests(JobTest):
    kind = coordinator.Coordinator

    def ask(self, method, *headers, target="/report", body="", ends=True):
        """Send a request, and return the status of the answer, its text, and whether the server has closed
        the connection before its peer has."""

        async def converse():
            reader, writer = asyncio.StreamReader(), Writer()
            reader.feed_data("\r\n".join((f"{method} {target} HTTP/1.1",) + headers + ("", body)).encode())
            conversation = asyncio.ensure_future(server.converse(self.job, "of the job", set(), reader, writer))
            while not conversation.done() and not writer.said:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            closed = writer.closed
            if ends:
                reader.feed_eof()
            await conversation
            return writer, closed

        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        writer, closed = loop.run_until_complete(converse())
        head, _, text = writer.said.partition("\r\n\r\n")
        return head.partition("\r\n")[0].partition(" ")[2], text, closed

    def post(self, report, *headers):
        body = json.dumps(report)
        return self.ask("POST", f"Content-Length: {len(body)}", *headers, body=body)

    def test_only_reports_with_the_token_of_the_job_are_taken(self):
        report = self.whole("dataloader", 1, "finished", done=True)
        for header in ("Accept: */*", "Authorization: of the job", "Authorization: Bearer of another job", "Authorization: Bearer "):
            with self.subTest(header):
                self.assertEqual(("401 Unauthorized", "the request does not have the token of the job", True), self.post(report, header))
        self.assertEqual({}, self.job.machine.roster.reports)
        status, text, closed = self.post(report, TOKEN)
        self.assertEqual(("200 OK", "done", False), (status, json.loads(text)["order"], closed))

    def test_a_call_closes_the_connections(self):
        """A replica notices that, and reports on another one."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server.serve(self.job, port, "of the job")
        connection, report = link.Link(f"127.0.0.1:{port}", "of the job"), self.whole("nn-worker", 0, "waiting")
        self.addCleanup(connection.close)
        for _ in range(2):
            self.assertEqual(("stop", False), (connection.ask(report)["order"], connection.called()))
            self.job.call()
            for _ in range(500):
                if not connection.called():
                    time.sleep(0.01)
            self.assertTrue(connection.called())

    def test_a_body_is_limited(self):
        for name, headers, want in (
            ("without the token, which comes first", ("Content-Length: 300000000",), "401 Unauthorized"),
            ("with the token", ("Content-Length: 300000000", TOKEN), "413 Payload Too Large"),
            ("one byte too long", (f"Content-Length: {server.LONGEST_BODY + 1}", TOKEN), "413 Payload Too Large"),
            ("of a question", ("Content-Length: 300000000",), "413 Payload Too Large"),
        ):
            with self.subTest(name):
                status, _, closed = self.ask("GET" if name == "of a question" else "POST", *headers)
                self.assertEqual((want, True), (status, closed))

    def test_a_slow_body_ends_its_connection(self):
        with mock.patch.object(server, "BODY_SECONDS", 0):
            self.assertEqual(("", "", True), self.ask("POST", "Content-Length: 9", TOKEN, body="{", ends=False))

    def test_a_report_that_is_not_whole_is_refused(self):
        for body in ("", "{", "[]", "7", "[" * 30000, "\xff"):
            with self.subTest(body[:9]):
                status, _, closed = self.ask("POST", f"Content-Length: {len(body.encode())}", TOKEN, body=body)
                self.assertEqual(("400 Bad Request", False), (status, closed))

    def test_an_error_of_the_coordinator_is_logged_and_not_blamed_on_its_peer(self):
        for method, broken in (("POST", "report"), ("GET", "status")):
            for error in (KeyError("role"), ValueError("attempt"), OSError("disk")):
                with self.subTest(method, error=error), mock.patch.object(self.job, broken, side_effect=error):
                    text = json.dumps(self.whole("dataloader", 0, "waiting"))
                    status, _, closed = self.ask(method, f"Content-Length: {len(text)}", TOKEN, body=text)
                    self.assertEqual(("500 Internal Server Error", False), (status, closed))
                    self.assertIn(repr(error), self.logged[-1])

    def test_only_the_completion_learns_the_end_for_good(self):
        self.report("dataloader", 1, "finished", done=True)
        for header, target, phase, asked in (
            ("Accept: */*", "/answer?run=1", "done", False),
            (TOKEN, "/status?run=1", "done", False),  # as a completion of an older release asks, which knows no answer
            (TOKEN, "/answer?run=2", "another run", False),
            (TOKEN, "/answer?run=1", "done", True),
        ):
            with self.subTest(header, target=target):
                status, text, closed = self.ask("GET", header, target=target)
                self.assertEqual(("200 OK", 1, phase, False), (status, json.loads(text)["version"], json.loads(text)["phase"], closed))
                self.assertEqual(asked, self.job.machine.completion_asked)


class OpenFiles(unittest.TestCase):
    def test_the_limit_is_raised_and_a_low_one_is_told(self):
        for most, replicas, want in (
            (1024, 960, ""),
            (1024, 961, "nn-worker 0 may open 1024 files, and 961 replicas need 1025: raise the limit of its node's container runtime"),
            (resource.RLIM_INFINITY, 100000, ""),
        ):
            with self.subTest(replicas):
                limits = types.SimpleNamespace(
                    RLIMIT_NOFILE=1, RLIM_INFINITY=resource.RLIM_INFINITY, getrlimit=mock.Mock(return_value=(64, most)), setrlimit=mock.Mock())
                with mock.patch.object(server, "resource", limits):
                    self.assertEqual(want, server.open_enough(replicas))
                limits.setrlimit.assert_called_once_with(1, (most, most))
