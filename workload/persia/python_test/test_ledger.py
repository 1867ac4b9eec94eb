import collections
import json
import os
import random
import unittest
from unittest import mock

import ledger
import simulation
from job import JobTest
from ledger import ACTIVITIES, AGAIN, COMMAND, LONGEST_GAP, LOST, REPLACED, SAVING, SILENT, STARTING, STUCK, TRAINING, WAITING

# How often replicas report, and the coordinator looks for checkpoints; and how long writing a checkpoint takes.
BEAT, WORK, WRITE = 5, 20, 30

INTERRUPTED = os.path.join(os.path.dirname(__file__), "../../../capacity/testdata/interrupted.json")

# The ways in which the test ends an attempt, and the causes under which the ledger counts them.
ENDS = {
    "a command fails": COMMAND, "a replica is silent": SILENT, "a pod leaves": REPLACED, "progress ends": STUCK,
    "the coordinator restarts": LOST, "the coordinator's node is lost": REPLACED, "the coordinator's pod leaves": REPLACED,
}


class Ledgers(JobTest):
    """The test decides what happens when, and keeps an account of that by its own clock."""

    def setUp(self):
        super().setUp()
        self.settings.lost_seconds, self.settings.stuck_seconds, self.settings.attempts, self.settings.look_seconds = 300, 1200, 1000, WORK
        self.job, self.account, self.causes = self.coordinator(), collections.Counter(), collections.Counter()
        self.reports_progress, self.progress, self.trained, self.unseen = True, 1, {}, 0

    def go(self, activity, seconds, state="running", trains=False, roles=("nn-worker", "dataloader")):
        """Have replicas report for some time. To save time, they rarely do where nothing happens soon."""
        begin, end = self.now, self.now + seconds
        while self.now < end:
            quiet = min(self.now - begin, end - self.now) > 60
            step = min(240, end - self.now - 60) if quiet else min(BEAT, end - self.now)
            self.now += step
            self.account[activity] += step
            self.progress = int(self.now) if trains else self.progress
            for role in roles:
                self.job.report(self.whole(role, self.job.machine.attempt, state, progress=self.progress if self.reports_progress else None))
            self.work()

    def live(self, pause, startup, until_checkpoints, then, end):
        """Live through an attempt, which trains until each of its checkpoints, and then until it ends."""
        self.work()
        self.go(WAITING, pause, roles=())
        while self.job.machine.phase != "start":
            self.go(WAITING, BEAT, "waiting")
        again = self.account[TRAINING] - self.trained.get(self.job.machine.resume, 0)
        self.account.update({TRAINING: -again, AGAIN: again})
        self.progress = 1
        self.go(STARTING, startup)
        for seconds in until_checkpoints:
            self.go(TRAINING, seconds, trains=True)
            self.go(SAVING, WRITE)
            self.written = self.now - 1
            folder = self.write_complete(f"attempt-{self.job.machine.attempt}/{self.now}")
            os.utime(os.path.join(folder, "dense.pt"), (self.now - WRITE,) * 2)
            self.trained[folder] = self.account[TRAINING]
        if end == "the job is complete":
            self.go(TRAINING, then, trains=True)
            self.all_report(self.job.machine.attempt, "finished")
            return
        self.go(AGAIN, then, trains=True)
        self.causes[ENDS[end]] += 1
        if end == "a command fails":
            self.report("nn-worker", self.job.machine.attempt, "failed")
        elif end == "a pod leaves":
            self.report("dataloader", self.job.machine.attempt, "running", leaving=True)
        elif end.startswith("the coordinator"):
            if end == "the coordinator's pod leaves":
                self.job.report(self.whole("nn-worker", self.job.machine.attempt, "running", leaving=True))
                self.job.release(0, 0)
                self.work()
            self.unseen += self.settings.lost_seconds / 3  # what a lost coordinator has not recorded counts as waiting
            self.settings.pod += "" if end == "the coordinator restarts" else "'"
            self.job = self.coordinator()
        activity, silent = AGAIN if until_checkpoints or then else STARTING, end == "a replica is silent"
        while self.job.machine.phase == "start":
            self.go(activity, BEAT, trains=silent and activity == AGAIN, roles=("nn-worker",) if silent else ("nn-worker", "dataloader"))

    def test_histories(self):
        """An attempt waits for a report, and starts until the next one with progress. What a lost coordinator has not recorded, 100 s here, counts as waiting."""
        ended = (0, 100, [1000], 500, "the job is complete")
        for name, reports_progress, attempts, seconds, causes in (
            ("no fault", True, [ended], (5, 105, 1495, 0, 30), {}),
            ("a script that reports no progress", False, [ended], (5, 0, 1600, 0, 30), {}),
            ("a checkpoint", True, [(0, 100, [1000], 500, "a command fails"), ended], (10, 210, 2490, 500, 60), {COMMAND: 1}),
            ("a checkpoint that only the next coordinator sees", True, [(0, 100, [1000], 0, "the coordinator's node is lost"), ended], (440, 210, 2400, 0, 60), {REPLACED: 1}),
        ):
            with self.subTest(name):
                self.setUp()
                self.reports_progress = reports_progress
                for attempt in attempts:
                    self.live(*attempt)
                self.assertEqual((seconds, causes, sum(seconds)), (tuple(self.job.machine.ledger.seconds().values()), dict(self.job.machine.ledger.causes), self.now))

    def test_what_an_older_checkpoint_lacks_is_trained_again(self):
        self.live(0, 100, [1000, 2000], 0, "a command fails")
        for _ in range(2):
            self.live(0, 100, [], 0, "a command fails")
            self.settings.pod += "'"
            self.job = self.coordinator()
        self.live(0, 100, [4000], 0, "the job is complete")
        self.assertEqual(1, len(self.said(" is not the newest checkpoint: 2000 s are trained again")), self.logged)
        seconds = self.job.machine.ledger.seconds()
        self.assertEqual((5000, 2000), (round(seconds[TRAINING], -2), round(seconds[AGAIN], -2)))

    def test_what_servers_keep_is_not_trained_again(self):
        now = 0
        account = ledger.Ledger(lambda: now, lambda: now)
        for again, kept in ((0, 100), (10, 190), (20, 280)):
            account.begin()
            now += 20
            account.prove(True)
            now += 100
            self.assertEqual((again, kept), (account.seconds()["training again"], account.seconds()["training"]))
            account.lose("lost replica")
            account.keep(now - 10)
        account.lose("lost replica")
        self.assertEqual({"waiting": 0, "starting": 60, "training": 0, "training again": 300, "saving": 0}, account.seconds(), "a full start")

    def test_what_the_gateway_gets(self):
        self.job.machine.ledger.wall = lambda: self.now - self.now // 1000  # clocks differ
        self.live(0, 100, [1000], 500, "a command fails")
        self.live(5, 100, [10000], 495, "a replica is silent")
        self.live(5, 100, [], 60, "the job is complete")
        metrics = self.job.metrics()
        self.assertEqual((60, 1), (metrics['persia_job_seconds{activity="saving"}'], metrics['persia_job_failures_total{cause="silent replica"}']))

    def test_what_alerts_no_longer_see(self):
        """What they do see is in alerts.py."""
        for end, stuck, ended in (("progress ends", 1, 1), ("a pod leaves", 0, 2)):
            self.live(0, 100, [1000], 0, end)
            self.assertEqual((stuck, ended), (self.job.metrics()["persia_job_stuck"], len([name for name in self.job.metrics() if "ended" in name])))
        self.now += 6 * 3600
        self.assertNotIn("ended", str(self.job.metrics()))

    def test_a_job_that_has_failed_does_not_wait(self):
        self.job.settings.attempts = 1
        self.live(0, 100, [], 500, "a command fails")
        before = self.job.machine.ledger.seconds()
        self.now += 5000
        self.work()
        self.assertEqual(before, self.job.machine.ledger.seconds())
        for self.settings.revision, waits in (("1", 0), ("2", 10)):
            self.job = self.coordinator()
            self.work()
            self.now += 10
            self.work()
            self.assertEqual(dict(before, waiting=before[WAITING] + waits), self.job.machine.ledger.seconds())

    def test_time_without_pods_counts_as_nothing(self):
        """While nn-worker 0 alone is lost, the machines of the others cost."""
        for name, since, clock, waited, away in (
            ("suspended", 3600, 0, 0, 3600),
            ("its first pods come before the coordinator's", 3000, 0, 600, 3000),
            ("nn-worker 0 is lost", -100, 0, 3600, 0),
            ("nn-worker 0 is lost, and its new node's clock is wrong", -100, 1e9, LONGEST_GAP, 0),
            ("suspended, and the clock of a new node is behind", -1e9, -1e9, 0, 0),
        ):
            for early in (True, False):
                with self.subTest(name, early=early):
                    self.setUp()
                    self.live(0, 100, [1000], 500, "a command fails")
                    before, left = self.job.machine.ledger.seconds(), self.now
                    self.now += 3600
                    self.job = self.coordinator()
                    self.job.machine.ledger.wall = lambda clock=clock: self.now + clock
                    report = self.whole("dataloader", 1, "waiting", since=left + since)
                    if early:
                        self.job.report(report)
                    self.work()
                    self.job.report(report)
                    found = self.job.machine.ledger.seconds()
                    self.assertEqual(dict(before, waiting=found[WAITING]), found)
                    self.assertAlmostEqual(waited, found[WAITING] - before[WAITING], delta=2 * WORK)
                    self.assertAlmostEqual(away, self.job.machine.ledger.values["away"], delta=59)

    def test_histories_of_faults(self):
        seed = int(os.environ.get("SEED") or int.from_bytes(os.urandom(4), "big"))
        print(f"seed {seed}")
        chance = random.Random(seed)
        for history in range(min(50, int(os.environ.get("HISTORIES", "300")) // 30)):
            self.setUp()
            for _ in range(chance.randint(2, 5)):
                trainings = [chance.uniform(300, 4000) for _ in range(chance.randint(0, 3))]
                self.live(chance.uniform(0, 600), chance.uniform(20, 400), trainings, chance.choice((0, chance.uniform(0, 1000))), chance.choice(list(ENDS)))
            self.live(0, 100, [15000], 100, "the job is complete")
            found = self.job.machine.ledger.seconds()
            self.assertEqual((self.causes, round(self.account[SAVING] / WRITE)), (self.job.machine.ledger.causes, self.job.machine.ledger.values["checkpoints"]), f"seed {seed}")
            for activity in ACTIVITIES:
                self.assertAlmostEqual(self.account[activity], found[activity], delta=self.now / 100 + self.unseen, msg=f"{activity} in history {history} of seed {seed}")


class TenInterruptions(unittest.TestCase):
    """Days of training, in which replicas are lost, and embeddings are spoiled once. The tests of the package capacity hold plans against
    their ledgers. UPDATE=1 writes them."""

    @unittest.skipIf("HISTORIES" not in os.environ or int(os.environ["HISTORIES"]) < 1000, "it takes a minute")
    def test_the_ledgers(self):
        ledgers = {}
        for recovery, between in ("full", 1080), ("partial", 4200):
            dice = random.Random(2)
            kinds = [dice.choice(["container restarts", "node is lost", "command fails"]) for _ in range(9)] + ["embeddings are spoiled"]
            with simulation.simulated(), mock.patch.object(simulation, "DENSE", 60):
                world = simulation.World(4, faults=[(dice.uniform(5000, 86_000), kind, dice.random(), 150) for kind in kinds])
                world.settings.partial, world.between, world.training = recovery == "partial", between, 86_400
                world.run(86_400)
            ledgers[recovery] = {part: world.volume.record[part] for part in ("ledger", "causes")}
        text = json.dumps(ledgers, indent=1) + "\n"
        if "UPDATE" in os.environ:
            with open(INTERRUPTED, "w") as file:
                file.write(text)
        with open(INTERRUPTED) as file:
            self.assertEqual(file.read(), text, "UPDATE=1 writes the file")
