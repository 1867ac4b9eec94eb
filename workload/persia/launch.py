"""Runs a replica of a PERSIA job: launch.py COMMAND [ARGUMENT...]

The command runs once in each attempt of the job (see coordinator.py). If it exits with status 0, the replica has finished its
part; otherwise all replicas start again. When the job is complete or has failed, the replica stays idle, because a StatefulSet
would restart it. A Kubernetes Job would not, so there nn-workers and dataloaders exit with status 0 in both cases.
"""

import http.client
import os
import signal
import socket
import sys
import time
import uuid

import checks
import coordinator
import gateway
import machine
import memory
import processes
import server
import speed
from link import Link, Refused
from processes import Command, log
from settings import Settings

# How many seconds the coordinator's pod waits for its last record, and for replicas that it calls.
RELEASE_SECONDS, CALL_SECONDS = 5, 1

# After how many seconds others may ask a command, although it has not connected to NATS: it may need them first.
ALONE_SECONDS = 120

# The exit status of a pod of a Kubernetes Job that ends before its training job, so that it does not count as succeeded.
ENDED_STATUS = 128 + signal.SIGTERM


class Replica:
    """One replica, and its state in the attempt."""

    def __init__(self, settings, arguments, coordinates=None):
        self.settings, self.arguments = settings, arguments
        self.coordinates = coordinates  # the job's coordinator, if it is in this process
        # The coordinator's own pod reaches it without DNS.
        own = "127.0.0.1:" + settings.coordinator.rsplit(":", 1)[1]
        self.link = Link(own if coordinates else settings.coordinator, settings.token)
        self.files = checks.Files(settings.role, os.environ, settings.beat_seconds)
        self.instance, self.since = uuid.uuid4().hex, time.time()
        self.attempt, self.state, self.reason = 0, "waiting", ""
        self.doubts = False  # whether the checkpoint may be why the attempt failed
        self.done = False
        self.failed = ""  # why the job has failed for good
        self.over = False  # whether the job is complete or has failed
        self.command = None  # the command, or the check of the machine that runs before it
        self.ending = False  # whether the command or processes that it left have to end
        self.check = None  # the check of the machine, until it is done
        self.memory = 0  # the name of the memory that the command has, see machine.py
        self.loading = None  # how a server gets its part of that, until it has it
        self.blocked = ""  # why no attempt can start with this replica
        self.nats_seen = None  # when the command was last connected to NATS
        self.clients = set()  # the processes that were connected then
        self.scratch = processes.Scratch(settings.scratch)
        self.asked = self.answered = time.monotonic()  # when it sent the last report, and the last one that got an answer
        self.soon = None  # after how long it reports again, if an attempt is about to start
        self.began = 0.0  # when it started the command
        self.silence = settings.lost_seconds  # how long the command runs without an answer
        self.stopped = False  # not an Event, which a signal handler could deadlock on
        self.reported = self.logged = None
        address = speed.take() if settings.node else ""
        self.speed = {"node": settings.node, "pod": socket.gethostname(), "address": address, "checks": []}

    def run(self):
        """Follow the coordinator's orders until the pod has to end and the command has ended. Return the exit status."""
        self.mark()
        while True:
            # The signal may come at any moment, also between two lines of this loop.
            stopped = self.stopped
            if stopped and self.state == "running":
                # The command gets all of the pod's time to end.
                self.end_processes(float("inf"))
            self.watch()
            if stopped and not self.ending:
                return self.leave()
            order = self.report()
            if order:
                self.obey(order)
            if self.leaves():
                return self.leave()
            self.wait()

    def wait(self):
        """Wait until the next report is due, or there is something to report."""
        deadline = self.asked + min(self.settings.beat_seconds, self.soon or self.settings.beat_seconds)
        while time.monotonic() < deadline and self.reported == self.news():
            processes.reap(self.command and self.command.process)
            if self.ending:
                # A launcher may have ended before the training that it has started.
                if self.command.ended():
                    return
            elif self.stopped or self.state == "running" and self.command.status() is not None:
                return
            elif self.state == "running" and self.forsaken() and not self.command.frozen:
                return
            time.sleep(min(0.2, self.settings.beat_seconds))
            if self.link.called():
                return

    def news(self):
        """Return the values that the replica reports as soon as they change."""
        return self.attempt, self.state, self.ending, self.memory

    def watch(self):
        """Check whether the command runs, and change the state if not."""
        if self.ending:
            if self.forsaken():
                self.end_processes(self.settings.stop_seconds)
            self.watch_end()
        elif self.state == "running":
            self.watch_command()
            self.files.begin()
            if self.state == "failed" and self.command:
                self.end_processes(self.settings.stop_seconds)
        elif self.state == "finished" and self.forsaken():
            self.ends()

    def watch_command(self):
        """Check the command, or the check of the machine before it."""
        status = self.command.status() if self.command else None
        if self.check:
            self.watch_check()
        elif status == 0:
            self.become("finished", "")
        elif status is not None:
            self.become("failed", f"the command ended with status {status}", doubts=True)
        elif self.memory and self.forsaken() and self.unanswered() < self.settings.memory_seconds:
            # The next attempt may need its memory, or have another server in its place.
            self.command.freeze(True)
        elif self.deaf():
            # PERSIA's client gives up after some minutes, and its process runs on.
            self.become("failed", f"no connection to NATS for {self.settings.nats_seconds:g} s")
        elif self.forsaken():
            self.become("failed", self.forsaken())
        elif self.files.lost and not self.done:
            self.become("failed", self.files.lost)
        elif self.loading and self.loading.trouble:
            self.become("failed", self.loading.trouble)
        elif self.loading and self.loading.loaded:
            self.memory, self.loading = self.loading.memory, None
            log(f"attempt {self.attempt}: has its part of the checkpoint")

    def forsaken(self):
        """Return why the next attempt may have started without this replica, or "". A server of a complete job stays."""
        late = not self.done and self.unanswered() > self.silence
        return f"no answer from the coordinator for {self.silence:g} s" if late else ""

    def unanswered(self):
        return time.monotonic() - self.answered

    def watch_end(self):
        """Check whether the command and all processes that it started have ended."""
        if not self.command.ended():
            if self.hangs():
                self.say(self.hangs())
            return
        self.ending, self.check = False, None
        if self.state != "failed" and not self.stopped:
            self.become("waiting", "told to end")

    def hangs(self):
        """Return which process cannot be killed, or ""."""
        return self.command.hangs(self.settings.hang_seconds) if self.ending else ""

    def watch_check(self):
        """Start the command when the check of the machine has succeeded."""
        if self.check.waiting() and not self.forsaken():
            return
        check, self.check = self.check, None
        trouble = self.forsaken() or check.trouble()
        if check.found.get("figures"):
            log(f"attempt {self.attempt}: measured {check.found['figures']}")
            self.speed["checks"] = [check.found] + self.speed["checks"][:1]
        if trouble:
            self.become("failed", trouble)
            return
        try:
            self.command, self.began = Command(self.arguments, check.environment), time.monotonic()
        except OSError as error:
            self.become("failed", f"{self.arguments[0]}: {error.strerror}")

    def deaf(self):
        """Report whether processes have been without their connection to NATS for too long. A script that has ended needs none."""
        if not self.settings.nats:
            return False
        running = self.command.running()
        clients = processes.connected(running, self.settings.nats[1])
        if clients:
            if self.nats_seen is None:
                log(f"attempt {self.attempt}: connected to NATS")
            self.nats_seen, self.clients = time.monotonic(), clients
        return bool(self.clients & running) and time.monotonic() - self.nats_seen > self.settings.nats_seconds

    def connected(self):
        """Report whether others can ask the command, which they do through NATS. Without an answer, they wait for 10 s."""
        alone = self.settings.nats and self.nats_seen is None and time.monotonic() - self.began < ALONE_SECONDS
        return self.state == "finished" or self.state == "running" and not self.check and not alone

    def become(self, state, reason, doubts=False):
        self.state, self.reason, self.doubts, self.memory = state, reason, doubts, 0
        if self.loading:
            self.loading.stopped, self.loading = True, None
        self.mark()
        log(f"attempt {self.attempt}: {state}" + (f": {reason}" if reason else ""))

    def report(self, leaving=False):
        """Report to the coordinator, and return its order, or None."""
        self.blocked = "" if leaving else self.obstacle()
        body = {
            "role": self.settings.role, "replica": self.settings.replica, "coordinator": self.settings.coordinator,
            "run": self.settings.run, "pod": self.settings.pod, "revision": self.settings.revision,
            "instance": self.instance, "since": self.since, "attempt": self.attempt, "memory": self.memory, "progress": self.progress(),
            "connected": self.connected(), "state": self.state, "reason": self.reason, "doubts": self.doubts, "blocked": self.blocked,
            "ending": self.ending, "hangs": self.hangs(), "leaving": leaving, "done": self.done, "speed": self.speed,
            # Without a JobSet, a change of the job starts it again.
            "failed": self.failed if self.settings.once else "",
        }
        self.reported, self.asked = self.news(), time.monotonic()
        try:
            order = self.link.ask(body)
        except Refused as error:
            self.say(f"the coordinator at {self.settings.coordinator} refuses a report: {error}")
            return None
        except (OSError, ValueError, http.client.HTTPException):
            self.say(f"the coordinator at {self.settings.coordinator} does not answer")
            self.soon = 1  # all wait for its substitute
            return None
        if order.get("run") != self.settings.run:
            # One of the two pods is about to be replaced, or the address has another pod now.
            self.link.leave()
            self.say(f"the coordinator at {self.settings.coordinator} is of another run")
            return dict(order, order=machine.STOP)
        if (order.get("superseded") or order["attempt"] < self.attempt) and not self.coordinates:
            # It has a successor, or does not know the attempt of this replica. If no other one answers in time, the command ends.
            self.link.leave()
            return None
        self.soon = order.get("soon")
        if not order.get("superseded"):
            self.answered, self.silence = self.asked, order.get("silence", self.silence)
        if order["order"] in (machine.STOP, machine.KEEP):
            self.say(f"waiting for attempt {order['attempt'] + 1}" + (f": {self.blocked}" if self.blocked else ""))
        return order

    def obstacle(self):
        """Return why the next attempt has to wait, or "". Users may upload the script after the pod has started."""
        if self.state == "running" or self.ending or self.done:
            return ""
        if not checks.reachable(self.settings.nats):
            return "NATS does not answer"
        return self.files.missing() or ""

    def progress(self):
        """Return a number that changes with each progress that the script reports, or None before the first."""
        try:
            return os.stat(self.settings.progress_file).st_mtime_ns if self.settings.progress_file else None
        except OSError:
            return None

    def say(self, text):
        """Log a text, unless it is the last one."""
        if text != self.logged:
            log(text)
        self.logged = text

    def obey(self, order):
        self.done = order["order"] == machine.DONE
        # Until the end is recorded, it may have to start again.
        self.over = order["order"] == machine.FAILED or self.done and order.get("recorded", True)
        keeps = bool(self.memory) and not self.ending and (
            order["order"] == machine.KEEP or order["order"] == machine.START and order.get("memory") == self.memory)
        if self.command and self.command.frozen and (keeps or order["order"] in (machine.GO, machine.DONE)):
            self.command.freeze(False)
            self.nats_seen = time.monotonic()  # NATS may have closed its connection meanwhile
        if keeps and order["order"] == machine.START:
            self.attempt = order["attempt"]
            log(f"attempt {self.attempt}: keeps its memory")
        elif order["order"] == machine.START and not self.stopped:
            self.logged = None
            # Processes that the previous attempt left must not run beside this one.
            if not self.ends():
                self.begin(order)
        elif order["order"] in (machine.STOP, machine.KEEP) and self.state in ("running", "finished") and not keeps:
            # A command that has finished may have left processes.
            self.end_processes(self.settings.stop_seconds)
        elif order["order"] == machine.DONE:
            # A substitute tells the next coordinator, which believes it by the attempt.
            self.attempt = max(self.attempt, order["attempt"])
            # Servers keep the model in memory, for example for an export.
            self.say(f"the job is complete: {'still running' if self.state == 'running' else 'idle'}")
        elif order["order"] == machine.FAILED:
            self.failed = order.get("reason", "")
            if self.ends():
                return
            idle = "" if self.settings.once else ": idle"
            self.say(f"the job has failed{idle}. `pulumi up` with a change of the job starts it again")

    def leaves(self):
        """Report whether the pod ends now because the job does. JobSet ends the servers."""
        ends = self.settings.once and self.settings.role in (machine.NN_WORKER, machine.DATALOADER)
        if not ends or not self.over or self.state == "running" or self.ending:
            return False
        return not self.coordinates or not self.coordinates.stays()

    def mark(self):
        """Write the file that makes the readiness probe of an idle server succeed, or remove it."""
        try:
            if self.state != "running":
                open(self.settings.idle_file, "w").close()
            elif os.path.exists(self.settings.idle_file):
                os.remove(self.settings.idle_file)
        except OSError as error:
            self.say(f"{self.settings.idle_file}: {error.strerror}")

    def ends(self):
        """End the processes that the command left, and report whether there are any."""
        if self.command and not self.ending and self.command.running():
            self.end_processes(self.settings.stop_seconds)
        return self.ending

    def end_processes(self, seconds):
        """Begin to end all processes. The replica reports meanwhile: one that waits for a device or a volume may never end."""
        self.ending = True
        self.command.end(seconds)

    def begin(self, order):
        """Start the command, or the check of its machine. A server beside others that have kept their memory loads its part."""
        self.attempt, self.nats_seen, self.clients = order["attempt"], None, set()
        self.scratch.clear()
        if self.progress():
            os.remove(self.settings.progress_file)
        environment = self.environment(order)
        trouble = self.files.missing()
        if trouble:
            self.become("failed", trouble)
            return
        try:
            self.check = checks.MachineCheck(environment, order.get("next", "") if self.settings.node else None)
        except OSError as error:
            self.become("failed", f"{error.filename}: {error.strerror}")
            return
        resumes = order.get("dense") or order["resume"]
        self.become("running", f"from {resumes}" if resumes else "")
        self.command = self.check.command
        if self.settings.role == machine.SERVER and order.get("dense"):
            self.loading = memory.Loading(self.settings.server, order["resume"], self.settings.replica, order["memory"])
        elif self.settings.role == machine.SERVER:
            self.memory = order.get("memory", 0)
        self.watch()

    def environment(self, order):
        """Return the environment of the command in this attempt."""
        environment = checks.for_gpus(os.environ)
        environment["PERSIA_ATTEMPT"] = str(self.attempt)
        # The stack file may name another place for checkpoints.
        if self.settings.checkpoints and "PERSIA_CKPT_DIR" not in environment:
            environment["PERSIA_CKPT_DIR"] = os.path.join(self.settings.checkpoints, f"attempt-{self.attempt}")
            if order.get("memory"):
                environment["PERSIA_DENSE_DIR"] = os.path.join(self.settings.checkpoints, f"dense-{order['memory']}")
            if order.get("dense"):
                environment["PERSIA_KEEP_EMBEDDINGS"] = "1"
            if order.get("dense") or order["resume"]:
                environment["PERSIA_RESUME_DIR"] = order.get("dense") or order["resume"]
        return environment

    def leave(self):
        """Report that the pod ends, so that the coordinator does not wait for it, and return the exit status."""
        self.report(leaving=True)
        status = 0
        if self.state == "running":
            status = self.command.status()
            log(f"stopped; the command ended with status {status}")
        if self.settings.once and (not self.over or self.coordinates and self.coordinates.stays()):
            # A Kubernetes Job does not replace a pod that exits with status 0.
            return status or ENDED_STATUS
        return status

    def values(self):
        """Return the metrics that the replica pushes to the gateway."""
        values = {
            "persia_replica_attempt": self.attempt,
            "persia_replica_alive": int(self.state == "running"),
            "persia_replica_finished": int(self.state == "finished" or self.done),
            "persia_replica_blocked": int(bool(self.blocked)),
            "persia_replica_memory_ratio": gateway.memory_ratio(),
        }
        return {name: value for name, value in values.items() if value is not None}


