"""Runs a replica of a PERSIA job: launch.py COMMAND [ARGUMENT...]

The command runs once in each attempt of the job (see coordinator.py). When it ends with
success the replica has finished its part, when it fails all replicas begin anew, and
when the job is complete or has failed for good the replica stays idle: a StatefulSet
would start it again.
"""

import http.client
import json
import os
import signal
import sys
import time
import urllib.request
import uuid

import checks
import checkpoints
import coordinator
import gateway
from processes import Command, connected, processes


def number(environment, name, default, kind, least):
    """A number that the environment says, or else a default."""
    text = environment.get(name, default)
    try:
        value = kind(text)
    except ValueError:
        value = None
    # Nothing compares with what is not a number.
    if value is None or not value >= least:
        raise ValueError(f"{name} is {text!r}: must be {'a whole number' if kind is int else 'a number'} of at least {least}")
    return value


class Settings:
    """What the environment says, with the times that tests shorten."""

    def __init__(self, environment):
        self.role = environment["PERSIA_ROLE"]
        self.replica = int(environment["REPLICA_INDEX"])
        self.address = environment["PERSIA_COORDINATOR"]
        self.replicas = {}
        for part in filter(None, environment.get("PERSIA_REPLICAS", "").split(",")):
            role, count = part.split("=")
            self.replicas[role] = int(count)
        self.run = environment.get("PERSIA_RUN", "")
        self.pod = environment.get("PERSIA_POD_UID", "")
        self.revision = environment.get("PERSIA_REVISION", "")
        self.idle_file = environment["PERSIA_IDLE_FILE"]
        self.state_directory = environment["PERSIA_STATE_DIR"]
        self.progress_file = environment.get("PERSIA_PROGRESS_FILE")
        self.checkpoints = environment.get("PERSIA_CKPT_ROOT")
        self.keep = number(environment, "PERSIA_CKPT_KEEP", "2", int, 1)
        self.attempts = number(environment, "PERSIA_ATTEMPTS", "5", int, 1)
        self.nats = checks.address(environment.get("PERSIA_NATS_URL", ""))

        def seconds(name, default):
            return number(environment, name, default, float, 0)

        self.beat_seconds = seconds("PERSIA_BEAT_SECONDS", "5")
        self.lost_seconds = seconds("PERSIA_LOST_SECONDS", "60")
        self.end_seconds = seconds("PERSIA_END_SECONDS", "60")
        self.nats_seconds = seconds("PERSIA_NATS_SECONDS", "30")
        self.stuck_seconds = seconds("PERSIA_STUCK_SECONDS", "3600")
        self.stop_seconds = seconds("PERSIA_STOP_SECONDS", "20")
        self.backoff_seconds = seconds("PERSIA_BACKOFF_SECONDS", "10")


class Replica:
    """One replica, and how far it is."""

    def __init__(self, settings, arguments):
        self.settings, self.arguments = settings, arguments
        self.instance = uuid.uuid4().hex
        self.attempt, self.state, self.reason = 0, "waiting", ""
        self.done = False
        self.command = None  # what runs: the command, or the check of the GPUs before it
        self.gpus = None  # the check of the GPUs until it is done
        self.nats_seen = None  # when the command was last connected to NATS
        self.stopped = False  # not an Event: a signal handler that sets one can wait for itself
        self.said = None

    def run(self):
        """Do what the coordinator says until the pod is told to end."""
        self.mark()
        while not self.stopped:
            self.watch()
            order = self.report()
            if order:
                self.obey(order)
            self.wait()
        return self.end()

    def wait(self):
        """Wait until the next report is due, or there is something to say."""
        deadline = time.monotonic() + self.settings.beat_seconds
        while time.monotonic() < deadline and not self.stopped:
            if self.state == "running" and self.command.status() is not None:
                return
            time.sleep(min(0.2, self.settings.beat_seconds))

    def watch(self):
        """See how the command is."""
        if self.state != "running":
            return
        status = self.command.status()
        if self.gpus:
            self.watch_gpus()
        elif status == 0:
            self.become("finished", "")
        elif status is not None:
            self.become("failed", f"the command ended with status {status}")
        elif self.deaf():
            # PERSIA's client gives up for good without ending its process.
            self.become("failed", f"no connection to NATS for {self.settings.nats_seconds:g} s")
        if self.state == "failed":
            self.command.stop(self.settings.stop_seconds)

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

    def become(self, state, reason):
        self.state, self.reason = state, reason
        self.mark()
        log(f"attempt {self.attempt}: {state}" + (f": {reason}" if reason else ""))

    def report(self):
        """Tell the coordinator, and return what it says, or None without an answer."""
        blocked = ""
        if self.state != "running" and not checks.reachable(self.settings.nats):
            blocked = "NATS does not answer"
        body = {
            "role": self.settings.role,
            "replica": self.settings.replica,
            "run": self.settings.run,
            "pod": self.settings.pod,
            "revision": self.settings.revision,
            "instance": self.instance,
            "attempt": self.attempt,
            "state": self.state,
            "reason": self.reason,
            "progress": self.progress(),
            "blocked": blocked,
            "done": self.done,
        }
        request = urllib.request.Request(f"http://{self.settings.address}/report", json.dumps(body).encode())
        try:
            with gateway.direct.open(request, timeout=5) as answer:
                order = json.loads(answer.read().decode())
        except (OSError, ValueError, http.client.HTTPException):
            self.say(f"the coordinator at {self.settings.address} does not answer")
            return None
        if order.get("run") != self.settings.run:
            # One of the two pods is about to be replaced.
            self.say(f"the coordinator at {self.settings.address} is of another run")
            return dict(order, order=coordinator.STOP)
        if order["order"] == coordinator.STOP:
            self.say(f"waiting for attempt {order['attempt'] + 1}")
        return order

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
        if order["order"] == coordinator.START:
            self.said = None
            self.end_command()
            self.begin(order["attempt"], order["resume"])
        elif order["order"] == coordinator.STOP:
            self.end_command()
        elif order["order"] == coordinator.DONE:
            # What servers hold stays for those who may want it.
            self.say(f"the job is complete: {'still running' if self.state == 'running' else 'idle'}")
        elif order["order"] == coordinator.FAILED:
            self.end_command()
            self.say("the job has failed: idle. `pulumi up` with a change of the job starts it again")

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

    def end_command(self):
        if self.state == "running":
            self.command.stop(self.settings.stop_seconds)
            self.gpus = None
            self.become("waiting", "told to end")

    def begin(self, attempt, resume):
        """Start the command in an attempt."""
        self.attempt, self.nats_seen = attempt, None
        if self.progress():
            os.remove(self.settings.progress_file)
        environment = self.environment(resume)
        trouble = checks.before(self.settings.role, environment)
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

    def end(self):
        """End with the pod, and give what runs all of the pod's time to end."""
        if self.state != "running":
            return 0
        status = self.command.stop(float("inf"))
        log(f"stopped; the command ended with status {status}")
        return status

    def values(self):
        """What the metrics gateway is told."""
        return {
            "attempt": self.attempt,
            "alive": int(self.state == "running"),
            "finished": int(self.state == "finished" or self.done),
        }


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
    replica = Replica(settings, arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, replica.stop)
    if (settings.role, settings.replica) == (coordinator.TRAINER, 0):
        port = int(settings.address.rsplit(":", 1)[1])
        coordinator.serve(coordinator.Coordinator(settings, log), port)
        settings.address = f"127.0.0.1:{port}"
    told = gateway.of(os.environ, log)
    if told:
        told.keep_telling(replica.values)
    return replica.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
