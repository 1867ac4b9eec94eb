"""A whole job in one process: the coordinator, its replicas, and stand-ins for their commands."""

import errno
import json
import os
import signal
import types
from unittest import mock

import checks
import launch
import processes
from job import JobTest

EVERY = ("nn-worker-0", "dataloader-0", "embedding-worker-0", "embedding-ps-0")


class Turn(Exception):
    """Ends the turn of a replica."""


class Program(processes.Command):
    """Stands in for a command, which runs until the test or its replica ends it."""

    process = None

    def __init__(self, environment):
        self.environment = environment
        self.process, self.terminated, self.deadline, self.killed = None, False, float("inf"), None
        self.ends_with = None  # its status
        self.ends_at = None  # when it ends by itself
        self.on_signal = 143  # its status when the replica ends it, or None if it hangs
        self.saves = 0  # how many seconds it takes to end
        self.seconds = None  # how long it may take to end

    def status(self):
        if self.ends_with is None and self.ends_at is not None and processes.time.monotonic() >= self.ends_at:
            self.ends_with = self.on_signal
        return self.ends_with

    def running(self):
        return {7} if self.status() is None else set()

    def end(self, seconds):
        self.seconds = seconds
        super().end(seconds)

    def ended(self):
        return super().ended() or not self.running()

    def kill(self, pids, number):
        if self.on_signal is None:
            return
        if number == signal.SIGTERM:
            self.ends_at = processes.time.monotonic() + self.saves
        else:
            self.ends_with = 137 if self.status() is None else self.ends_with

    def hangs(self, _seconds):
        return "process 7 (train.py) hangs" if self.on_signal is None else ""


class ReplicasTest(JobTest):
    """The test decides what each command does, and turns the clock by five seconds, in which each replica
    reports once."""

    def setUp(self):
        super().setUp()
        vars(self.settings).update(
            coordinator="nn-worker-0:8886", token="", node="", nats=None, scratch=[], once=False, hang_seconds=10, nats_seconds=30, attempts=3,
            replicas={"dataloader": 1, "embedding-worker": 1, "embedding-ps": 1, "nn-worker": 1})
        self.replicas, self.started, self.exits, self.said = {}, {}, {}, []
        self.answer = lambda report: self.job.report(report)
        self.job = self.coordinator()
        test = self

        class Link:
            left = 0

            def __init__(self, *_):
                pass

            def ask(self, report):
                return json.loads(json.dumps(test.answer(report)))

            def leave(self):
                self.left += 1

            def called(self):
                return False

        clock = types.SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now)
        self.patch(launch, Link=Link, Command=self.command, log=self.said.append, time=clock)
        self.patch(processes, time=clock)
        self.patch(launch.Replica, wait=mock.Mock(side_effect=Turn))

    def patch(self, where, **names):
        patch = mock.patch.multiple(where, **names)
        patch.start()
        self.addCleanup(patch.stop)

    def command(self, arguments, environment):
        self.started.setdefault(arguments[0], []).append(Program(environment))
        return self.started[arguments[0]][-1]

    def pod(self, name, pod="", **changes):
        """Start a replica, in its pod or another one. nn-worker 0 brings its coordinator."""
        role, number = name.rsplit("-", 1)
        if name == EVERY[0] and name in self.started:
            self.job = self.coordinator(pod=pod or name)
        settings = dict(
            vars(self.settings), role=role, replica=int(number), pod=pod or name, idle_file=os.path.join(self.volume, name + ".idle"),
            progress_file=os.path.join(self.volume, name + ".progress"), **changes)
        self.replicas[name] = launch.Replica(types.SimpleNamespace(**settings), [name], self.job if name == EVERY[0] else None)
        return self.replicas[name]

    def begin(self, *names, **changes):
        """Start replicas, or one of each role, and wait until their commands run."""
        vars(self.settings).update(changes)
        if names or changes:
            roles = [name.rsplit("-", 1)[0] for name in names or EVERY]
            self.settings.replicas = {role: roles.count(role) for role in roles}
            self.job = self.coordinator()
        for name in names or EVERY:
            self.pod(name)
        self.until("running attempt 1")
        self.turn()

    def turn(self, times=1):
        for _ in range(times):
            self.now += 5
            for name, replica in list(self.replicas.items()):
                try:
                    self.exits[name] = replica.run()
                    del self.replicas[name]
                except Turn:
                    pass
                self.work()

    def sleep(self, seconds):
        self.now += seconds

    def until(self, words):
        for _ in range(100):
            # Servers start first.
            starts = words.startswith("running") and any(replica.state == "waiting" for replica in self.replicas.values())
            if words in self.job.status() and not starts:
                return
            self.turn()
        self.fail(f"{words!r} is not in {self.job.status()!r}")

    def end(self, name, status):
        self.started[name][-1].ends_with = status

    def evict(self, name):
        """Replace the pod of a replica, which may save first."""
        self.replicas[name].stopped = True
        while name in self.replicas:
            self.turn()
        self.pod(name, "another")

    def attempts(self, name):
        return " ".join(program.environment["PERSIA_ATTEMPT"] for program in self.started.get(name, []))

    def complete(self):
        for name in ("nn-worker-0", "dataloader-0"):
            self.end(name, 0)
        self.turn(2)
        return self.job.status()


