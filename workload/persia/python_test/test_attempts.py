"""No command of an attempt starts while a command of another attempt runs: a job whose pods are drained, lost, cut off and
replaced, in one process."""

import os
import random
import types

import checks
import launch
import record
from test_replicas import EVERY, Program, ReplicasTest, Turn

FIRST = EVERY[0]


class Pod:
    """A pod of a replica, with what happens to it."""

    def __init__(self, name, uid):
        self.name, self.uid = name, uid
        self.replica, self.job = None, None  # its launcher, and the coordinator of nn-worker 0
        self.programs = []  # the commands of its container
        self.killed_at = None  # when its grace period ends
        self.cut_until = 0  # until when it reaches no other pod
        self.blind_until = 0  # until when it cannot read or write the volume
        self.mute_until = 0  # until when it gets no answers, although its reports arrive
        self.at = self.failed = None  # the pod with whose coordinator it speaks, and the last one that did not answer


class Together(ReplicasTest):
    """The pods of a job. Each turn takes five seconds, and checks that all commands that run are of one attempt."""

    chance = None  # decides in which order the replicas report
    once = True  # whether JobSet makes a substitute while a pod ends, and not a StatefulSet after that

    def setUp(self):
        super().setUp()
        self.settings.once, self.settings.attempts, self.settings.nats_seconds = self.once, 1000, 1e9
        self.alive, self.later, self.number = [], [], 0
        self.answer = self.route
        self.patch(checks.Files, begin=lambda files: None, missing=lambda files: None)
        self.patch(os, fsync=lambda descriptor: None)
        self.patch(record, in_bucket=lambda folder: False)

    # What happens.

    def start(self, name, clock=0):
        """Start another pod of a replica, on a machine whose clock is wrong by some seconds."""
        self.number += 1
        pod = Pod(name, f"{name}/{self.number}")
        self.alive.append(pod)
        self.restart(pod)
        pod.replica.since += clock

    def restart(self, pod):
        """Start the container of a pod, after all its processes have ended."""
        role, number = pod.name.rsplit("-", 1)
        settings = dict(vars(self.settings), role=role, replica=int(number), pod=pod.uid)
        for file in ("idle", "progress"):
            settings[file + "_file"] = os.path.join(self.volume, f"{pod.uid.replace('/', '.')}.{file}")
        pod.programs, pod.job, pod.failed = [], None, None
        if pod.name == FIRST:
            pod.job = self.job = self.coordinator(pod=pod.uid)
            read = pod.job.record.read
            pod.job.record.read = lambda: self.read(pod, read)
        pod.replica = launch.Replica(types.SimpleNamespace(**settings), [pod.uid], pod.job)

    def read(self, pod, read):
        if self.now < pod.blind_until:
            raise OSError(5, "Input/output error")
        return read()

    def drain(self, name, grace=60, saves=0, clock=0):
        """Tell the newest pod of a replica to end, and have a substitute start."""
        pod = self.newest(name)
        if pod.killed_at is None:
            pod.replica.stop()
            pod.killed_at = self.now + grace
            for program in pod.programs:
                program.saves = saves
            if self.once:
                self.later.append((self.now + 10, lambda: self.start(name, clock)))

    def lose(self, name, seconds, volume=False):
        """Cut the node of a pod off from Kubernetes and from all other pods, perhaps also from the volume, until it dies."""
        pod = self.newest(name)
        if pod.killed_at is None:
            pod.killed_at = pod.cut_until = self.now + seconds
            pod.blind_until = 0 if volume else pod.killed_at
            if self.once:
                self.later.append((self.now + 55, lambda: self.start(name)))

    def kill(self, name):
        """Kill the container of a pod."""
        self.restart(self.newest(name))

    def newest(self, name):
        return [pod for pod in self.alive if pod.name == name][-1]

    def program(self, name):
        return self.newest(name).programs[-1]

    # How it goes on.

    def route(self, report):
        """Return the answer to a report, from the coordinator that its link reaches."""
        pod = self.pod_of(report["pod"])
        if pod.job:
            return pod.job.report(report)
        reached = [each for each in self.alive if each.job and self.now >= max(each.cut_until, pod.cut_until)]
        if pod.at not in reached:
            pod.at = next((each for each in reached if each is not pod.failed), reached[0] if reached else None)
        if not pod.at:
            raise OSError
        answer = pod.at.job.report(report)
        if self.now < pod.mute_until:
            raise OSError
        if answer["superseded"] or answer["attempt"] < pod.replica.attempt:
            pod.at, pod.failed = None, pod.at
        return answer

    def command(self, arguments, environment):
        program = Program(environment)
        program.saves = self.chance.choice((0, 0, 10, 1000)) if self.chance else 0
        self.pod_of(arguments[0]).programs.append(program)
        self.started.setdefault(arguments[0].split("/")[0], []).append(program)
        return program

    def pod_of(self, uid):
        return next(pod for pod in self.alive if pod.uid == uid)

    def turn(self, times=1):
        for _ in range(times):
            self.now += 5
            for when, happens in [each for each in self.later if each[0] <= self.now]:
                self.later.remove((when, happens))
                happens()
            for pod in self.chance.sample(self.alive, len(self.alive)) if self.chance else list(self.alive):
                self.take_turn(pod)
            running = sorted((each.environment["PERSIA_ATTEMPT"], pod.uid) for pod in self.alive for each in pod.programs if each.running())
            self.assertLessEqual(len({attempt for attempt, _ in running}), 1, "\n".join([f"at {self.now} s: {running}"] + self.logged))

    def take_turn(self, pod):
        if pod.killed_at is not None and self.now >= pod.killed_at:
            self.gone(pod)
            return
        try:
            status = pod.replica.run()
            if pod.job:
                pod.job.keeper.release(60)
            if pod.killed_at is not None or self.once and status == 0:
                self.gone(pod)
            else:
                self.restart(pod)
        except Turn:
            if pod.job:
                pod.job.keeper.keep()
                if self.now % 20 == 0 or pod.job.keeper.hurry.is_set():
                    pod.job.keeper.hurry.clear()
                    pod.job.keeper.hold()

    def gone(self, pod):
        self.alive.remove(pod)
        if not self.once:
            self.start(pod.name)

    def begin(self, *names):
        names = names or EVERY
        roles = [name.rsplit("-", 1)[0] for name in names]
        self.settings.replicas = {role: roles.count(role) for role in roles}
        for name in names:
            self.start(name)
        self.until("running attempt 1")
        self.turn()

    def until(self, words):
        for _ in range(200):
            if words in self.job.status():
                return
            self.turn()
        self.fail(f"{words!r} is not in {self.job.status()!r}")


