"""The replicas of a job, as they last reported.

Thousands of replicas report every few seconds, so a report costs the same in a job of any size. Only lists for people cost more.
"""

import collections
from typing import Any, Counter, Dict, Iterable, List, Optional, Set, Tuple

from record import Values

# The role and the number of a replica.
Key = Tuple[str, int]

NN_WORKER, DATALOADER, SERVER = "nn-worker", "dataloader", "embedding-ps"

STATES = ("waiting", "running", "finished", "failed")

# The values of a report, with their types.
VALUES = {
    "role": (str,), "replica": (int,), "coordinator": (str,), "run": (str,), "pod": (str,), "revision": (str,), "instance": (str,),
    "since": (int, float), "attempt": (int,), "state": (str,), "reason": (str,), "doubts": (bool,), "progress": (int, type(None)),
    "connected": (bool,), "blocked": (str,), "memory": (int,), "ending": (bool,), "hangs": (str,), "leaving": (bool,), "done": (bool,),
    "failed": (str,), "speed": (dict,),
}


class NotWhole(ValueError):
    """A report lacks something, or has something strange."""


def check(report: Any) -> None:
    """Raise NotWhole if a report is not a whole one, so that no part of it is taken."""
    if not isinstance(report, dict):
        raise NotWhole("a report must be an object")
    for name, types in VALUES.items():
        if name not in report:
            raise NotWhole(f"{name} is missing")
        # To Python, True is a number.
        if type(report[name]) not in types:
            raise NotWhole(f"{name} must not be {report[name]!r}")
    if report["state"] not in STATES:
        raise NotWhole(f"state must not be {report['state']!r}")


def name(key: Key) -> str:
    return f"{key[0]} {key[1]}"


def busy(report: Values) -> bool:
    """Report whether a replica may still run something: a command that has finished may have left processes, or one has begun."""
    return not report.get("leaving") and (report["state"] in ("running", "finished") or bool(report.get("ending") or report.get("begins")))


class Roster:
    """The last report of each replica, by role and number, with counts of them."""

    def __init__(self, replicas: Dict[str, int], lost_seconds: float) -> None:
        self.replicas, self.lost_seconds = replicas, lost_seconds
        self.total = sum(replicas.values())
        self.attempt = 0
        self.memory = 0  # the name of the memory that servers keep until the next attempt, or 0
        self.reports: Dict[Key, Values] = {}
        # The replicas that have not left, in the order of their last report; and the ones that have not finished the attempt.
        self.heard: Dict[Key, None] = collections.OrderedDict()
        self.working: Dict[Key, None] = collections.OrderedDict()
        self.busy: Set[Key] = set()
        self.blocked: Set[Key] = set()
        self.saving: Set[Key] = set()  # the ones whose command was told to end, and has not
        self.finished = {role: 0 for role in replicas}
        self.revisions: Dict[str, Counter[str]] = {role: collections.Counter() for role in replicas}

    def expects(self, key: Key) -> bool:
        return 0 <= key[1] < self.replicas.get(key[0], 0)

    def begin(self, attempt: int) -> None:
        """Begin an attempt, which no replica has finished."""
        self.attempt = attempt
        self.finished = {role: 0 for role in self.replicas}
        self.working = collections.OrderedDict.fromkeys(self.heard)

    def take(self, key: Key, report: Values, now: float) -> None:
        """Replace the last report of a replica."""
        before = self.reports.get(key)
        if before:
            self.finished[key[0]] -= self.has_finished(before)
            self.revisions[key[0]][before["revision"]] -= 1
        for among in (self.busy, self.blocked, self.saving):
            among.discard(key)
        for ordered in (self.heard, self.working):
            ordered.pop(key, None)
        report = self.reports[key] = dict(report, seen=now)
        finished = self.has_finished(report)
        self.finished[key[0]] += finished
        self.revisions[key[0]][report["revision"]] += 1
        if busy(report) and not self.keeps(report):
            self.busy.add(key)
        if report["blocked"]:
            self.blocked.add(key)
        if report["state"] == "running" and report["ending"]:
            self.saving.add(key)
        if not report.get("leaving"):
            self.heard[key] = None
            if not finished:
                self.working[key] = None

    def keep(self, memory: int) -> None:
        """Let the servers that have the memory of a name run on until the next attempt, or none with 0."""
        if memory != self.memory:
            self.memory = memory
            self.busy = {key for key, report in self.reports.items() if busy(report) and not self.keeps(report)}

    def keeps(self, report: Values) -> bool:
        """Report whether a server runs that keeps its memory until the next attempt."""
        return self.memory > 0 and report["memory"] == self.memory and report["state"] == "running" and not report["ending"]

    def without_memory(self, role: str) -> List[Key]:
        """Return the servers that have lost the memory that others keep."""
        return [key for key, report in self.reports.items() if key[0] == role and not self.keeps(report)]

    def starts(self, key: Key) -> str:
        """Note that a replica is told to start, until its next report: it may start the command and be lost before that. Return where
        the next replica of its role takes what is sent, or ""."""
        self.reports[key]["begins"] = True
        self.busy.add(key)
        following = (key[0], (key[1] + 1) % self.replicas[key[0]])
        return str(self.reports[following]["speed"]["address"]) if following in self.reports and following != key else ""

    def has_finished(self, report: Values) -> bool:
        return bool(report["state"] == "finished" and report["attempt"] == self.attempt)

    def ended(self, role: str) -> bool:
        """Report whether all replicas of a role have finished the attempt."""
        return self.finished[role] == self.replicas[role]

    def stale(self, among: Iterable[Key], now: float) -> Optional[Key]:
        """Return the first of some replicas, in the order of their last report, if it has not reported for too long, or None."""
        first = next(iter(among), None)
        return first if first is not None and now - self.reports[first]["seen"] > self.lost_seconds else None

    def ready(self, now: float) -> bool:
        """Report whether an attempt can start: every replica reports, runs nothing, and has all it needs, and no role is half replaced."""
        return (
            len(self.heard) == self.total and self.stale(self.heard, now) is None and not self.busy and not self.blocked
            and all(len(+revisions) <= 1 for revisions in self.revisions.values())
        )

    def missing(self, now: float) -> List[str]:
        """Return why the next attempt waits, for people."""
        waits = [self.wait((role, replica), now) for role in sorted(self.replicas) for replica in range(self.replicas[role])]
        replaced = [f"replicas of {role} are being replaced" for role, seen in self.revisions.items() if len(+seen) > 1]
        return [wait for wait in waits + replaced if wait]

    def wait(self, key: Key, now: float) -> Optional[str]:
        """Return why an attempt waits for a replica, or None."""
        report = self.reports.get(key)
        if not report or key not in self.heard or now - report["seen"] > self.lost_seconds:
            return f"{name(key)} is not there"
        if report.get("hangs"):
            return f"{name(key)}: {report['hangs']}"
        if key in self.busy:
            return f"{name(key)} still runs"
        if report["blocked"]:
            return f"{name(key)}: {report['blocked']}"
        return None
