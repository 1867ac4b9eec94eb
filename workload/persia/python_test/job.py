"""A coordinator for tests: of a job with two replicas, with a clock that the test turns."""

import os
import shutil
import tempfile
import types
import unittest

import coordinator


class JobTest(unittest.TestCase):
    """A test of the coordinator of a job with one nn-worker and one dataloader, on a volume."""

    def setUp(self):
        self.now = 0
        self.volume = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.volume, ignore_errors=True)
        self.root = os.path.join(self.volume, "run")
        self.settings = types.SimpleNamespace(
            replicas={"nn-worker": 1, "dataloader": 1}, run="1", revision="1", pod="nn-worker", coordinator="", checkpoints=self.root,
            older=False, state_directory=os.path.join(self.volume, "state"), keep=2, attempts=5, beat_seconds=5, lost_seconds=60,
            end_seconds=1e9, stuck_seconds=0, backoff_seconds=0, stop_seconds=20, look_seconds=60,
        )
        self.logged = []
        self.job = self.coordinator()

    def coordinator(self, **changes):
        """Return another coordinator of the job."""
        settings = types.SimpleNamespace(**dict(vars(self.settings), **changes))
        return coordinator.Coordinator(settings, self.logged.append, lambda: self.now)

    def report(self, role, attempt, state, **more):
        """Have a replica report, and return its order, after the keeper has worked."""
        order = self.job.report(dict({
            "role": role, "replica": 0, "run": "1", "pod": role, "revision": "1", "instance": role, "attempt": attempt,
            "state": state, "reason": "", "progress": None, "blocked": "", "done": False,
        }, **more))
        self.job.keeper.keep()
        return order

    def all_report(self, attempt, state):
        for role in self.settings.replicas:
            self.report(role, attempt, state)
