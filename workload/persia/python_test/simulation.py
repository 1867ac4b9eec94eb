"""Simulates whole jobs: the real launchers and the real machine of the coordinator, and stand-ins for everything between and
below them: pods, network, volume, clocks, and a training that reads checkpoints and writes them.

A history is decided by its seed. Faults are drawn before it begins, each with its time, so that a history that fails can be
shrunk to the faults that it needs. After each step, what must hold is checked; a Broken says what did not.

The simulation is not kinder than a cluster: two pods of a replica run side by side, a cut-off pod runs on, reports are lost and
repeated, writes take effect late, and the wall clocks of pods differ and jump. What it leaves out: files of checkpoints
(test_checkpoints.py), HTTP (test_server.py), and processes (test_processes.py).
"""

import contextlib
import heapq
import itertools
import random
import types
from unittest import mock

import checkpoints
import events
import launch
import machine
import processes
import record
from coordinator import RESULTS

# How long an attempt trains undisturbed in the simulation, and between two checkpoints, in seconds.
TRAINING, BETWEEN, DUMP = 200, 30, 6

# How many seconds are between two dense states, where servers keep their memory.
DENSE = 20

# How many failures one history in ten has, each some time after a new checkpoint.
SERIES = 7

# How long a script works or hangs on after SIGTERM, by its kind, in seconds.
ENDINGS = (0.5, 0.5, 0.5, 5, 15, 1e9)


class Broken(AssertionError):
    """Something that must hold does not."""


class Turn(Exception):
    """Ends the turn of a replica."""


class Command(processes.Command):
    """The command of a replica in one attempt: the real one, with simulated processes."""

    def __init__(self, arguments, environment, stdout=None):
        self.pod = WORLD.turn
        self.attempt = self.began = int(environment["PERSIA_ATTEMPT"])
        kept, resume = "PERSIA_KEEP_EMBEDDINGS" in environment, environment.get("PERSIA_RESUME_DIR")
        self.resume, self.dense = (None, resume) if kept else (resume, None)
        self.lineage = None if self.dense else self.attempt  # the full start from which a server has its memory
        self.terminated, self.deadline, self.killed = False, float("inf"), None
        self.exit, self.progress, self.dies, self.leaves, self.gone, self.frozen = None, None, None, 0.0, False, False
        self.ending, self.connects = WORLD.random.choice(WORLD.endings), WORLD.now + WORLD.calling.choice((0, 0, 3, 20))
        WORLD.begins(self)

    def status(self):
        self.settle()
        return self.exit

    def settle(self):
        """End if the time of that has come."""
        if self.exit is None and self.dies is not None and WORLD.now >= self.dies:
            self.end_with(143)

    def end_with(self, status):
        """Note how the command ends, and whether all others of its attempt still run."""
        self.exit = status
        others = [other for other in WORLD.trainings[self.attempt].commands.values() if other is not self]
        WORLD.ends.append((WORLD.now, self.pod.key, self.attempt, status, all(other.exit is None and not other.gone for other in others)))

    def alive(self):
        """Report whether a process of the command runs."""
        self.settle()
        return not self.gone and (self.exit is None or WORLD.now < self.leaves)

    def running(self):
        return {id(self)} if self.alive() else set()

    def kill(self, pids, number):
        if number == processes.signal.SIGTERM and self.exit is None:
            self.dies = WORLD.now + self.ending
        elif number == processes.signal.SIGKILL and WORLD.now >= self.pod.hangs_until:
            self.leaves = 0.0
            if self.exit is None:
                self.end_with(137)


class Loading:
    """A server gets its part of a checkpoint."""

    def __init__(self, _address, checkpoint, _replica, lineage):
        self.memory, self.loaded, self.trouble, self.stopped, self.pod = lineage, False, "", False, WORLD.turn
        if checkpoint != max(WORLD.volume.complete, key=WORLD.volume.complete.get):
            raise Broken(f"{self.pod} loads {checkpoint}, which is not the newest one")
        WORLD.after(WORLD.random.choice((1, 5, 20)), self.end)

    def end(self):
        if self.stopped or not self.pod.alive or self.pod.replica.loading is not self:
            return
        if WORLD.random.random() < 0.1:
            self.trouble = "the checkpoint cannot be read"
            WORLD.failures += 1
        else:
            self.loaded, self.pod.commands[-1].lineage = True, self.memory