class Samples(Together):
    def test_nn_worker_0_is_drained_with_another_pod(self):
        self.begin()
        trainer = self.program(FIRST)
        self.drain(FIRST, grace=300, saves=100)
        self.drain("dataloader-0")
        self.until("running attempt 2")
        self.turn()
        self.assertEqual(143, trainer.status(), "it had the time to save")

    def test_a_drained_nn_worker_has_its_time_to_save(self):
        for name in FIRST, "nn-worker-1":
            with self.subTest(name):
                self.setUp()
                self.begin(*EVERY, "nn-worker-1")
                trainer, server = self.program(name), self.program("embedding-ps-0")
                self.drain(name, grace=300, saves=200)
                while trainer.status() is None:
                    self.assertIsNone(server.status(), "nothing can be saved without it")
                    self.turn()
                self.assertEqual(143, trainer.status())
                self.until("running attempt 2")

    def test_the_time_to_save_ends_when_another_coordinator_has_the_run(self):
        self.begin()
        trainer, pod = self.program(FIRST), self.newest(FIRST)
        pod.blind_until = self.now + 12
        self.drain(FIRST, grace=600, saves=500)
        self.until("running attempt 2")
        self.turn()
        self.assertEqual(137, trainer.status())

    def test_a_drained_pod_that_is_cut_off(self):
        self.begin(*EVERY, "nn-worker-1")
        self.newest("nn-worker-1").cut_until = 1000
        self.drain("nn-worker-1", grace=600, saves=500)
        self.until("running attempt 2")
        self.turn()

    def test_a_replica_that_is_not_heard_of_after_its_start(self):
        for name in EVERY[1:]:
            with self.subTest(name):
                self.setUp()
                self.settings.replicas = {each[:-2]: 1 for each in EVERY}
                for each in EVERY:
                    self.start(each)
                while not self.newest(name).programs:
                    self.turn()
                self.newest(name).cut_until = self.now + 40
                self.turn()
                self.program(FIRST).ends_with = 7
                self.until("running attempt 2")

    def test_what_a_finished_command_leaves(self):
        self.begin()
        left = self.program("dataloader-0")
        left.ends_with, left.leaves = 0, True
        self.turn()
        self.program(FIRST).ends_with = 7
        self.until("running attempt 2")

    def test_a_coordinator_is_lost_while_it_waits(self):
        for again in self.kill, self.drain, lambda name: self.lose(name, 1000):
            with self.subTest(again):
                self.setUp()
                self.begin()
                self.program(FIRST).saves = 1000
                self.lose(FIRST, 1000)
                self.turn(13)
                again(FIRST)
                self.until("running attempt 2")
                self.turn()

    def test_a_coordinator_restarts_while_another_pod_is_lost(self):
        self.begin()
        self.program("dataloader-0").saves = 1000
        self.lose("dataloader-0", 1000)
        self.turn(9)
        self.kill(FIRST)
        self.until("running attempt 2")
        self.turn()

    def test_a_coordinator_without_its_volume(self):
        for seconds in (0, 50, 95):
            with self.subTest(seconds):
                self.setUp()
                self.begin()
                old = self.newest(FIRST)
                old.blind_until, old.programs[0].saves = 10 ** 6, 1000
                self.start(FIRST)
                self.turn(2)
                self.later.append((self.now + seconds, lambda old=old: vars(old).update(cut_until=10 ** 6)))
                self.until("running attempt 2")
                self.turn()

    def test_the_end_is_not_recorded_before_all_containers_restart(self):
        """Pods that have ended would not come back for the attempt that the next coordinator starts."""
        self.begin()
        with open(self.job.record.file, "w") as torn:
            torn.write('{"term')
        for name in FIRST, "dataloader-0":
            self.program(name).ends_with = 0
        self.until("finished in attempt 1")
        self.turn(10)
        for name in EVERY:
            self.kill(name)
        os.remove(self.job.record.file)
        self.until("running attempt")

    def test_a_substitute_with_a_slow_clock(self):
        self.begin()
        self.drain("dataloader-0", clock=-1000)
        began = self.now
        self.until("running attempt 2")
        self.assertLess(self.now - began, 30)


