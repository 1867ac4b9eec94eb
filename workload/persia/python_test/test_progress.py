from job import JobTest

RUNS = "running attempt 1: 0 of 1 nn-workers and 0 of 1 dataloaders have finished"
LAST = "running attempt 1: 1 of 1 nn-workers and 0 of 1 dataloaders have finished"
SILENT = "; no sign of progress for 60 s or longer"
ENDED = "waiting after attempt 1 (no nn-worker has made progress for 60 s): dataloader 0 still runs; nn-worker 0 still runs"


class Progress(JobTest):
    def test_an_attempt_without_progress_ends_if_its_script_has_reported_some(self):
        for name, stuck, reports in (
            ("a script that goes on", 60, (
                (1, "nn-worker", "running", 1, RUNS), (60, "nn-worker", "running", 2, RUNS),
                (119, "nn-worker", "running", 3, RUNS), (179, "dataloader", "running", None, RUNS))),
            ("a script that stops", 60, (
                (1, "nn-worker", "running", 1, RUNS), (1, "dataloader", "running", None, RUNS), (61, "nn-worker", "running", 1, RUNS), (62, "nn-worker", "running", 1, ENDED))),
            ("a script that stops before its first step", 60, (
                (1, "dataloader", "running", None, RUNS), (30, "nn-worker", "running", None, RUNS), (31, "nn-worker", "running", 1, RUNS), (92, "dataloader", "running", None, ENDED))),
            ("a script that reports nothing", 60, (
                (1, "nn-worker", "running", None, RUNS), (61, "nn-worker", "running", None, RUNS), *((at, "nn-worker", "running", None, RUNS + SILENT) for at in (62, 1000)))),
            ("no limit", 0, ((1, "nn-worker", "running", 1, RUNS), (10 ** 6, "nn-worker", "running", 1, RUNS))),
            ("an nn-worker that has finished, and a dataloader that goes on", 60, (
                (1, "nn-worker", "running", 1, RUNS), (1, "dataloader", "running", None, RUNS),
                (2, "nn-worker", "finished", 1, LAST), (1000, "dataloader", "running", None, LAST + SILENT))),
        ):
            with self.subTest(name):
                self.now, self.job = 0, self.coordinator(stuck_seconds=stuck, lost_seconds=1e9, state_directory=self.folder())
                self.all_report(0, "waiting")
                for self.now, role, state, progress, status in reports:
                    self.report(role, 1, state, progress=progress)
                    self.assertEqual(status, self.job.status())


class Metrics(JobTest):
    def test_the_metrics_of_a_job(self):
        """They are the attempt, failed, failures, stuck, and the metrics of the ledger. A script that never reports
        progress is stuck only while it waits."""
        trains, fails = [(1, "running", 0, [1, 0, 0, 0])], [
            (1, "failed", 61, [1, 0, 1, 1]), (1, "waiting", 0, [2, 0, 1, 0]), (2, "running", 61, [2, 0, 1, 0]), (2, "failed", 0, [2, 1, 2, 0])]
        for progress, reports in ((1, trains + [(1, "running", 61, [1, 0, 0, 1])]), (None, trains + [(1, "running", 61, [1, 0, 0, 0])] + fails)):
            self.job = self.coordinator(stuck_seconds=60, attempts=2, lost_seconds=1000, state_directory=self.folder(), checkpoints=self.folder())
            self.start()
            self.all_report(1, "running", progress=progress)
            for attempt, state, seconds, want in reports:
                with self.subTest(attempt=attempt, state=state, progress=progress):
                    self.report("dataloader", attempt, "waiting" if state == "waiting" else "running")
                    self.report("nn-worker", attempt, state, progress=progress)
                    self.now += seconds
                    self.assertEqual(want, list(self.job.metrics().values())[:4])
        self.job.machine.stand_down()
        self.assertEqual({}, self.job.metrics())

    def test_a_job_that_saves_elsewhere_cannot_be_seen_to_save_nothing(self):
        for changes, want in (({}, 0), ({"saves_elsewhere": True}, None), ({"checkpoints": None}, None)):
            with self.subTest(changes):
                self.assertEqual(want, self.coordinator(**changes).metrics().get("persia_job_unsaved_attempts"))


class Pauses(JobTest):
    def test_a_replica_that_comes_and_goes_costs_a_growing_pause_and_then_the_job(self):
        self.job = self.coordinator(backoff_seconds=10, attempts=3)
        lost = "dataloader 0 has not been heard of for 60 s"
        failed = f"failed: 3 attempts failed without a new checkpoint, the last one because {lost}"
        self.all_report(0, "waiting")
        for attempt, status in ((1, f"waiting after attempt 1 ({lost}): backing off"), (2, f"waiting after attempt 2 ({lost}): backing off"), (3, failed)):
            self.all_report(attempt, "running")
            self.now += 61
            self.report("nn-worker", attempt, "running")
            self.all_report(attempt, "waiting")
            self.assertEqual(status, self.job.status())
            self.now += 10 * 2 ** (attempt - 1)
            self.all_report(attempt, "waiting")
        self.assertEqual(["attempt 2 starts in 10 s or later", "attempt 3 starts in 20 s or later"], self.said(" starts in "))

    def test_a_pod_that_is_replaced_soon_again_costs_a_growing_pause_and_no_failure(self):
        self.job = self.coordinator(backoff_seconds=10, attempts=3)
        for pause, length in ((0, 1), (0, 1), (10, 1), (20, 400), (0, 1), (0, 1)):
            self.now += pause
            attempt = self.job.machine.attempt + 1
            self.all_report(self.job.machine.attempt, "waiting")
            self.all_report(attempt, "running")
            self.now += length
            self.report("dataloader", attempt, "running", leaving=True)
            self.report("nn-worker", attempt, "waiting")
        self.assertEqual(
            [f"attempt {attempt} starts in {pause} s or later" for attempt, pause in ((2, 0), (3, 10), (4, 20), (5, 0), (6, 0), (7, 10))],
            self.said(" starts in "))

    def test_replicas_report_soon_while_an_attempt_is_about_to_start(self):
        for starting, replicas, soon in (False, 2, None), (True, 2, 1), (True, 8000, 2):
            self.job.machine.starting, self.job.machine.roster.total = starting, replicas
            self.assertEqual(soon, self.job.machine.answer("stop")["soon"], (starting, replicas))
