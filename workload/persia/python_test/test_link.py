import fcntl
import http.client
import io
import json
import resource
import socket
import unittest
from unittest import mock

import link


class Connection:
    """A connection to a coordinator that answers, or fails with an error."""

    answers, opened = {}, []

    def __init__(self, address, _port, timeout):
        self.address, self.seconds, (self.sock, self.peer) = address, timeout, socket.socketpair()
        self.opened.append(address)

    def connect(self):
        self.connects = self.seconds

    def request(self, method, path, body, headers):
        self.sent = method, path, json.loads(body.decode()), headers

    def getresponse(self):
        answer = self.answers[self.address]
        if isinstance(answer, Exception):
            raise answer
        status, text = answer
        return mock.Mock(status=status, reason="", read=lambda: text.encode())

    def close(self):
        self.sock.close()
        self.peer.close()


class Links(unittest.TestCase):
    def setUp(self):
        Connection.answers, Connection.opened = {"a": (200, '{"order": "go"}'), "b": (200, '{"order": "stop"}')}, []
        for where, name, value in ((link.threading, "Thread", mock.Mock()), (http.client, "HTTPConnection", Connection)):
            patch = mock.patch.object(where, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.link = link.Link("clicks-nn-worker-0:8886", "of the job")
        self.link.addresses = ["a", "b"]
        self.link.known.set()
        self.addCleanup(self.link.close)

    def test_a_link_keeps_its_connection(self):
        for number in range(3):
            self.assertEqual({"order": "go"}, self.link.ask({"replica": number}))
        self.assertEqual(["a"], Connection.opened)
        self.assertEqual(("POST", "/report", {"replica": 2}, {"Authorization": "Bearer of the job"}), self.link.connection.sent)
        self.assertEqual((1, 5), (self.link.connection.connects, self.link.connection.sock.gettimeout()))

    def test_a_coordinator_that_closes_the_connection_calls(self):
        self.link.ask({})
        self.assertFalse(self.link.called())
        self.link.connection.peer.close()
        self.assertTrue(self.link.called())
        self.assertEqual({"order": "go"}, self.link.ask({}))
        self.assertEqual((["a", "a"], False, False), (Connection.opened, self.link.called(), self.link.lost.is_set()), "it is there")
        self.link.connection.peer.close()
        Connection.answers["a"] = ConnectionRefusedError()
        self.assertRaises(OSError, self.link.ask, {})
        self.assertFalse(self.link.called(), "nobody calls")

    def test_a_call_may_come_while_a_report_is_sent(self):
        self.link.ask({})
        answer = mock.Mock(status=200, read=lambda: b"{}")
        for error in (ConnectionResetError(), http.client.RemoteDisconnected()):
            with self.subTest(error), mock.patch.object(Connection, "getresponse", side_effect=[error, answer]):
                self.assertEqual(({}, set()), (self.link.ask({}), self.link.failed))
        with mock.patch.object(Connection, "getresponse", side_effect=[ConnectionResetError()] * 2):
            self.assertRaises(ConnectionResetError, self.link.ask, {})

    def test_the_process_of_a_coordinator_has_many_connections(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, most)
        self.link.ask({})
        near = self.link.connection.sock
        self.link.connection.sock = socket.socket(fileno=fcntl.fcntl(near, fcntl.F_DUPFD, 1100))
        near.close()
        self.assertFalse(self.link.called())
        self.link.connection.peer.close()
        self.assertTrue(self.link.called())

    def test_a_pod_that_has_gone_costs_one_wait(self):
        self.link.ask({})
        Connection.answers["a"] = socket.timeout()
        self.assertRaises(socket.timeout, self.link.ask, {})
        self.assertEqual({"order": "stop"}, self.link.ask({}))
        self.assertEqual(["a", "b"], Connection.opened)

    def test_another_address_is_tried_when_one_fails(self):
        for failure in (OSError(), http.client.IncompleteRead(b"half"), (200, "no JSON"), (503, "")):
            with self.subTest(failure):
                self.setUp()
                Connection.answers["a"] = failure
                self.assertRaises((OSError, ValueError, http.client.HTTPException), self.link.ask, {})
                self.assertTrue(self.link.lost.is_set(), "the name is looked up again")
                for _ in range(2):
                    self.assertEqual(({"order": "stop"}, False), (self.link.ask({}), self.link.lost.is_set()))
                self.link.leave()
                Connection.answers["a"] = (200, '{"order": "go"}')
                self.assertEqual({"order": "go"}, self.link.ask({}), "all have failed, so each may answer again")

    def test_an_address_that_is_no_longer_listed_is_left(self):
        self.link.ask({})
        self.link.addresses = ["b"]
        self.assertEqual({"order": "stop"}, self.link.ask({}))

    def test_a_refused_report_is_told(self):
        Connection.answers["a"] = (400, "attempt is missing")
        self.assertRaisesRegex(link.Refused, "400  attempt is missing", self.link.ask, {})

    def test_while_dns_does_not_answer_nothing_is_known(self):
        self.link.known.clear()
        self.link.seconds = 0
        self.assertRaisesRegex(OSError, "clicks-nn-worker-0 cannot be looked up", self.link.ask, {})

    def test_the_name_is_looked_up_again_and_again(self):
        """A link keeps the addresses while DNS does not answer."""
        seen, self.link.lost = [], mock.Mock()
        with mock.patch.object(link.socket, "getaddrinfo", side_effect=[[(0, 0, 0, "", ("b", 8886))], OSError(), KeyboardInterrupt()]), \
                mock.patch.object(link.time, "sleep", lambda _: seen.append(self.link.addresses)):
            self.assertRaises(KeyboardInterrupt, self.link.look_up)
        self.assertEqual(([["b"], ["b"]], 2), (seen, self.link.lost.wait.call_count))


class Names(unittest.TestCase):
    def test_the_name_of_a_service_is_looked_up_in_one_step(self):
        for text, host, want in (
            ("search persia.svc.cluster.test svc.cluster.test cluster.test\n", "a.b.persia.svc", "a.b.persia.svc.cluster.test."),
            ("nameserver 10.0.0.10\n", "a.b.persia.svc", "a.b.persia.svc"),
            ("search svc.cluster.test\n", "127.0.0.1", "127.0.0.1"),
        ):
            with self.subTest(text), mock.patch("builtins.open", lambda name, text=text: io.StringIO(text)):
                self.assertEqual(want, link.full_name(host))