class Link:
    """The connection of a replica to its coordinator, as link.py has it."""

    def __init__(self, address, token):
        self.local, self.pod = address.startswith("127.0.0.1"), WORLD.turn
        self.connected, self.failed = None, set()

    def ask(self, report):
        try:
            return self.exchange(report)
        except OSError:
            self.leave()
            raise

    def exchange(self, report):
        if self.local:
            return WORLD.deliver(self.pod, self.pod, report)
        addresses = WORLD.addresses()
        if self.connected not in addresses:
            self.connected = None
        if self.connected is None:
            if self.failed.issuperset(addresses):
                self.failed.clear()
            self.connected = next((pod for pod in addresses if pod not in self.failed), None)
        if self.connected is None:
            raise OSError
        return WORLD.deliver(self.pod, self.connected, report)

    def leave(self):
        if self.connected:
            self.failed.add(self.connected)
        self.connected = None


class Replica(launch.Replica):
    def progress(self):
        return self.command.progress if self.command and self.state == "running" and not self.check else None

    def connected(self):
        return self.state == "finished" or self.state == "running" and WORLD.now >= self.command.connects

    def mark(self):
        pass

    def wait(self):
        raise Turn


class Coordinator:
    """The shell around a machine: each action takes its time on the volume."""

    def __init__(self, pod):
        self.pod, self.dead = pod, False
        settings = pod.settings
        self.settings = settings
        self.machine = WORLD.machine(settings, f"{pod.uid}-{pod.restarts}", WORLD.now, pod.wall())
        self.store = Store(settings.job)
        self.tick()

    def tick(self):
        if not self.dead and self.pod.alive:
            self.happens(events.Ticked)
            WORLD.after(1, self.tick)

    def happens(self, kind, *values):
        answer = None
        before = self.machine.phase
        for action in self.machine.decide(WORLD.now, self.pod.wall(), kind(*values)):
            if isinstance(action, events.Answer):
                answer = action.values
            elif isinstance(action, events.Call):
                WORLD.calls(self.pod)
            elif isinstance(action, events.Log):
                WORLD.log(self.pod, action.text)
            else:
                WORLD.volume.work(self, action)
        if self.machine.phase != before:
            WORLD.changes_phase(self, before)
        return answer

    def stays(self):
        self.happens(events.Ticked)
        return self.machine.stays()


class Store(record.Record):
    """The record on the simulated volume."""

    def __init__(self, job):
        super().__init__("/state", job)

    def read(self):
        kept = WORLD.volume.record
        if kept == "torn":
            raise OSError("torn")
        return dict(kept)


class Volume:
    """The volume of the run, with the record and the checkpoints."""

    def __init__(self):
        self.record = {}
        self.highest = 0  # the highest term that the record had, and since when
        self.highest_since = self.renewed = 0.0
        self.complete = {}  # when each became complete, and its batches
        self.incomplete = {}
        self.dense = {}  # the full start of each dense state, when it was written, and its batches
        self.slow_until = self.broken_until = self.full_until = self.unseen_until = 0.0

    def work(self, coordinator, action):
        """Do an action of a coordinator, which takes a while."""
        pod = coordinator.pod
        took = WORLD.random.expovariate(20)
        if WORLD.now < max(self.slow_until, pod.slow_until):
            took = max(self.slow_until, pod.slow_until) - WORLD.now + WORLD.random.random()
        if isinstance(action, events.Scan):
            took += WORLD.random.choice((0.1, 0.1, 2, 30)) if WORLD.rough else 0.1
        try:
            self.fails(pod, action)
            early = self.begin(coordinator, action)
        except (OSError, record.Superseded) as error:
            WORLD.after(took, lambda error=error: self.result(coordinator, action, error))
            return
        WORLD.after(took, lambda: self.end(coordinator, action, early))

    def fails(self, pod, action):
        if WORLD.now < max(self.broken_until, pod.volume_until):
            raise OSError("the volume fails")
        if isinstance(action, events.Scan) and WORLD.now < self.unseen_until:
            raise OSError("the checkpoints cannot be listed")

    def begin(self, coordinator, action):
        if isinstance(action, events.Save):
            return coordinator.store.check(action.values, action.claimed)
        return None

    def end(self, coordinator, action, early):
        if coordinator.dead and not (isinstance(action, events.Save) and WORLD.random.random() < 0.5):
            return  # the process has ended; a write may be on its way
        try:
            self.fails(coordinator.pod, action)
            values = getattr(self, type(action).__name__.lower())(coordinator, action, early)
        except (OSError, record.Superseded) as error:
            self.result(coordinator, action, error)
        else:
            self.result(coordinator, action, None, *values)

    def result(self, coordinator, action, error, *values):
        if not coordinator.dead and coordinator.pod.alive:
            coordinator.happens(RESULTS[type(action)], error, *values)

    def load(self, coordinator, _action, _early):
        return (coordinator.store.read(),)

    def save(self, coordinator, action, older):
        # The file is replaced some time after it was checked, so a write that is held back may replace a newer one.
        old, new = self.record.get("pod", "-0"), action.values["pod"]
        takes = action.values["term"] > self.highest and new in self.record.get("pods", [])
        if takes and new != old and self.renewed > WORLD.now - WORLD.settings.lost_seconds and int(new.split("-")[-1]) < int(old.split("-")[-1]):
            raise Broken(f"the older pod {new} takes the run from {old}")
        self.record, self.renewed = dict(action.values), WORLD.now
        if action.values["term"] > self.highest:
            self.highest, self.highest_since = action.values["term"], WORLD.now
        return WORLD.now < self.full_until, older

    def scan(self, coordinator, action, _early):
        found = checkpoints.Found()
        for path, (attempt, when, _) in self.complete.items():
            found.complete.append(checkpoints.Checkpoint(attempt, when, path, False, DUMP, True))
        found.complete.sort(reverse=True)
        found.incomplete = list(self.incomplete)
        for path, (lineage, when, _) in self.dense.items():
            if lineage != action.values["memory"]:
                found.forgotten = [path.rsplit("/", 1)[0]]
            elif when > found.dense_time:
                found.dense, found.dense_time = path, when
        numbers = [attempt for attempt, *_ in (*self.complete.values(), *self.incomplete.values())]
        found.last_attempt = max(numbers, default=0)
        return found, coordinator.store.check(action.values, action.claimed)

    def remove(self, coordinator, action, _early):
        WORLD.removes(coordinator, action.folder)
        self.complete.pop(action.folder, None)
        self.incomplete.pop(action.folder, None)
        self.dense = {path: state for path, state in self.dense.items() if not path.startswith(action.folder + "/")}
        return ()


