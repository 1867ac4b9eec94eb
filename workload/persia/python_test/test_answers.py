"""Compares answers of coordinators with those that the tests of the package internal/answer read. UPDATE=1 writes them."""

import errno
import json
import os
from unittest import mock

import coordinator
from job import JobTest

FILE = os.path.join(os.path.dirname(__file__), "../testdata/answers.json")
BROKEN = OSError(errno.EIO, "Input/output error")


class Answers(JobTest):
    kind = coordinator.Coordinator

    def later(self, seconds, *states, progress=False):
        """Have the nn-worker and the dataloader report in their states for some seconds."""
        for _ in range(0, seconds, 50):
            self.now, attempt = self.now + min(seconds, 50), self.job.machine.attempt
            for role, state in zip(("nn-worker", "dataloader"), states):
                self.report(role, attempt, state, progress=self.now if progress else None)
            self.work()

    def test_the_examples(self):
        answers, both = {}, ("running", "running")

        def note(name, run=""):
            answers[name] = json.loads(json.dumps(self.job.status(run)).replace(self.volume, "/volume"))

        self.job = self.coordinator(replicas={"nn-worker": 1, "dataloader": 4, "embedding-ps": 1})
        self.job.machine.lacks = "nn-worker 0 may open 64 files"
        self.report("dataloader", 0, "waiting", blocked="NATS does not answer")
        note("replicas are missing")
        self.settings.stuck_seconds, self.settings.attempts, self.settings.backoff_seconds = 3600, 3, 100
        self.job = self.coordinator()
        self.start()
        self.later(900, *both, progress=True)
        self.write_complete("attempt-1/a")
        self.write("attempt-1/b", "dense.pt", "opt.pt", "embedding_dump_done", "s0/a.emb", "s1/a.emb")
        os.utime(os.path.join(self.root, "attempt-1/a/opt.pt"), (880, 880))
        self.later(100, *both, progress=True)
        note("it trains, and has a checkpoint and a folder that is none")
        with mock.patch("record.fill", side_effect=BROKEN), mock.patch("os.scandir", side_effect=BROKEN):
            self.later(200, "running", "finished", progress=True)
            note("nothing can be read or written")
        with mock.patch.object(self.job.record, "write", return_value=(True, None, False)):
            self.later(50, "running", "finished", progress=True)
            note("the volume is full")
        self.later(300, "running", "finished", progress=True)
        self.later(50, "failed", "finished")
        self.later(50, "waiting", "waiting")
        note("it backs off")
        with mock.patch("os.scandir", side_effect=BROKEN):
            self.later(100, "waiting", "waiting")
            note("the checkpoints cannot be read")
        for _ in range(20):
            self.later(50, *both if self.job.machine.phase == "start" else ("waiting", "waiting"))
        self.job.machine.scanning = self.now
        self.later(3650, *both)
        note("nothing moves, and the volume hangs")
        note("somebody asks for another run", "2")
        self.job.machine.scanning = None
        with mock.patch("record.fill", side_effect=BROKEN):
            self.later(50, "finished", "finished")
            note("its end cannot be recorded")
        self.job.machine.write_error = ""
        note("its end is being recorded")
        self.later(50)
        note("it is complete")
        self.job.machine.stand_down()
        note("another coordinator has it")
        second = os.path.join(self.volume, "second")
        self.job = self.coordinator(run="2", attempts=1, state_directory=second, checkpoints=second)
        for state in ("waiting", "failed"):
            for role in self.settings.replicas:
                self.report(role, self.job.machine.attempt, state, run="2", reason='it said "phase": "done", and more')
        note("it has failed")
        self.job = self.coordinator(run="3", partial=True, replicas={"nn-worker": 1, "dataloader": 1, "embedding-ps": 10}, state_directory=second + "3")
        self.job.machine.phase, self.job.machine.attempt, self.job.machine.resume = "start", 3, "/volume/run/attempt-1/a"
        self.job.machine.dense, self.job.machine.loads = "/volume/run/dense-1/000002-000400", {("embedding-ps", 7)}
        note("a server loads its part beside others")
        text = "{\n" + ",\n".join(json.dumps(name) + ": " + json.dumps(answer) for name, answer in answers.items()) + "\n}\n"
        if "UPDATE" in os.environ:
            with open(FILE, "w") as file:
                file.write(text)
        with open(FILE) as file:
            self.assertEqual(file.read(), text, "UPDATE=1 writes the file")
