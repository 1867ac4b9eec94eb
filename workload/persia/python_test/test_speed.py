import socket
import types
import unittest
from unittest import mock

import speed


def report(figures, *older, node="", machine="kind"):
    return {"speed": {"node": node, "pod": f"pod on {node}", "address": "", "checks": [{"machine": machine, "figures": each} for each in (figures, *older)]}}


class Slow(unittest.TestCase):
    def test_below_60_percent_of_the_median_in_two_checks(self):
        fast, half, most, none = {"CPU": 10.0}, {"CPU": 5.0}, {"CPU": 7.0}, {}
        for name, servers, want in (
            ("one is slow", [(fast, fast), (half, half), (fast, fast)], {"embedding-ps-1": 0.5}),
            ("the better one of both counts", [(fast, fast), ({"CPU": 1.0}, half), (fast, fast)], {"embedding-ps-1": 0.5}),
            ("only in the last check", [(fast, fast), (half, fast), (fast, fast)], {}),
            ("only in the check before", [(fast, fast), (fast, half), (fast, fast)], {}),
            ("a substitute has one check", [(fast, fast), (half,), (fast, fast)], {}),
            ("not slow enough", [(fast, fast), (most, most), (fast, fast)], {}),
            ("most are slow", [(half, half), (half, half), (fast, fast)], {}),
            ("two, one much slower", [(fast, fast), ({"CPU": 1.0}, {"CPU": 1.0})], {"embedding-ps-1": 0.18}),
            ("nothing to compare with", [(half, half)], {}),
            ("a figure that others lack", [({"GPU": 0.0}, {"GPU": 0.0}), (none, none)], {}),
            ("wrong results", [({"GPU": 0.0}, {"GPU": 0.0}), ({"GPU": 9.0}, {"GPU": 9.0}), ({"GPU": 9.0}, {"GPU": 9.0})], {"embedding-ps-0": 0}),
            ("no check", [(), ()], {}),
        ):
            with self.subTest(name):
                reports = {("embedding-ps", number): report(*checks, node="a node") if checks else {"speed": {}} for number, checks in enumerate(servers)}
                self.assertEqual(want, {name: round(share, 2) for (name, _, _, _), share in speed.slow(reports).items()})

    def test_roles_and_kinds_of_machines_are_not_compared(self):
        fast, half = [{"CPU": 10.0}] * 2, [{"CPU": 5.0}] * 2
        reports = {("embedding-ps", number): report(*(fast if number < 3 else half), machine=str(number // 3)) for number in range(6)}
        reports.update({("nn-worker", number): report(*half) for number in range(3)})
        self.assertEqual({}, speed.slow(reports))

    def test_the_slow_side_of_a_network(self):
        """Replica 2 sends slowly, and replica 1 to it."""
        sends = {0: 100.0, 1: 9.0, 2: 8.0, 3: 100.0}
        reports = {("nn-worker", number): report({"network": rate}, {"network": rate}, node=f"node-{number}") for number, rate in sends.items()}
        self.assertEqual({("nn-worker-2", "node-2", "pod on node-2", "network"): 0.09}, speed.slow(reports))
        sends = {0: 8.0, 1: 100.0, 2: 9.0}
        self.assertEqual(["nn-worker-0"], [name for name, *_ in speed.slow({("nn-worker", number): report({"network": rate}, {"network": rate}) for number, rate in sends.items()})])


class Numbers:
    """A tensor, and what the GPU with it does wrong."""

    def __init__(self, where, value=1.0, wrong=()):
        self.where, self.value, self.wrong = where, value, wrong

    def to(self, where):
        return Numbers(where, self.value, self.wrong)

    def cpu(self):
        return Numbers("cpu", self.value + ("copies" in self.wrong), self.wrong)

    def mm(self, other):
        if "computes" in self.wrong:
            self.value += 1
        return Numbers(self.where, self.value * other.value)


class Measures(unittest.TestCase):
    def test_a_gpu(self):
        for wrong in (), ("copies",), ("computes",):
            with self.subTest(wrong):
                torch = types.SimpleNamespace(equal=lambda one, other: (one.where, one.value) == (other.where, other.value))
                self.assertEqual([not wrong] * 2, [figure > 0 for figure in speed.measure_gpu(torch, Numbers("cpu", wrong=wrong), "cuda:0", 0.001)])

    def test_a_machine(self):
        with mock.patch.object(speed, "rate", lambda _, *arguments, rate=speed.rate: rate(0, *arguments)):
            figures = speed.measure(speed.take())
        self.assertEqual(["CPU", "memory", "network"], sorted(figures))
        self.assertGreater(min(figures.values()), 0)

    def test_the_next_replica_is_gone(self):
        with socket.socket() as closed, mock.patch.object(speed, "rate", return_value=1):
            closed.bind(("127.0.0.1", 0))
            self.assertEqual(["CPU", "memory"], sorted(speed.measure("{}:{}".format(*closed.getsockname()))))