class Pod:
    """A pod of a replica, on a node of its own, and the containers that it has one after the other."""

    def __init__(self, key, revision):
        self.key, self.uid, self.revision = key, f"{key[0]}-{key[1]}-{next(WORLD.numbers)}", revision
        self.alive, self.cut_until, self.volume_until, self.slow_until, self.hangs_until = True, 0.0, 0.0, 0.0, 0.0
        self.offset = WORLD.random.uniform(-30, 30) if WORLD.rough else WORLD.behind
        WORLD.jumps += abs(self.offset)
        self.restarts, self.coordinator, self.replica, self.commands = 0, None, None, []
        self.replaced = False  # whether Kubernetes has made another one
        self.listed = True  # whether the service lists it
        self.kill_at = None
        WORLD.pods.append(self)
        self.begin()

    def __repr__(self):
        return self.uid

    def wall(self):
        return 1e9 + WORLD.now + self.offset

    def begin(self):
        """Start a container."""
        WORLD.turn = self
        self.settings = types.SimpleNamespace(**dict(
            vars(WORLD.settings), role=self.key[0], replica=self.key[1], pod=self.uid, revision=self.revision))
        if self.key == (machine.NN_WORKER, 0):
            self.coordinator = Coordinator(self)
        self.replica = Replica(self.settings, [self.uid], self.coordinator)
        self.turn_in(0)

    def turn_in(self, seconds):
        """Have the replica take its next turn after some seconds, and not before."""
        self.turns = turn = next(WORLD.order)
        replica = self.replica
        WORLD.after(seconds, lambda: self.turns == turn and self.turn_of(replica))

    def turn_of(self, replica):
        """Have the replica run until it waits for its next report."""
        if not self.alive or self.replica is not replica:
            return
        WORLD.turn = self
        if self.kill_at is not None and WORLD.now >= self.kill_at:
            self.vanish()
            return
        try:
            status = replica.run()
        except Turn:
            WORLD.check()
            # The report that it has started may be late.
            soon = replica.soon if replica.state == "waiting" or replica.unanswered() > 0 else None
            wait = min(WORLD.settings.beat_seconds, soon or WORLD.settings.beat_seconds) * (1 if WORLD.random.random() > 0.02 else WORLD.random.uniform(0.2, 2))
            # It reports at once, as launch.Replica.wait has it.
            if replica.ending or replica.stopped or replica.state == "running" and (
                    replica.command.status() is not None or replica.forsaken() and not replica.command.frozen):
                wait = min(wait, 1)
            self.turn_in(wait)
            return
        WORLD.log(self, f"exits with {status}")
        if WORLD.jobset and status == 0:
            self.replaced = True  # a Kubernetes Job has another pod only for one that has failed
        if self.coordinator:
            self.coordinator.happens(events.Leaving)
        WORLD.after(0.5, self.vanish)

    def restart(self):
        """End the container, with all of its processes, and start another one."""
        self.end_processes()
        self.restarts += 1
        if self.replica and self.replica.stopped:
            self.vanish()
        else:
            self.begin()

    def end_processes(self):
        if self.coordinator:
            self.coordinator.dead = True
            WORLD.calls(self)
        for command in self.commands:
            command.gone = True

    def vanish(self):
        """The pod is gone."""
        if self.alive:
            self.end_processes()
            self.alive = self.listed = False
            if not self.replaced and not WORLD.over:
                WORLD.after(WORLD.random.uniform(1, 15), lambda: WORLD.replace(self))

    def drain(self):
        """Kubernetes has the pod end, in its grace period."""
        if self.alive and self.kill_at is None:
            WORLD.turn = self
            self.kill_at = WORLD.now + WORLD.grace
            self.replica.stopped = True
            self.turn_in(0.2)
            if WORLD.jobset and not self.replaced:
                WORLD.after(WORLD.random.uniform(0.5, 5), lambda: WORLD.replace(self))
            WORLD.after(WORLD.grace, self.vanish)


