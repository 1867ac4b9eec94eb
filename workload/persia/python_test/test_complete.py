import unittest

import complete

NOW = 1767226200  # 2026-01-01T00:10:00Z
RUNS = "running: 0 of 2 nn-workers and 0 of 1 dataloaders have finished"
SERVER = "clicks-embedding-ps-0"


def pod(phase, start="", end="", restarts=0, created="2026-01-01T00:09:30Z"):
    state = {}
    if start:
        state["running"] = {"startedAt": start}
    if end:
        state["terminated"] = {"finishedAt": end, "reason": "Error", "exitCode": 9}
    statuses = [{"state": state, "restartCount": restarts}]
    return {"metadata": {"creationTimestamp": created}, "status": {"phase": phase, "containerStatuses": statuses}}


RUNNING = pod("Running", start="2026-01-01T00:00:00Z")
OLD = pod("Running", start="2026-01-01T00:00:00Z", created="2026-01-01T00:07:00Z")
SUCCEEDED = pod("Succeeded", end="2026-01-01T01:00:00Z")
FAILED = pod("Failed", end="2026-01-01T00:30:00Z")
ENDED = {"nn-worker-0": SUCCEEDED, "nn-worker-1": SUCCEEDED, "dataloader-0": SUCCEEDED}


def pods(changes=None):
    """The running pods of a job, with changes. None is a pod that is not there."""
    names = ["nn-worker-0", "nn-worker-1", "dataloader-0", "embedding-worker-0", "embedding-ps-0"]
    changed = {**{name: RUNNING for name in names}, **(changes or {})}
    return {"clicks-" + name: of for name, of in changed.items() if of}


LOOKS = {
    "a training": ([{}, pods({"nn-worker-1": None}), pods(), pods({"dataloader-0": SUCCEEDED}), pods(ENDED)], [
        "waiting: clicks-dataloader-0 and 4 more are not there", "waiting: clicks-nn-worker-1 is not there", RUNS,
        "running: 0 of 2 nn-workers and 1 of 1 dataloaders have finished", "complete"]),
    "a pod that has finished and is gone": (
        [pods({"dataloader-0": SUCCEEDED}), pods({**ENDED, "dataloader-0": None})],
        ["running: 0 of 2 nn-workers and 1 of 1 dataloaders have finished", "complete"]),
    "an nn-worker that fails": ([pods(), pods({"nn-worker-1": FAILED})], [RUNS, "failed: clicks-nn-worker-1 failed: Error, status 9"]),
    "a dataloader that fails": ([pods({"dataloader-0": FAILED})], ["failed: clicks-dataloader-0 failed: Error, status 9"]),
    "an nn-worker that is gone": ([pods(), pods({"nn-worker-1": None})], [RUNS, "failed: clicks-nn-worker-1 is gone"]),
    "a server that is gone": ([pods(), pods({"embedding-ps-0": None})], [RUNS, f"failed: {SERVER} is gone"]),
    "an nn-worker that was gone before anybody looked": (
        [pods({"nn-worker-1": None, "dataloader-0": OLD})], ["failed: clicks-nn-worker-1 is gone, and was not seen to finish"]),
    "a server that was gone before anybody looked": ([pods({"embedding-ps-0": None, "dataloader-0": OLD})], [f"failed: {SERVER} is gone"]),
    "servers that go after the training": ([pods({**ENDED, "embedding-ps-0": None, "embedding-worker-0": OLD})], ["complete"]),
    "a server that fails before the nn-workers end": (
        [pods({**ENDED, "embedding-ps-0": FAILED})], [f"failed: {SERVER} ended before the nn-workers: Error, status 9"]),
    "a server that ends after the training": ([pods({**ENDED, "embedding-ps-0": pod("Failed", end="2026-01-01T02:00:00Z")})], ["complete"]),
    "a server that starts again in the training": (
        [pods({"embedding-ps-0": pod("Running", start="2026-01-01T00:05:00Z", restarts=1)})],
        [f"failed: {SERVER} was restarted after the nn-workers had started, and knows nothing of the training"]),
    "a server that starts again before the training": (
        [pods({"embedding-ps-0": pod("Running", start="2025-12-31T23:59:00Z", restarts=1)}), pods(ENDED)], [RUNS, "complete"]),
    "nn-workers that give up": ([pods({"nn-worker-0": SUCCEEDED, "nn-worker-1": SUCCEEDED})] * 2, [
        "running: 2 of 2 nn-workers and 0 of 1 dataloaders have finished",
        "failed: the nn-workers ended before the dataloaders had sent all data"]),
}


class Looks(unittest.TestCase):
    def test_a_job_is_complete_only_if_it_was_trained_to_the_end(self):
        replicas = {"dataloader": 1, "embedding-worker": 1, "embedding-ps": 1, "nn-worker": 2}
        for name, (looks, says) in LOOKS.items():
            with self.subTest(name):
                said = []
                job = complete.Job("clicks", replicas, 60, clock=lambda said=said: 100 * len(said), now=lambda: NOW)
                for look in looks:
                    said.append(job.look(look))
                self.assertEqual([text for _, text in said], says)
                ends = {"complete": complete.COMPLETE, "failed": complete.FAILED}
                self.assertEqual([status for status, _ in said], [ends.get(text.split(":")[0], complete.GOING_ON) for text in says])
