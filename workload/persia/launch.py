"""Runs a replica of a PERSIA job: launch.py COMMAND [ARGUMENT...]

The command runs once in each attempt of the job (see coordinator.py). When it ends with
success the replica has finished its part, when it fails all replicas begin anew, and
when the job is complete or has failed for good the replica stays idle: a StatefulSet
would start it again. A Kubernetes Job would not, so there trainers and data loaders end,
with success: the job's completion tells the two apart.
"""

import http.client
import os
import signal
import sys
import time
import uuid

import checks
import checkpoints
import coordinator
import gateway
import server
from link import Link
from processes import Command, connected, processes
from settings import Settings

# How long the end of the pod may take to record, in seconds.
RELEASE_SECONDS = 5

# The status of a replica that is told to end before the job is complete, where it must
# not count as finished: the one of a program that does not handle SIGTERM.
ENDED_STATUS = 128 + signal.SIGTERM


class Replica:
    """One replica, and how far it is."""

    def __init__(self, settings, arguments, coordinates=None):
        self.settings, self.arguments = settings, arguments
        self.coordinates = coordinates  # the job's coordinator, if it is in this process
        self.link = Link(own_address(settings.coordinator) if coordinates else settings.coordinator)
        self.files = checks.Files(settings.role, os.environ, settings.beat_seconds)
        self.instance = uuid.uuid4().hex
        self.attempt, self.state, self.reason = 0, "waiting", ""
        self.doubts = False  # whether the checkpoint may be why the attempt failed
        self.done = False
        self.over = False  # whether the job is complete or has failed for good
        self.command = None  # what runs: the command, or the check of the GPUs before it
        self.ending = False  # whether the command, or what it left, is to end
        self.gpus = None  # the check of the GPUs until it is done
        self.blocked = ""  # why no attempt can start with this replica
        self.nats_seen = None  # when the command was last connected to NATS
        self.answered = time.monotonic()  # when the last report was sent that got an answer
        self.silence = settings.lost_seconds  # how long the command runs without an answer
        self.was_running = False  # whether the pod was told to end while the command ran
        self.stopped = False  # not an Event: a signal handler that sets one can wait for itself
        self.told = self.said = None

    def run(self):
        """Do what the coordinator says until the pod is told to end and the command has
        ended. Return its status."""
        self.mark()
        while True:
            # The signal may come at any moment, also between two lines of this loop.
            stopped = self.stopped
            if stopped:
                # The command gets all of the pod's time to end.
                self.was_running = self.was_running or self.state == "running"
                self.end_command(float("inf"))
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
        """Wait until the next report is due, or there is something to say."""
        deadline = time.monotonic() + self.settings.beat_seconds
        while time.monotonic() < deadline and self.told == self.news():
            if self.ending:
                # A launcher may have ended before the training that it has started.
                if self.command.ended():
                    return
            elif self.stopped or self.state == "running" and (self.command.status() is not None or self.forsaken()):
                return
            time.sleep(min(0.2, self.settings.beat_seconds))

    def news(self):
        """Return what the coordinator should know at once when it changes."""
        return self.attempt, self.state, self.ending

    def watch(self):
        """See how the command is."""
        if self.ending:
            self.watch_end()
            return
        if self.state != "running":
            return
        status = self.command.status()
        if self.gpus:
            self.watch_gpus()
        elif status == 0:
            self.become("finished", "")
        elif status is not None:
            self.become("failed", f"the command ended with status {status}", doubts=True)
        elif self.deaf():
            # PERSIA's client gives up for good without ending its process.
            self.become("failed", f"no connection to NATS for {self.settings.nats_seconds:g} s")
        elif self.forsaken():
            self.become("failed", f"no answer from the coordinator for {self.silence:g} s")
        if self.state == "failed":
            self.end_processes(self.settings.stop_seconds)

    def forsaken(self):
        """Report whether the coordinator has not answered for so long that it may have
        started the next attempt without this replica. A server of a complete job stays."""
        return not self.done and time.monotonic() - self.answered > self.silence

    def watch_end(self):
        """See whether the command and all that it started have ended."""
        if not self.command.ended():
            if self.hangs():
                self.say(self.hangs())
            return
        self.ending, self.gpus = False, None
        if self.state == "running" and not self.stopped:
            self.become("waiting", "told to end")

    def hangs(self):
        """Return which process cannot be ended, or nothing."""
        return self.command.hangs(self.settings.hang_seconds) if self.ending else ""

    def watch_gpus(self):
        """Start the command when it is known that it can use the GPUs."""
        if self.gpus.waiting():
            return
        check, self.gpus = self.gpus, None
        trouble = check.trouble()
        if trouble:
            self.become("failed", trouble)
            return
        try:
            self.command = Command(self.arguments, check.environment)
        except OSError as error:
            self.become("failed", f"{self.arguments[0]}: {error.strerror}")

    def deaf(self):
        """Whether the command was connected to NATS, and has not been for long."""
        if not self.settings.nats:
            return False
        if connected(processes(self.command.process.pid), self.settings.nats[1]):
            if self.nats_seen is None:
                log(f"attempt {self.attempt}: connected to NATS")
            self.nats_seen = time.monotonic()
        return self.nats_seen is not None and time.monotonic() - self.nats_seen > self.settings.nats_seconds

    def become(self, state, reason, doubts=False):
        self.state, self.reason, self.doubts = state, reason, doubts
        self.mark()
        log(f"attempt {self.attempt}: {state}" + (f": {reason}" if reason else ""))

    def report(self, leaving=False):
        """Tell the coordinator, and return what it says, or None without an answer."""
        self.blocked = "" if leaving else self.obstacle()
        body = {
            "role": self.settings.role,
            "replica": self.settings.replica,
            "coordinator": self.settings.coordinator,
            "run": self.settings.run,
            "pod": self.settings.pod,
            "revision": self.settings.revision,
            "instance": self.instance,
            "attempt": self.attempt,
            "state": self.state,
            "reason": self.reason,
            "doubts": self.doubts,
            "progress": self.progress(),
            "blocked": self.blocked,
            "ending": self.ending,
            "hangs": self.hangs(),
            "leaving": leaving,
            "done": self.done,
        }
        self.told, sent = self.news(), time.monotonic()
        try:
            order = self.link.ask(body)
        except (OSError, ValueError, http.client.HTTPException):
            self.say(f"the coordinator at {self.settings.coordinator} does not answer")
            return None
        if order.get("run") != self.settings.run:
            # One of the two pods is about to be replaced, or the address has been.
            self.link.leave()
            self.say(f"the coordinator at {self.settings.coordinator} is of another run")
            return dict(order, order=coordinator.STOP)
        if self.outdated(order) and not self.coordinates:
            # Obey its successor. If none answers in time, the command ends.
            self.link.leave()
            return None
        if not order.get("superseded"):
            self.answered, self.silence = sent, order.get("silence", self.silence)
        if order["order"] == coordinator.STOP:
            self.say(f"waiting for attempt {order['attempt'] + 1}" + (f": {self.blocked}" if self.blocked else ""))
        return order

    def outdated(self, order):
        """Report whether an order comes from a coordinator that has a successor: it says so, or
        it does not know the attempt of this replica."""
        return order.get("superseded") or order["attempt"] < self.attempt

    def obstacle(self):
        """Return what the next attempt has to wait for, or nothing. The script may be
        uploaded after the pod has started."""
        if self.state == "running" or self.ending or self.done:
            return ""
        if not checks.reachable(self.settings.nats):
            return "NATS does not answer"
        return self.files.missing() or ""

    def progress(self):
        """Something else whenever the script has told that it gets on, or None before."""
        try:
            return os.stat(self.settings.progress_file).st_mtime_ns if self.settings.progress_file else None
        except OSError:
            return None

    def say(self, text):
        """Say what has not just been said."""
        if text != self.said:
            log(text)
        self.said = text

    def obey(self, order):
        self.done = order["order"] == coordinator.DONE
        self.over = order["order"] in (coordinator.DONE, coordinator.FAILED)
        if order["order"] == coordinator.START and not self.stopped:
            self.said = None
            # What is left of the attempt before must not run beside this one.
            if not self.ends():
                self.begin(order["attempt"], order["resume"])
        elif order["order"] == coordinator.STOP:
            self.end_command(self.settings.stop_seconds)
        elif order["order"] == coordinator.DONE:
            # What servers hold stays for those who may want it.
            self.say(f"the job is complete: {'still running' if self.state == 'running' else 'idle'}")
        elif order["order"] == coordinator.FAILED:
            self.end_command(self.settings.stop_seconds)
            if self.ending:
                return
            idle = "" if self.settings.once else ": idle"
            self.say(f"the job has failed{idle}. `pulumi up` with a change of the job starts it again")

    def leaves(self):
        """Report whether the pod ends with its job. The servers end when all others have."""
        ends = self.settings.once and self.settings.role in (coordinator.TRAINER, coordinator.DATA_LOADER)
        if not ends or not self.over or self.state == "running" or self.ending:
            return False
        return not self.coordinates or not self.coordinates.stays()

    def mark(self):
        """Leave the mark that makes a server count as ready while it runs nothing, or take
        it away."""
        try:
            if self.state != "running":
                open(self.settings.idle_file, "w").close()
            elif os.path.exists(self.settings.idle_file):
                os.remove(self.settings.idle_file)
        except OSError as error:
            self.say(f"{self.settings.idle_file}: {error.strerror}")

    def ends(self):
        """End what is left of a command, and report whether anything is."""
        if self.command and not self.ending and self.command.running():
            self.end_processes(self.settings.stop_seconds)
        return self.ending

    def end_command(self, seconds):
        if self.state == "running":
            self.end_processes(seconds)

    def end_processes(self, seconds):
        """Begin to end the command and all that it started. Reports go on meanwhile: a
        process that waits for a device or a volume may never end."""
        if not self.ending:
            self.ending = True
            self.command.end(seconds)

    def begin(self, attempt, resume):
        """Start the command in an attempt."""
        self.attempt, self.nats_seen = attempt, None
        if self.progress():
            os.remove(self.settings.progress_file)
        environment = self.environment(resume)
        trouble = self.files.missing()
        if trouble:
            self.become("failed", trouble)
            return
        try:
            self.gpus = checks.GPUs(environment)
        except OSError as error:
            self.become("failed", f"{error.filename}: {error.strerror}")
            return
        self.become("running", f"going on from {resume}" if resume else "")
        self.command = self.gpus.command
        self.watch_gpus()

    def environment(self, resume):
        """The environment of the command in this attempt."""
        environment = checks.with_driver(dict(os.environ))
        environment = checks.with_authority(environment, os.path.dirname(self.settings.idle_file))
        environment["PERSIA_ATTEMPT"] = str(self.attempt)
        # NCCL then fails where it would hang: the names before and since PyTorch 2.2.
        environment.setdefault("NCCL_ASYNC_ERROR_HANDLING", "1")
        environment.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
        # A script that has a place of its own for checkpoints keeps it.
        if self.settings.checkpoints and "PERSIA_CKPT_DIR" not in environment:
            environment["PERSIA_CKPT_DIR"] = checkpoints.directory(self.settings.checkpoints, self.attempt)
            if resume:
                environment["PERSIA_RESUME_DIR"] = resume
        return environment

    def stop(self, *_):
        """Take the signal that tells the pod to end."""
        self.stopped = True

    def leave(self):
        """Tell the coordinator that the pod ends, and return the command's status. The
        coordinator need not wait for this replica before the next attempt."""
        self.report(leaving=True)
        status = 0
        if self.was_running:
            status = self.command.status()
            log(f"stopped; the command ended with status {status}")
        if self.settings.once and not self.over:
            # A Job would not replace a pod that was told to end and ends with success.
            return status or ENDED_STATUS
        return status

    def values(self):
        """What the metrics gateway is told."""
        return {
            "attempt": self.attempt,
            "alive": int(self.state == "running"),
            "finished": int(self.state == "finished" or self.done),
            "blocked": int(bool(self.blocked)),
        }


def own_address(address):
    """Return the address at which the coordinator's own pod reaches it, also without DNS."""
    return "127.0.0.1:" + address.rsplit(":", 1)[1]


def log(text):
    print(f"launch.py: {text}", file=sys.stderr, flush=True)


def main(arguments):
    if not arguments:
        log("usage: launch.py COMMAND [ARGUMENT...]")
        return 2
    try:
        settings = Settings(os.environ)
    except KeyError as missing:
        log(f"{missing.args[0]} is not set: launch.py runs in the pods of a PERSIA job")
        return 2
    except ValueError as wrong:
        log(str(wrong))
        return 2
    coordinates = None
    if (settings.role, settings.replica) == (coordinator.TRAINER, 0):
        coordinates = coordinator.Coordinator(settings, log)
        server.serve(coordinates, int(settings.coordinator.rsplit(":", 1)[1]))
        coordinates.run()
    replica = Replica(settings, arguments, coordinates)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, replica.stop)
    told = gateway.of(os.environ, log)
    if told:
        told.keep_telling(replica.values)
    status = replica.run()
    if told and settings.once:
        told.tell(replica.values)  # what is told now stays
    if coordinates:
        coordinates.release(RELEASE_SECONDS)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