class World:
    """A job, its cluster, and its volume."""

    def __init__(self, seed, kind=machine.Machine, faults=None, trace=None):
        global WORLD
        WORLD = self
        self.random, self.machine, self.trace = random.Random(seed), kind, trace
        self.calling, self.notices = random.Random(f"calls {seed}"), 0 if seed % 4 == 2 else 0.8
        self.now, self.heap, self.numbers, self.order = 0.0, [], itertools.count(1), itertools.count()
        self.rough = seed % 4 != 0  # a quarter of the histories has no lost reports and odd clocks
        self.jobset = bool(seed % 2)
        self.grace = self.random.choice((30, 60, 200))
        self.settings = types.SimpleNamespace(
            replicas={"nn-worker": 1, "dataloader": 1, "embedding-worker": 1, "embedding-ps": 2}, run="1", revision="1", coordinator="c:1", token="",
            checkpoints="/ckpt", older=False, state_directory="/state", job="a/b/c", keep=2, attempts=self.random.choice((3, 5)), beat_seconds=self.random.choice((5, 10)),
            lost_seconds=60, end_seconds=60, stuck_seconds=600, backoff_seconds=10, stop_seconds=20, look_seconds=15, hang_seconds=10, nats_seconds=30,
            partial=random.Random(f"partial {seed}").random() < 0.5, memory_seconds=200, server="", node="", nats=None, scratch=[], saves_elsewhere=False, once=self.jobset, idle_file="", progress_file=None)
        self.volume = Volume()
        self.pods, self.turn, self.trainings, self.starts, self.over, self.done = [], None, {}, {}, False, False
        self.endings, self.behind, self.ends, self.began = ENDINGS, 0.0, [], {}
        self.partial = 0  # how many attempts continued with the memory of servers
        self.jumps = 0.0  # how far clocks may have been off
        self.between = BETWEEN * (3 if self.settings.partial else 1)
        self.poisoned = None  # the full start whose embeddings are spoiled
        self.revision, self.suspended, self.last_fault, self.failures = "1", False, 0.0, 0
        self.faults = drawn(random.Random(f"faults {seed}")) if faults is None else faults
        self.training = TRAINING if len(self.faults) < SERIES else SERIES * TRAINING
        for fault in self.faults:
            self.at(fault[0], lambda fault=fault: self.break_something(*fault[1:]))
            self.last_fault = max(self.last_fault, fault[0])
        for role, count in self.settings.replicas.items():
            for number in range(count):
                self.after(self.random.uniform(0, 5), lambda key=(role, number): Pod(key, self.revision))

    def at(self, when, do):
        heapq.heappush(self.heap, (when, next(self.order), do))

    def after(self, seconds, do):
        self.at(self.now + seconds, do)

    def run(self, bound=3600):
        """Run until the job is complete, or for some seconds after the last fault. Raise a Broken if something is not as it
        must be."""
        self.after(5, self.train)
        while self.heap and not self.over:
            when, _, do = heapq.heappop(self.heap)
            if when > self.last_fault + bound:
                raise Broken(f"not complete {bound} s after the last fault: {self.state()}")
            self.now = when
            do()

    def state(self):
        return "; ".join(f"{each.pod}: {each.machine.claim} {each.machine.document('')}" for each in self.coordinators())

    def log(self, pod, text):
        if self.trace is not None:
            self.trace.append(f"{self.now:8.1f} {pod}: {text}")

    # The cluster.

    def coordinators(self):
        return [pod.coordinator for pod in self.pods if pod.alive and pod.coordinator and not pod.coordinator.dead]

    def addresses(self):
        return [pod for pod in self.pods if pod.listed and pod.key == (machine.NN_WORKER, 0)]

    def replace(self, pod):
        """Kubernetes makes another pod for a replica."""
        if not pod.replaced and not self.suspended:
            pod.replaced = True
            Pod(pod.key, self.revision)

    def deliver(self, sender, receiver, report):
        """Deliver a report, and return the answer. Raise an OSError if one of both is lost."""
        if not receiver.alive or not receiver.coordinator or receiver.coordinator.dead:
            raise OSError
        if sender is not receiver and self.now < max(sender.cut_until, receiver.cut_until):
            raise OSError
        lost = self.random.random() if self.rough and sender is not receiver else 1
        if lost < 0.005:
            raise OSError
        turn, answer = self.turn, receiver.coordinator.happens(events.Reported, dict(report))
        if lost < 0.01:
            raise OSError
        if lost < 0.015:
            answer = receiver.coordinator.happens(events.Reported, dict(report))
        self.turn = turn
        return dict(answer)

    def calls(self, coordinator):
        """The connections to the pod of a coordinator are closed, so replicas report at once. Some do not notice, and none of an
        older release."""
        for pod in self.pods:
            if pod.alive and pod is not coordinator and pod.replica.link.connected is coordinator and self.calling.random() < self.notices:
                pod.turn_in(self.calling.random())

    # The training.

    def begins(self, command):
        """A command starts: no command of another attempt may run, and each attempt starts from a complete checkpoint."""
        attempt, pod = command.attempt, command.pod
        self.log(pod, f"starts attempt {attempt} from {command.resume or command.dense}")
        lineage = self.volume.dense.get(command.dense, (None,))[0]
        for other in self.pods:
            for old in other.commands:
                kept = lineage and old.lineage == lineage and other.key[0] == machine.SERVER and other.key != pod.key
                if old.attempt != attempt and old.alive() and not old.frozen and not kept and self.now >= other.hangs_until:
                    raise Broken(f"attempt {attempt} starts in {pod} while attempt {old.attempt} runs in {other}")
        pod.commands = [old for old in pod.commands if old.alive()] + [command]
        if self.done:
            raise Broken(f"{pod} starts attempt {attempt} of a complete job")
        self.began.setdefault(attempt, self.now)
        if attempt not in self.trainings and command.dense:
            self.trainings[attempt] = self.continues(command)
        if attempt not in self.trainings:
            if command.resume is None and self.volume.complete:
                raise Broken(f"attempt {attempt} starts from the beginning, and there is {sorted(self.volume.complete)}")
            if command.resume is not None and command.resume not in self.volume.complete:
                raise Broken(f"attempt {attempt} starts from {command.resume}, which is not complete")
            batches = self.volume.complete[command.resume][2] if command.resume else 0
            self.trainings[attempt] = types.SimpleNamespace(
                resume=command.resume, commands={}, began=batches, batches=batches, dump=None, next=batches + self.between, lineage=attempt)
        training = self.trainings[attempt]
        if training.resume != (command.dense or command.resume):
            raise Broken(f"attempt {attempt} starts from {training.resume} and from {command.dense or command.resume}")
        training.commands[pod.key] = command
        began = [key for key, other in training.commands.items() if key[0] == machine.SERVER and other.began == attempt]
        if command.dense and len(began) == self.settings.replicas[machine.SERVER]:
            raise Broken(f"attempt {attempt} continues without a server that has kept its memory")

    def continues(self, command):
        """An attempt starts beside servers that have kept their memory. Return its training."""
        if command.dense not in self.volume.dense:
            raise Broken(f"attempt {command.attempt} starts from {command.dense}, which is not there")
        lineage, when, batches = self.volume.dense[command.dense]
        if any(other > when for _, other, _ in self.volume.complete.values()):
            raise Broken(f"attempt {command.attempt} starts from {command.dense}, and a checkpoint is newer")
        if any(other.dump and other.dump[0] in self.volume.incomplete for other in self.trainings.values()):
            raise Broken(f"attempt {command.attempt} continues, and a checkpoint was being written")
        before = self.trainings.get(command.attempt - 1)
        if before and before.resume == command.dense and before.batches == before.began:
            raise Broken(f"attempt {command.attempt} starts from {command.dense} again")
        self.partial += 1
        return types.SimpleNamespace(
            resume=command.dense, commands={}, began=batches, batches=batches, dump=None, next=batches + self.between, lineage=lineage)

    def joins(self, attempt, training):
        """Servers that have kept their memory take part in an attempt without a new command."""
        for pod in self.pods:
            command = pod.commands[-1] if pod.alive and pod.commands else None
            if command and pod.key[0] == machine.SERVER and pod.replica.attempt == attempt and pod.replica.state == "running" and command.alive():
                command.attempt, training.commands[pod.key] = attempt, command

    def train(self):
        """Train for five seconds."""
        self.after(5, self.train)
        for attempt, training in self.trainings.items():
            self.joins(attempt, training)
            if len(training.commands) < 5 or not all(command.exit is None and command.alive() for command in training.commands.values()):
                continue
            if any(self.now < command.pod.cut_until or command.dies is not None or command.frozen for command in training.commands.values()):
                continue
            for key, command in training.commands.items():
                if key[0] == machine.SERVER and command.lineage != training.lineage:
                    raise Broken(f"attempt {attempt} trains with the memory {training.lineage}, and {command.pod} has {command.lineage}")
            training.batches += 5
            if self.poisoned == training.lineage:
                self.fail_command(training.commands[machine.NN_WORKER, 0].pod, 0)
                continue  # it completes no checkpoint
            if self.settings.partial and training.batches % DENSE == 0 and self.now >= self.volume.full_until:
                states = sorted(path for path, state in self.volume.dense.items() if state[0] == training.lineage)
                for path in states[:-1]:
                    del self.volume.dense[path]
                self.volume.dense[f"/ckpt/dense-{training.lineage}/{training.batches:06d}"] = (training.lineage, 1e9 + self.now, training.batches)
            for command in training.commands.values():
                if command.pod.key[0] == machine.NN_WORKER:
                    command.progress = training.batches
            if training.dump:
                path, until = training.dump
                if self.now >= until:
                    self.volume.incomplete.pop(path, None)
                    self.volume.complete[path] = (attempt, 1e9 + self.now, training.batches)
                    training.dump, self.failures = None, 0
            elif training.batches >= training.next and self.now >= self.volume.full_until:
                path = f"/ckpt/attempt-{attempt}/{training.batches}"
                training.dump, training.next = (path, self.now + DUMP), training.batches + self.between
                self.volume.incomplete[path] = (attempt, 0, 0)
            if training.batches >= self.training:
                for command in training.commands.values():
                    if command.pod.key[0] in (machine.NN_WORKER, machine.DATALOADER):
                        command.exit = 0
                        command.leaves = self.now + self.random.choice((0, 0, 0, 30))

    # What must hold.

    def check(self):
        """Check what must hold at any time."""
        for coordinator in self.coordinators():
            seconds = coordinator.machine.ledger.seconds()
            # The clocks of two machines differ, and only they know how long no coordinator ran.
            if sum(seconds.values()) > self.now + 1 + self.jumps:
                raise Broken(f"the ledger of {coordinator.pod} has {sum(seconds.values()):.0f} s of {self.now:.0f}: {seconds}")

    def changes_phase(self, coordinator, before):
        decides = coordinator.machine
        self.log(coordinator.pod, f"from {before} to {decides.phase}")
        if decides.phase == machine.START:
            if self.starts.setdefault(decides.attempt, coordinator) is not coordinator:
                raise Broken(f"{coordinator.pod} starts attempt {decides.attempt}, which {self.starts[decides.attempt].pod} has started")
            if decides.values["term"] < self.volume.highest and self.now - self.volume.highest_since > 2:
                raise Broken(f"{coordinator.pod} starts attempt {decides.attempt}, and another coordinator has the claim")
        elif decides.phase == machine.DONE and before == machine.START:
            training = self.trainings.get(decides.attempt)
            if not training or training.batches < self.training:
                raise Broken(f"{coordinator.pod} calls attempt {decides.attempt} complete")
        elif decides.phase == machine.FAILED:
            if self.failures < self.settings.attempts:
                raise Broken(f"{coordinator.pod} gives up after {self.failures} failures: {decides.reason}")
            self.over = True
        if decides.phase == machine.DONE and decides.claim == machine.HELD:
            self.after(30, self.finish)

    def finish(self):
        """The job is over when that is recorded, whatever happens then."""
        if not self.done and isinstance(self.volume.record, dict) and self.volume.record.get("done"):
            self.done = True
            self.at(max(self.now, self.last_fault) + 10, lambda: self.break_something("container restarts 0", 0, 0))
            self.at(max(self.now, self.last_fault) + 150, lambda: vars(self).update(over=True))
        elif not self.done:
            self.after(30, self.finish)

    def removes(self, coordinator, folder):
        """A coordinator removes a checkpoint."""
        for other in self.coordinators():
            if other.machine.phase == machine.START and other.machine.claim == machine.HELD and folder == other.machine.resume:
                raise Broken(f"{coordinator.pod} removes {folder}, from which attempt {other.machine.attempt} runs")
        for training in self.trainings.values():
            running = any(command.exit is None and command.alive() and not command.frozen and self.now >= command.pod.hangs_until
                          for command in training.commands.values())
            if running and folder == f"/ckpt/dense-{training.lineage}":
                raise Broken(f"{coordinator.pod} removes {folder}, which is in use")
            if running and training.dump and training.dump[0] == folder:
                raise Broken(f"{coordinator.pod} removes {folder}, which is being written")
        if self.volume.complete.keys() == {folder}:
            raise Broken(f"{coordinator.pod} removes {folder}, the only complete checkpoint")

    # Faults.

    def break_something(self, kind, which, seconds):
        here = [pod for pod in self.pods if pod.alive and not pod.replaced]
        if not here:
            return
        pod = here[int(which * len(here))]
        if kind.endswith(" 0"):
            pod = next((pod for pod in here if pod.key == (machine.NN_WORKER, 0)), pod)
        self.log(pod, f"FAULT {kind} {seconds:.0f} s")
        FAULTS[kind](self, pod, seconds)

    def fail_command(self, pod, _seconds):
        for command in pod.commands:
            if command.exit is None:
                command.exit = 1
                self.failures += 1

    def poison(self, _pod, _seconds):
        """Embeddings are spoiled, which ends all attempts until a checkpoint is loaded."""
        self.poisoned = max((training.lineage for training in self.trainings.values()), default=None)

    def restart(self, pod, _seconds):
        self.failures += 1
        pod.restart()

    def lose(self, pod, seconds):
        """The node is lost: its pod runs on, reaches nobody for a while, and has a substitute."""
        self.failures += 1
        pod.cut_until = self.now + seconds
        if self.random.random() < 0.5:
            pod.volume_until = pod.cut_until
        self.after(self.random.uniform(1, 60), lambda: pod.alive and self.replace(pod))
        if self.random.random() < 0.3:
            self.after(self.random.uniform(0, 2 * seconds), lambda: pod.alive and self.restart(pod, 0))
        # A node whose kubelet has ended may keep its pods for ever.
        if self.random.random() < 0.7:
            self.after(seconds + self.random.uniform(0, 60), pod.vanish)

    def cut(self, pod, seconds):
        self.failures += 1
        pod.cut_until = self.now + seconds

    def drain_two(self, pod, _seconds):
        pod.drain()
        first = next((other for other in self.pods if other.alive and not other.replaced and other.key == (machine.NN_WORKER, 0)), None)
        if first:
            first.drain()

    def suspend(self, _pod, seconds):
        self.suspended = True
        for pod in self.pods:
            pod.drain()
        self.after(seconds, self.resume)

    def resume(self):
        self.suspended = False
        for key in [(role, number) for role, count in self.settings.replicas.items() for number in range(count)]:
            if not any(pod.key == key and pod.alive and pod.kill_at is None for pod in self.pods):
                for pod in self.pods:
                    pod.replaced = pod.replaced or pod.key == key
                Pod(key, self.revision)

    def change(self, _pod, _seconds):
        """The image of the job changes: Kubernetes replaces its pods."""
        self.revision = str(int(self.revision) + 1)
        for pod in list(self.pods):
            self.after(self.random.uniform(0, 20), pod.drain)

    def clock(self, pod, seconds):
        pod.offset += seconds * self.random.choice((-10, 10))
        self.jumps += seconds * 20

    def restart_all(self, _pod, _seconds):
        for pod in list(self.pods):
            if pod.alive:
                pod.restart()

    def end_commands(self, _pod, _seconds):
        """The script has trained on all data."""
        for training in self.trainings.values():
            training.batches = self.training

    def die_while_slow(self, pod, seconds):
        """A write of the coordinator is on its way when its container ends."""
        self.fail_command(pod, 0)
        for when in range(15, 60, 3):
            self.after(when, lambda: vars(self.volume).update(slow_until=self.now + 2.5))
        self.after(15 + 45 * self.random.random(), lambda: pod.alive and self.restart(pod, 0))

    def hide(self, pod, seconds):
        """The checkpoints cannot be listed while the next attempt wants to start."""
        self.volume.unseen_until = self.now + seconds
        self.fail_command(pod, seconds)

    def come_back(self, _pod, _seconds):
        """A folder of a later attempt comes back from a backup, half."""
        self.volume.incomplete[f"/ckpt/attempt-{max(self.trainings, default=0) + 2}/7"] = (max(self.trainings, default=0) + 2, 0, 0)