class Attempts(ReplicasTest):
    def test_all_start_again_together_from_the_newest_checkpoint(self):
        for what, happens in (
            ("fails", lambda name: self.end(name, 7)),
            ("restarts in its pod", self.pod),
            ("is in another pod", lambda name: self.pod(name, "another")),
            ("is evicted", self.evict),
            ("ends early", lambda name: self.end(name, 0)),
        ):
            for name in EVERY if what != "ends early" else EVERY[2:]:
                with self.subTest(f"{name} {what}"):
                    self.setUp()
                    self.begin()
                    checkpoint, broken = self.write_complete("attempt-1/1"), self.write("attempt-1/2", "dense.pt")
                    happens(name)
                    self.until("running attempt 2")
                    self.turn()
                    for each in EVERY:
                        self.assertEqual("1 2", self.attempts(each))
                        first, second = (program.environment for program in self.started[each])
                        self.assertEqual((None, checkpoint), (first.get("PERSIA_RESUME_DIR"), second["PERSIA_RESUME_DIR"]))
                        self.assertEqual(os.path.join(self.root, "attempt-2"), second["PERSIA_CKPT_DIR"])
                    self.work()
                    self.assertFalse(os.path.exists(broken))
                    self.assertEqual("complete in attempt 2", self.complete())

    def test_who_asks_for_others_starts_when_they_are_there(self):
        for connects, name, first, last in (12, "after 12 s", 20, 35), (1000, "never", 125, 245):
            def deaf(replica, connects=connects):
                replica.nats_seen = self.now if self.now - replica.began > connects else None

            with self.subTest(name), mock.patch.object(launch.Replica, "deaf", deaf), mock.patch.object(checks, "reachable", lambda _: True):
                self.setUp()
                began = {}
                for each in EVERY:
                    self.pod(each, nats=("nats", 4222))
                while len(began) < len(EVERY) and self.now < 300:
                    self.turn()
                    began.update({each: self.now for each in self.started if each not in began})
                since = {each: began[each] - began["embedding-ps-0"] for each in EVERY}
                self.assertEqual({"embedding-ps-0": 0, "embedding-worker-0": first, "nn-worker-0": first, "dataloader-0": last}, since)

    def test_a_complete_job_starts_nothing_again(self):
        self.begin()
        self.complete()
        self.pod("dataloader-0", "another")
        self.pod("nn-worker-0", "another")
        self.turn(3)
        self.assertEqual("complete in attempt 1", self.job.status())
        self.assertEqual(1, self.replicas["dataloader-0"].attempt, "the next coordinator believes it by the attempt")
        self.assertEqual(["1"] * 4, [self.attempts(name) for name in EVERY])
        self.assertIn("the job is complete: still running", self.said)
        self.assertIsNone(self.started["embedding-ps-0"][0].status())

    def test_a_role_is_changed_pod_by_pod(self):
        self.begin("nn-worker-0", "dataloader-0", "embedding-ps-0", "embedding-ps-1")
        idle = os.path.join(self.volume, "embedding-ps-1.idle")
        self.assertFalse(os.path.exists(idle), "a server that runs is ready when it takes connections")
        self.pod("embedding-ps-1", "another", revision="2")
        self.until("replicas of embedding-ps are being replaced")
        self.turn(40)
        self.assertIn("waiting after attempt 1", self.job.status())
        self.assertTrue(os.path.exists(idle), "Kubernetes replaces the next one when this one is ready")
        self.pod("embedding-ps-0", "another", revision="2")
        self.until("running attempt 2")

    def test_a_job_fails_for_good_until_it_is_changed(self):
        self.begin()
        for attempt in "123":
            self.until("running attempt " + attempt)
            self.turn()
            self.end("nn-worker-0", 9)
            self.turn()
        self.turn(2)
        self.assertEqual("failed: 3 attempts failed without a new checkpoint, the last one because nn-worker 0: the command ended with status 9", self.job.status())
        self.assertEqual(143, self.started["embedding-ps-0"][-1].status())
        self.assertIn("the job has failed: idle. `pulumi up` with a change of the job starts it again", self.said)
        self.pod("embedding-ps-0", revision="2")
        self.until("running attempt 4")

    def test_nn_workers_end_before_the_dataloaders(self):
        self.begin(attempts=1, end_seconds=60)
        self.end("nn-worker-0", 0)
        self.turn(11)
        self.assertIn("running attempt 1", self.job.status())
        self.until("failed: 1 attempts failed without a new checkpoint, the last one because the nn-workers ended before the dataloaders had sent all data")

    def test_a_process_hangs(self):
        self.begin()
        program = self.started["embedding-ps-0"][0]
        program.on_signal = None
        self.end("nn-worker-0", 7)
        self.turn(40)
        self.assertIn("embedding-ps 0: process 7 (train.py) hangs", self.job.status())
        self.assertIn("process 7 (train.py) hangs", self.said)
        program.ends_with = 137
        self.until("running attempt 2")

    def test_the_last_attempt_leaves_no_progress_and_no_files_to_the_next(self):
        self.begin(stuck_seconds=60)
        self.replicas["nn-worker-0"].scratch = mock.Mock()
        open(self.replicas["nn-worker-0"].settings.progress_file, "w").close()
        self.until("no nn-worker has made progress for 60 s")
        self.until("running attempt 2")
        self.turn()
        self.assertIsNone(self.replicas["nn-worker-0"].progress())
        self.replicas["nn-worker-0"].scratch.clear.assert_called_once_with()