def main(arguments):
    if not arguments:
        log("usage: launch.py COMMAND [ARGUMENT...]")
        return 2
    try:
        settings = Settings(os.environ)
    except (KeyError, ValueError) as error:
        lacks = f"{error.args[0]} is not set: launch.py runs in the pods of a PERSIA job"
        log(lacks if isinstance(error, KeyError) else str(error))
        return 2
    # The training needs no token, and its logs may show its environment.
    del os.environ["PERSIA_TOKEN"]
    processes.adopt()
    coordinates = None
    if (settings.role, settings.replica) == (machine.NN_WORKER, 0):
        coordinates = coordinator.Coordinator(settings, log)
        coordinates.machine.lacks = server.open_enough(coordinates.machine.roster.total)
        if coordinates.machine.lacks:
            log(coordinates.machine.lacks)
        server.serve(coordinates, int(settings.coordinator.rsplit(":", 1)[1]), settings.token)
        coordinates.run()
    replica = Replica(settings, arguments, coordinates)
    processes.heed_signals(replica)
    metrics = [(gateway.of(os.environ, log), replica.values)]
    if coordinates:
        metrics.append((gateway.of(os.environ, log, whole_job=True), coordinates.metrics))
    for place, values in metrics:
        place.keep_pushing(values)
    status = replica.run()
    for place, values in metrics if settings.once else ():
        place.push(values)  # these values stay
    if coordinates:
        coordinates.release(RELEASE_SECONDS, CALL_SECONDS)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