FAULTS = {
    "command fails": World.fail_command, "container restarts": World.restart, "container restarts 0": World.restart,
    "node is lost": World.lose, "node is lost 0": World.lose, "cut off": World.cut, "cut off 0": World.cut,
    "drained": lambda world, pod, seconds: pod.drain(), "drained 0": lambda world, pod, seconds: pod.drain(),
    "two drained": World.drain_two, "suspended": World.suspend, "changed": World.change,
    "slow volume": lambda world, pod, seconds: vars(world.volume).update(slow_until=world.now + seconds),
    "slow volume, and a restart 0": World.die_while_slow,
    "slow volume of one": lambda world, pod, seconds: vars(pod).update(slow_until=world.now + seconds),
    "broken volume": lambda world, pod, seconds: vars(world.volume).update(broken_until=world.now + seconds),
    "broken volume 0": lambda world, pod, seconds: vars(pod).update(volume_until=world.now + seconds),
    "unseen checkpoints": World.hide,
    "full volume": lambda world, pod, seconds: vars(world.volume).update(full_until=world.now + seconds),
    "hangs": lambda world, pod, seconds: vars(pod).update(hangs_until=world.now + seconds),
    "embeddings are spoiled": World.poison, "clock jumps 0": World.clock, "folder comes back": World.come_back,
}