class Needs(ReplicasTest):
    def test_files(self):
        """Users may upload them after the pods have started."""
        for name, variable in zip(EVERY, ("PERSIA_NN_WORKER_ENTRY", "PERSIA_DATALOADER_ENTRY", "PERSIA_EMBEDDING_CONFIG", "PERSIA_GLOBAL_CONFIG")):
            with self.subTest(variable), mock.patch.dict(os.environ):
                self.setUp()
                file = os.path.join(self.volume, "file")
                for each in EVERY:
                    replica = self.pod(each)
                    if each == name:
                        replica.files.environment = {variable: file}
                self.turn(5)
                text = f"{variable} names {file}, which is not there: is it in the image, or uploaded to a volume that the role mounts?"
                self.assertIn(f"waiting after attempt 0 (the job starts): {name[:-2]} 0: {text}", self.job.status())
                self.assertIn(f"waiting for attempt 1: {text}", self.said)
                self.assertEqual([0, 0, 0, 1], list(self.replicas[name].values().values())[:4], "attempt, alive, finished, blocked")
                self.assertEqual({}, self.started)
                open(file, "w").close()
                self.until("running attempt 1")
                self.turn()
                self.assertEqual([1, 1, 0, 0], list(self.replicas[name].values().values())[:4], "attempt, alive, finished, blocked")

    def test_files_that_are_gone_when_the_attempt_starts(self):
        for each in EVERY:
            self.pod(each)
        self.turn()
        self.replicas["dataloader-0"].files.environment = {"PERSIA_GLOBAL_CONFIG": "/none"}
        self.until("waiting after attempt 1 (dataloader 0: PERSIA_GLOBAL_CONFIG names /none")

    def test_a_bucket_is_lost(self):
        """Its pod gets no other mount. The servers of a complete job keep the model in memory."""
        for complete, want in (True, "complete in attempt 1"), (False, "waiting after attempt 1 (embedding-ps 0: gcsfuse has ended, which mounted /checkpoints: delete the pod"):
            with self.subTest(complete=complete), mock.patch.object(checks, "lost_bucket", return_value=None) as lost:
                self.setUp()
                self.begin()
                if complete:
                    self.complete()
                lost.return_value = "/checkpoints"
                self.replicas["embedding-ps-0"].files.missing()
                lost.return_value = None
                self.turn(3)
                self.assertEqual(want, self.job.status()[: len(want)])
                self.assertEqual(complete, self.started["embedding-ps-0"][0].ends_with is None)

    def test_a_command_that_is_not_there(self):
        self.patch(launch, Command=mock.Mock(side_effect=FileNotFoundError(errno.ENOENT, "No such file or directory")))
        for each in EVERY:
            self.pod(each)
        self.until("embedding-ps 0: embedding-ps-0: No such file or directory")

    def test_gpus(self):
        """PyTorch may take longer to load than a replica may be silent."""
        asked = mock.Mock(command=Program({}), environment={"PERSIA_ATTEMPT": "1"}, found={})
        asked.waiting.return_value, asked.trouble.return_value = True, None
        self.write_complete("attempt-1/1")
        self.patch(checks, MachineCheck=lambda environment, _following, check=checks.MachineCheck: asked if environment["PERSIA_ATTEMPT"] == "2" else check(environment))
        for each in EVERY:
            self.pod(each)
        self.turn(40)
        self.assertIn("running attempt 2", self.job.status())
        self.assertEqual({}, self.started)
        asked.waiting.return_value, asked.trouble.return_value = False, "PyTorch sees 7 GPUs"
        self.turn(3)
        self.assertEqual("running attempt 3", self.job.status()[:17], self.said)
        self.assertEqual({}, self.job.record.read()["doubts"], "a broken GPU costs no checkpoint")

    def test_without_answers_the_check_of_the_gpus_ends_like_a_command(self):
        """Otherwise, the replica would start the command beside the next attempt, and would not wait between its reports."""
        asked = mock.Mock(command=Program({}), environment={}, found={})
        asked.waiting.side_effect, asked.trouble.return_value = lambda: asked.command.status() is None, None
        self.patch(checks, MachineCheck=lambda environment, _following: asked)
        for each in EVERY:
            self.pod(each)
        self.turn(5)
        self.assertEqual("running", self.replicas["embedding-ps-0"].state)
        self.assertEqual("waiting", self.replicas["nn-worker-0"].state, "nobody can ask the server yet")
        self.answer = mock.Mock(side_effect=OSError)
        self.turn(10)
        self.assertIn("attempt 1: failed: no answer from the coordinator for 40 s", self.said)
        self.assertEqual((143, {}), (asked.command.status(), self.started))
        replica = self.replicas["embedding-ps-0"]
        self.patch(launch, time=types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        began, asked.command.process = self.now, None
        WAIT(replica)
        self.assertAlmostEqual(1, self.now - began, delta=0.5)

    def test_nats(self):
        connected, reachable = set(), []
        self.patch(launch.processes, connected=lambda pids, port: connected & pids)
        self.patch(checks, reachable=lambda where: bool(reachable))
        for each in EVERY:
            self.pod(each, nats=("nats", 4222))
        self.turn(3)
        self.assertIn("dataloader 0: NATS does not answer", self.job.status())
        reachable.append(True)
        self.until("running attempt 1")
        self.turn(10)
        self.assertIn("running attempt 1", self.job.status(), "the script loads, and has no connection yet")
        connected.add(7)
        self.turn()
        self.assertIn("attempt 1: connected to NATS", self.said)
        connected.clear()
        with mock.patch.object(Program, "running", return_value={8}):
            self.turn(20)
            self.assertIn("running attempt 1", self.job.status(), "its script has ended, and the launcher needs no NATS")
            connected.add(8)
            self.turn()
            connected.clear()
            self.turn(6)
            self.assertIn("running attempt 1", self.job.status())
            self.turn()
        self.until("no connection to NATS for 30 s")


class Answers(ReplicasTest):
    def test_a_replica_that_is_cut_off_ends_its_command_before_it_counts_as_lost(self):
        """With all settings that are allowed. It may wait for an answer, then for a new connection, and for the answer there."""
        clock = types.SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now, sleep=self.sleep)
        for lost in (30, 31, 40, 60, 600):
            for beat in (1, 5, 600):
                for late in (0, 15):
                    with self.subTest(lost=lost, beat=beat, late=late):
                        self.setUp()
                        self.begin("nn-worker-0", "dataloader-0", lost_seconds=lost, beat_seconds=beat)
                        self.patch(launch, time=clock)
                        replica, ended = self.replicas["dataloader-0"], []
                        self.started["dataloader-0"][0].end = lambda seconds, ended=ended: ended.append(self.now)
                        seen, self.answer = self.now, mock.Mock(side_effect=lambda report, late=late: self.sleep(late) or os.stat("/none"))
                        while not ended:
                            replica.watch()
                            replica.report()
                            WAIT(replica)
                        self.assertLessEqual(ended[0] - seen, lost)

    def test_a_coordinator_that_has_a_successor_is_left(self):
        self.begin()
        replica = self.replicas["dataloader-0"]
        replica.attempt = 2
        for name, answer, left in (
            ("which knows it", {"order": "stop", "run": "1", "attempt": 2, "superseded": True}, True),
            ("which lacks the record", {"order": "start", "run": "1", "attempt": 1, "resume": None}, True),
            ("which waits for the last attempt", {"order": "stop", "run": "1", "attempt": 1}, True),
            ("a successor", {"order": "go", "run": "1", "attempt": 2, "silence": 30}, False),
        ):
            with self.subTest(name):
                before, answered, self.now = replica.link.left, replica.answered, self.now + 5
                self.answer = lambda report, answer=answer: answer
                self.assertEqual(left, replica.report() is None)
                self.assertEqual((left, left), (replica.link.left > before, replica.answered == answered))

    def test_replicas_of_two_runs(self):
        """While a job is changed to its next run, replicas of both report to the coordinators of both."""
        self.begin("nn-worker-0", "dataloader-0")
        self.assertEqual("complete in attempt 1", self.complete())
        self.assertEqual("another run", self.job.status("2"))
        self.pod("dataloader-0", "another", run="2")
        self.turn(2)
        self.assertIn("the coordinator at nn-worker-0:8886 is of another run", self.said)
        self.assertEqual(("1", 2), (self.attempts("dataloader-0"), self.replicas["dataloader-0"].link.left))
        self.replicas.clear()
        self.settings.state_directory, self.settings.run = self.folder(), "2"
        self.job = self.coordinator()
        self.replicas["dataloader-0"] = self.pod("dataloader-0", run="1")
        self.pod("nn-worker-0", "another")
        self.turn(3)
        self.assertIn("dataloader 0 is not there", self.job.status())

    def test_an_address_that_another_job_has_now(self):
        self.begin("nn-worker-0", "dataloader-0")
        self.pod("dataloader-0", coordinator="another:8886")
        self.turn()
        self.assertIn("the coordinator at another:8886 is of another run", self.said)

    def test_how_long_a_replica_waits_for_its_next_report(self):
        self.begin("nn-worker-0", "dataloader-0")
        replica, program = self.replicas["dataloader-0"], self.started["dataloader-0"][0]
        self.patch(launch, time=types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        replica.settings.beat_seconds = 600
        for name, change, seconds in (
            ("the last report took long", {"asked": self.now - 500}, 100), ("nothing happens", {}, 600), ("the command has ended", {"ends_with": 0}, 0),
            ("processes end", {"ending": True, "on_signal": None}, 600), ("processes have ended", {"ending": True}, 0),
            ("the coordinator does not answer", {"silence": 10}, 10), ("the pod ends", {"stopped": True}, 0),
            ("the coordinator calls", {"calls": True}, 0),
        ):
            with self.subTest(name):
                began = self.now
                vars(replica).update(asked=self.now, answered=self.now, silence=1000, ending=False, stopped=False)
                replica.link.called = lambda change=change: "calls" in change
                vars(program).update(ends_with=None, ends_at=None, on_signal=143, terminated=False)
                for what, value in change.items():
                    setattr(program if hasattr(program, what) else replica, what, value)
                replica.reported = replica.news()
                WAIT(replica)
                self.assertAlmostEqual(seconds, self.now - began, delta=0.5)


WAIT = launch.Replica.wait


class Ends(ReplicasTest):
    """Where a pod that exits with status 0 is not started again, nn-workers and dataloaders end with their job,
    and the coordinator after the completion has asked."""

    NAMES = ("nn-worker-0", "nn-worker-1", "dataloader-0", "embedding-ps-0")

    def test_the_end_of_a_job(self):
        for name, status, says in (
            ("complete", 0, "complete in attempt 1"),
            ("failed", 7, "failed: 1 attempts failed without a new checkpoint, the last one because nn-worker 1: the command ended with status 7"),
        ):
            for replaced in (False, True):
                with self.subTest(name, replaced=replaced):
                    self.setUp()
                    self.begin(*self.NAMES, once=True, attempts=1)
                    for each in self.NAMES[:3]:
                        self.end(each, status if each == "nn-worker-1" else 0)
                    self.turn(4)
                    self.assertEqual({"nn-worker-1": 0, "dataloader-0": 0}, self.exits)
                    if replaced:
                        # Without a volume, the others know.
                        self.replicas["nn-worker-0"].stopped = True
                        self.turn()
                        self.assertEqual(143, self.exits["nn-worker-0"], "Kubernetes does not replace a pod that exits with status 0")
                        self.settings.state_directory = self.folder()
                        self.pod("nn-worker-0", "another")
                        self.until(says)
                    self.turn(40)
                    self.assertEqual(["nn-worker-0", "embedding-ps-0"][::-1] if replaced else ["nn-worker-0", "embedding-ps-0"], list(self.replicas))
                    self.assertEqual(says, self.job.status("1", known=True))
                    self.turn()
                    self.assertEqual((0, {"embedding-ps-0"}), (self.exits["nn-worker-0"], set(self.replicas)))

    def test_a_job_whose_completion_cannot_run_releases_its_nodes(self):
        """What is recorded on a volume, it can ask the coordinator of a later JobSet. Nothing else knows how a job without one has ended."""
        for status, says in ((0, "complete in attempt 1"), (7, "failed: 1 attempts failed without a new checkpoint")):
            for volume in (True, False):
                with self.subTest(says, volume=volume):
                    self.setUp()
                    self.settings.checkpoints = self.root if volume else None
                    self.begin(*self.NAMES, once=True, attempts=1)
                    for each in self.NAMES[:3]:
                        self.end(each, status)
                    self.turn(120)
                    self.assertIn("nn-worker-0", self.replicas, "the completion has 10 minutes")
                    self.turn(20)
                    self.assertEqual(not volume, "nn-worker-0" in self.replicas)
                    if volume:
                        self.assertEqual(0, self.exits["nn-worker-0"])
                        self.pod("nn-worker-0", "another")
                        self.turn()
                    self.assertEqual(says, self.job.status("1", known=True)[:len(says)])

    def test_a_job_that_finds_another_ones_record_releases_its_nodes(self):
        os.makedirs(self.settings.state_directory)
        with open(self.job.record.file, "w") as file:
            json.dump({"job": "org/persia/staging/clicks"}, file)
        self.settings.once = True
        self.settings.replicas = {name.rsplit("-", 1)[0]: 1 for name in EVERY}
        self.job = self.coordinator()
        for name in EVERY:
            self.pod(name)
        self.until("failed: ")
        self.turn(20)
        self.assertIn("is the record of the job org/persia/staging/clicks", self.job.status("1", known=True))
        self.turn(20)
        self.assertEqual({"nn-worker-0": 0, "dataloader-0": 0}, self.exits)

    def test_a_pod_that_is_told_to_end(self):
        """It must not count as finished before its job is complete, and gets all of its time to save."""
        for name, once, runs, on_signal, status in (
            ("waits", True, False, None, 143), ("runs", True, True, 0, 143), ("fails", True, True, 7, 7),
            ("waits in a StatefulSet", False, False, None, 0), ("runs in a StatefulSet", False, True, 0, 0),
        ):
            with self.subTest(name):
                self.setUp()
                self.settings.once = once
                if runs:
                    self.begin()
                    self.started["dataloader-0"][0].on_signal = on_signal
                else:
                    self.pod("dataloader-0")
                    self.turn()
                self.replicas["dataloader-0"].stopped = True
                self.turn(2)
                self.assertEqual(status, self.exits["dataloader-0"])
                if runs:
                    self.assertEqual(float("inf"), self.started["dataloader-0"][0].seconds)
                    self.assertIn("dataloader 0 was told to end", self.job.status())
