"""A coordinator for tests: of a job with two replicas, with a clock that the test turns."""

import os
import shutil
import tempfile
import types
import unittest

import checkpoints
import coordinator
import events

CONTENT = {"dense.pt": "a model", "opt.pt": "an optimizer", "embedding_dump_done": "---\nnum_shards: 2\nnum_internal_shards: 2\n"}
FILES = ["s0/replica_0_shard_0.emb", "s0/replica_0_shard_1.emb", "s1/replica_1_shard_0.emb", "s1/replica_1_shard_1.emb", "dense.pt", *checkpoints.MARKS]

# A disk takes much longer to flush a file.
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def words(document):
    """Return the state of a job in a few words. internal/answer has those for people."""
    troubles, waits = document["troubles"], "; ".join(document["waits"]["first"])
    if document["waits"]["all"] > 3:
        waits += f" and {document['waits']['all'] - 3} more"
    reads, writes = (f", {times} times in a row" if times > 1 else "" for times in (troubles["reads"], troubles["writes"]))
    read = troubles["read"] and f"the checkpoints cannot be read: {troubles['read']}{reads}"
    write = troubles["write"] and f"this cannot be recorded: {troubles['write']}{writes}" or troubles["full"] and "the volume is full"
    finished = " and ".join(f"{document['finished'][role]} of {document['replicas'][role]} {role}s" for role in ("nn-worker", "dataloader"))
    attempt, doing = document["attempt"], "reading the checkpoints" if document["looks"] else "backing off"
    text = {
        "running": f"running attempt {attempt}: {finished} have finished",
        "waiting": f"waiting after attempt {attempt} ({read or document['reason']}): {waits or doing}",
        "recording": f"finished in attempt {attempt}" + ("" if read or write else f": recording that in {document['record']}"),
        "done": f"complete in attempt {attempt}", "failed": f"failed: {document['reason']}",
    }.get(document["phase"], document["phase"])
    stuck = troubles["stuck"] and f"no sign of progress for {troubles['stuck']:g} s or longer"
    hangs = document["hangs"] and f"a volume has not answered for {document['hangs']:.0f} s"
    more = (troubles["lacks"], stuck, hangs, document["phase"] == "running" and read, write) + tuple(troubles["strange"]["first"])
    return "; ".join(filter(None, (text,) + more))


class Coordinator(coordinator.Coordinator):
    """A coordinator that says in words how its job goes on."""

    def status(self, run="", known=False):
        return words(super().status(run, known))


class JobTest(unittest.TestCase):
    """A test of the coordinator of a job with one nn-worker and one dataloader, on a volume."""

    kind = Coordinator

    def setUp(self):
        self.now = 0
        self.volume = tempfile.mkdtemp(dir=MEMORY)
        self.addCleanup(shutil.rmtree, self.volume, ignore_errors=True)
        self.root = os.path.join(self.volume, "run")
        self.settings = types.SimpleNamespace(
            replicas={"nn-worker": 1, "dataloader": 1}, run="1", revision="1", pod="nn-worker", coordinator="", checkpoints=self.root,
            older=False, saves_elsewhere=False, state_directory=os.path.join(self.volume, "state"), job="org/persia/dev/clicks", keep=2,
            attempts=5, beat_seconds=5, lost_seconds=60, end_seconds=1e9, stuck_seconds=0, backoff_seconds=0, stop_seconds=20,
            look_seconds=60, once=False, partial=False,
        )
        self.logged = []
        self.written = 0
        self.job = self.coordinator()

    def coordinator(self, **changes):
        """Return another coordinator of the job."""
        settings = types.SimpleNamespace(**dict(vars(self.settings), **changes))
        return self.kind(settings, self.logged.append, lambda: self.now, lambda: self.now)

    def folder(self):
        """Return another folder of the volume."""
        return tempfile.mkdtemp(dir=self.volume)

    def said(self, words):
        """Return what the coordinators have logged with some words."""
        return [text for text in self.logged if words in text]

    def whole(self, role, attempt, state, **more):
        """Return a report of a replica."""
        return dict({
            "role": role, "replica": 0, "coordinator": "", "run": "1", "pod": role, "revision": "1", "instance": role, "since": 0,
            "attempt": attempt, "state": state, "reason": "", "doubts": True, "progress": None, "connected": state in ("running", "finished"), "blocked": "", "memory": 0, "ending": False,
            "hangs": "", "leaving": False, "done": False, "failed": "", "speed": {"node": "", "pod": "", "address": "", "checks": []},
        }, **more)

    def report(self, role, attempt, state, **more):
        """Have a replica report, and return its order, and do what is due then."""
        order = self.job.report(self.whole(role, attempt, state, **more))
        self.work()
        return order

    def work(self, job=None):
        """Have a coordinator do all that is due now on its volumes."""
        job = job or self.job
        job.happens(events.Ticked)
        queues = list(dict.fromkeys(job.queues.values()))
        while any(not actions.empty() for actions in queues):
            for actions in queues:
                if not actions.empty():
                    job.do(actions.get())

    def all_report(self, attempt, state, **more):
        for role in self.settings.replicas:
            self.report(role, attempt, state, **more)

    def write(self, name, *files):
        """Write files of a checkpoint, newer ones than those before, and return their folder."""
        self.written += 1
        folder = os.path.join(self.root, name)
        for file in files:
            path = os.path.join(folder, file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as opened:
                opened.write(CONTENT.get(file, "embeddings"))
            os.utime(path, (self.written, self.written))
        return folder

    def write_complete(self, name):
        return self.write(name, *FILES)

    def left(self):
        """Return the files of all checkpoints."""
        return sorted(os.path.relpath(os.path.join(folder, file), self.root) for folder, _, files in os.walk(self.root) for file in files)

    def start(self):
        """Have the next attempt start, and return the checkpoint that it starts from, or None."""
        self.all_report(self.job.machine.attempt, "waiting")
        self.assertEqual("start", self.job.machine.phase, self.job.status())
        return os.path.relpath(self.job.machine.resume, self.root) if self.job.machine.resume else None