WORLD = None  # the one that is simulated now


# What only people or scenes do.
DRAWN = sorted(FAULTS)
FAULTS.update({
    "torn record": lambda world, pod, seconds: vars(world.volume).update(record="torn"),
    "record is removed": lambda world, pod, seconds: vars(world.volume).update(record={}),
    "server is lost": lambda world, _pod, seconds: world.lose(next(pod for pod in world.pods if pod.key == (machine.SERVER, 0)), seconds),
    "all restart": World.restart_all, "data ends": World.end_commands,
})


def drawn(dice):
    """Draw the faults of a history: their times, kinds, places, and lengths."""
    if dice.random() < 0.1:
        return [(170.0 * number, "command fails", dice.random(), 0) for number in range(SERIES)]
    faults, now = [], dice.choice((0.0, 30.0, 80.0, 130.0))
    for _ in range(dice.choice((1, 2, 3, 4, 6))):
        now += dice.choice((2, 10, 40, 90)) * dice.random() + 1
        faults.append((now, dice.choice(DRAWN), dice.random(), dice.choice((5, 20, 50, 90, 150)) * dice.uniform(0.5, 1)))
    return faults


@contextlib.contextmanager
def simulated():
    """Have the launcher's code run in the simulation."""
    clock = types.SimpleNamespace(monotonic=lambda: WORLD.now, time=lambda: WORLD.turn.wall())
    ready = types.SimpleNamespace(MachineCheck=lambda _environment, _following: types.SimpleNamespace(
        command=None, environment=_environment, waiting=lambda: False, trouble=lambda: None, found={}),
        Files=lambda *_: types.SimpleNamespace(lost=None, begin=lambda: None, missing=lambda: None), reachable=lambda _nats: True, for_gpus=dict)
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(launch.memory, "Loading", Loading))
        stack.enter_context(mock.patch.multiple(launch, Link=Link, Command=Command, time=clock, checks=ready, log=lambda text: WORLD.log(WORLD.turn, text)))
        stack.enter_context(mock.patch.object(launch.processes, "Scratch", lambda _folders: types.SimpleNamespace(clear=lambda: None)))
        stack.enter_context(mock.patch.object(processes, "time", clock))
        stack.enter_context(mock.patch.object(processes, "reap", lambda _process=None: None))
        stack.enter_context(mock.patch.dict("os.environ", {"PERSIA_ATTEMPT": "0"}, clear=True))
        yield


def history(seed, kind=machine.Machine, faults=None, trace=None):
    """Run a history, and return why it is broken, or ""."""
    world = World(seed, kind, faults, trace)
    try:
        world.run()
    except Exception as error:  # nothing may raise
        return f"{world.now:.1f} s: {error!r}"
    return ""


def shrink(seed, kind=machine.Machine):
    """Return why a history is broken, the faults that it needs for that, and its trace."""
    faults = World(seed, kind).faults
    while True:
        for index in range(len(faults)):
            fewer = faults[:index] + faults[index + 1:]
            if history(seed, kind, fewer):
                faults = fewer
                break
        else:
            trace = []
            why = history(seed, kind, faults, trace)
            return why, faults, trace