class Histories(Together):
    """Random faults. To see one history again, set its seed."""

    NAMES = (FIRST, "nn-worker-1", "dataloader-0", "embedding-ps-0")

    def test_random_histories(self):
        first = int(os.environ.get("SEED") or int.from_bytes(os.urandom(3), "big"))
        for seed in range(first, first + int(os.environ.get("HISTORIES", "40"))):
            with self.subTest(f"SEED={seed}"):
                self.chance = random.Random(seed)
                self.once = self.chance.random() < 0.7
                self.setUp()
                self.begin(*self.NAMES)
                for _ in range(self.chance.randint(5, 40)):
                    if self.chance.random() < 0.3:
                        self.fault()
                    self.turn()
                self.assertTrue(any(self.goes_on() for _ in range(300)), self.job.status() + "\n".join(self.logged))

    def fault(self):
        """Let something happen to a pod."""
        among = [name for name in self.NAMES if name in [pod.name for pod in self.alive]]
        name, chance = self.chance.choice(among + [FIRST] * (FIRST in among)), self.chance
        pod = self.newest(name)

        def end(status, leaves):
            if pod.programs and pod.programs[-1].ends_with is None:
                pod.programs[-1].ends_with, pod.programs[-1].leaves = status, leaves

        faults = [
            ("is drained", lambda: self.drain(name, chance.randint(10, 400), chance.choice((0, 50, 1000)), chance.choice((0, 0, -1000)))),
            ("is lost", lambda: self.lose(name, chance.randint(60, 400), chance.random() < 0.5)),
            ("is killed", lambda: self.kill(name)),
            ("is cut off", lambda: setattr(pod, "cut_until", self.now + chance.randint(5, 150))),
            ("is blind", lambda: setattr(pod, "blind_until", self.now + chance.randint(5, 150))),
            ("is mute", lambda: setattr(pod, "mute_until", self.now + chance.randint(5, 150))),
            ("fails", lambda: end(7, False)),
            ("leaves a process", lambda: end(0, chance.random() < 0.5)),
        ]
        what, happens = chance.choice(faults)
        self.logged.append(f"{self.now} s: {pod.uid} {what}")
        happens()

    def goes_on(self):
        self.turn()
        programs = [pod.programs[-1] for pod in self.alive if pod.programs]
        well = self.job.status().startswith(("running", "complete")) and not self.later
        return well and all((each.status() or 0) == 0 for each in programs)
