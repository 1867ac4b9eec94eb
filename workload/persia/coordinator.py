"""The coordinator of a job: keeps the replicas of all roles in the same attempt.

PERSIA cannot go on without a replica: trainers hang when one of them is gone, and a
server that starts again knows nothing of the training. So when a replica fails, all
end what they run, and begin anew together from the last checkpoint. That is an
attempt.

The first trainer coordinates. Every replica, also of the trainers, tells it every few
seconds how it is, and is told what to do. It is the only one to decide, so all agree,
and it needs nothing that a job may lack: no rights in the cluster, no volume, no NATS
and no metrics gateway. When it is gone, a trainer is gone, and the job must begin
anew anyway; the others tell its successor which attempt they are in.
"""

import http.server
import json
import os
import socketserver
import threading
import time
import urllib.parse

import checkpoints

TRAINER, DATA_LOADER = "nn-worker", "dataloader"

# What a replica is told. An attempt starts only when no replica runs the one before,
# so nobody writes a checkpoint any more that others might resume from or not.
START, GO, STOP, DONE, FAILED = "start", "go", "stop", "done", "failed"


class Coordinator:
    """What is known of a job's replicas, and what they are to do."""

    def __init__(self, settings, log, clock=time.monotonic):
        self.settings, self.log, self.clock = settings, log, clock
        self.lock = threading.Lock()
        self.members = {}  # the last report of each replica, by role and number
        self.phase = STOP
        self.reason = "the job starts"
        self.not_before = 0  # when the next attempt may start
        self.trainers_ended = None  # when the last trainer ended in this attempt
        self.resume = None  # the checkpoint that the attempt began with
        self.newest = None  # the newest checkpoint of the attempt
        self.unneeded = set()  # the checkpoints that are to be removed
        self.work = threading.Event()  # set when there are some
        self.got_on = 0  # when the attempt last got on
        self.memory = Memory(settings.state_directory, settings.revision)
        self.attempt = 0
        self.recalled = False  # whether it is known what there was before
        try:
            self.recall()
        except OSError as error:
            self.unreadable(error)

    def recall(self):
        """Go on from what there was before this coordinator."""
        self.memory.read()
        self.attempt = max(self.attempt, self.memory.attempt, checkpoints.last_attempt(self.settings.checkpoints))
        self.recalled = True
        if self.memory.done:
            self.phase = DONE
        elif self.memory.failed:
            self.phase, self.reason = FAILED, self.memory.failed

    def unreadable(self, error):
        """Wait until a volume can be read: an attempt would start from the beginning."""
        reason = f"the checkpoints cannot be read: {error}"
        if reason != self.reason:
            self.log(reason)
        self.reason, self.not_before = reason, self.clock() + self.settings.backoff_seconds

    def report(self, member):
        """Take a replica's report, and return what it is to do."""
        with self.lock:
            key = (member["role"], member["replica"])
            # While a changed job rolls, replicas of the run before report too: they may
            # have finished that one.
            if key not in self.expected() or member.get("run") != self.settings.run:
                return self.answer(STOP)
            before = self.members.get(key)
            if self.phase == START and before and self.has_finished(before):
                # It is idle: that its pod is replaced takes nothing from this attempt.
                member = dict(before, instance=member["instance"], pod=member["pod"])
            self.members[key] = dict(member, seen=self.clock())
            if not before or any(before.get(what) != member.get(what) for what in ("attempt", "state", "progress")):
                self.got_on = self.clock()
            self.attempt = max(self.attempt, member["attempt"])
            if self.phase == FAILED and before and before["revision"] != member["revision"]:
                self.retry(key)
            if member.get("done") and self.phase == STOP:
                self.finish()
            self.advance(key, before)
            return self.order(member)

    def expected(self):
        """All replicas of the job."""
        return {(role, replica) for role, count in self.settings.replicas.items() for replica in range(count)}

    def advance(self, key, before):
        """Go on to what the last report makes possible or necessary."""
        if self.phase == START:
            trouble = self.trouble(key, before)
            if trouble:
                self.fail(*trouble)
            elif self.ended(TRAINER) and self.ended(DATA_LOADER):
                self.finish()
        elif self.phase == STOP and self.clock() >= self.not_before and not self.missing():
            self.start()

    def trouble(self, key, before):
        """Why the attempt cannot succeed, and whether it failed by itself: that a pod is
        replaced, for a drained node or a new image, says nothing about the training."""
        member = self.members[key]
        if before and before["instance"] != member["instance"] and not self.has_finished(member):
            return f"{name(key)} was restarted", before["pod"] == member["pod"]
        if member["attempt"] == self.attempt and member["state"] == "failed":
            return f"{name(key)}: {member['reason']}", True
        for other, report in self.members.items():
            if not self.has_finished(report) and self.clock() - report["seen"] > self.settings.lost_seconds:
                return f"{name(other)} has not been heard of for {self.settings.lost_seconds:g} s", False
        if not self.ended(TRAINER):
            self.trainers_ended = None
            # All replicas may be alive and wait for each other for ever. Of a script that
            # does not tell of its progress, only people can know.
            if self.overdue() and self.tells():
                return f"no trainer has made progress for {self.settings.stuck_seconds:g} s", True
        elif self.trainers_ended is None:
            self.trainers_ended = self.clock()
        elif not self.ended(DATA_LOADER) and self.clock() - self.trainers_ended > self.settings.end_seconds:
            # PERSIA ends a trainer's loop without an error when no data comes.
            return "the trainers ended before the data loaders had sent all data", True
        return None

    def overdue(self):
        """Whether nothing has shown for long that the attempt gets on."""
        return 0 < self.settings.stuck_seconds < self.clock() - self.got_on

    def tells(self):
        """Whether the trainers' script tells of its progress in this attempt."""
        return any(member.get("progress") is not None and member["attempt"] == self.attempt for member in self.members.values())

    def ended(self, role):
        """Whether all replicas of a role have finished this attempt."""
        return all(
            (role, replica) in self.members and self.has_finished(self.members[role, replica])
            for replica in range(self.settings.replicas[role])
        )

    def has_finished(self, member):
        return member["state"] == "finished" and member["attempt"] == self.attempt

    def finished(self, role):
        """How many replicas of a role have finished this attempt, for people."""
        count = sum(self.has_finished(member) for key, member in self.members.items() if key[0] == role)
        return f"{count} of {self.settings.replicas[role]}"

    def missing(self):
        """What the next attempt waits for, for people."""
        waits = []
        for key in sorted(self.expected()):
            member = self.members.get(key)
            if not member or self.clock() - member["seen"] > self.settings.lost_seconds:
                waits.append(f"{name(key)} is not there")
            elif member["state"] == "running":
                waits.append(f"{name(key)} still runs")
            elif member["blocked"]:
                waits.append(f"{name(key)}: {member['blocked']}")
        # Replicas of a changed job are replaced one after the other. Each would end the
        # attempt.
        for role in self.settings.replicas:
            revisions = {member["revision"] for key, member in self.members.items() if key[0] == role}
            if len(revisions) > 1:
                waits.append(f"replicas of {role} are being replaced")
        return waits

    def start(self):
        """Start the next attempt, if it can be known from which checkpoint."""
        try:
            if not self.recalled:
                self.recall()
            if self.phase != STOP:
                return
            resume = checkpoints.newest(self.settings.checkpoints)
            unneeded = checkpoints.surplus(self.settings.checkpoints, self.settings.keep)
            unneeded += checkpoints.incomplete(self.settings.checkpoints)
        except OSError as error:
            self.unreadable(error)
            return
        self.attempt += 1
        self.phase, self.trainers_ended = START, None
        self.memory.save(attempt=self.attempt)
        self.resume = self.newest = resume
        self.got_on = self.clock()
        # What was to be removed before may be what the attempt begins with.
        self.unneeded = set()
        self.choose(unneeded)
        self.log(f"attempt {self.attempt} starts from " + (self.resume or "the beginning"))

    def fail(self, reason, by_itself):
        """End the attempt. Failures count from the last checkpoint: a job that gets on
        may fail as often as it likes."""
        try:
            self.newest = checkpoints.newest(self.settings.checkpoints)
        except OSError as error:
            self.log(f"the checkpoints cannot be read, and the newest one known is {self.newest}: {error}")
        failures = self.memory.failures if self.newest == self.memory.checkpoint else 0
        failures += by_itself
        self.memory.save(failures=failures, checkpoint=self.newest)
        if failures >= self.settings.attempts:
            self.phase, self.reason = FAILED, f"{failures} attempts failed without a new checkpoint, the last one because {reason}"
            self.memory.save(failed=self.reason)
            self.log("the job has failed: " + self.reason)
            return
        wait = min(self.settings.backoff_seconds * 2 ** (failures - 1), 300) if failures else 0
        self.phase, self.reason, self.not_before = STOP, reason, self.clock() + wait
        self.log(f"attempt {self.attempt} ends: {reason}; the next one starts in {wait:g} s or later")

    def retry(self, key):
        """Give a failed job another chance, since it was changed."""
        self.phase, self.reason = STOP, f"{name(key)} was changed"
        self.memory.save(failures=0, failed="")

    def finish(self):
        self.phase = DONE
        self.memory.save(done=True)
        self.log(f"finished in attempt {self.attempt}")

    def order(self, member):
        """What a replica is to do, and with what."""
        order = self.phase
        if order == START and member["attempt"] == self.attempt:
            order = GO
        return self.answer(order)

    def answer(self, order):
        return {"order": order, "run": self.settings.run, "attempt": self.attempt, "resume": self.resume}

    def look(self):
        """See whether there is a new checkpoint, and which ones are not needed any more."""
        with self.lock:
            if self.phase != START:
                return
            try:
                newest = checkpoints.newest(self.settings.checkpoints)
                unneeded = checkpoints.surplus(self.settings.checkpoints, self.settings.keep, self.resume)
            except OSError as error:
                self.log(f"the checkpoints cannot be read: {error}")
                return
            if newest != self.newest:
                self.newest, self.got_on = newest, self.clock()
            self.choose(unneeded)

    def choose(self, unneeded):
        """Have checkpoints removed, in addition to those that could not be before."""
        self.unneeded.update(unneeded)
        if self.unneeded:
            self.work.set()

    def tidy(self):
        """Remove the checkpoints that are not needed any more. On a network volume this
        takes from minutes to hours, in which the lock is free: a replica that cannot
        report counts as lost."""
        with self.lock:
            # What is in a folder before the folder itself.
            unneeded = sorted(self.unneeded, key=len, reverse=True)
        for folder in unneeded:
            with self.lock:
                if folder not in self.unneeded:
                    continue
            try:
                checkpoints.remove(folder)
            except OSError as error:
                self.log(f"{folder} cannot be removed: {error}")
                continue
            with self.lock:
                self.unneeded.discard(folder)

    def status(self, run=""):
        """One line for people and for the completion of the job, in a run if it matters:
        this may be the coordinator of the run before, about to be replaced."""
        with self.lock:
            if run not in ("", self.settings.run):
                return f"waiting: the coordinator is of run {self.settings.run}"
            if self.phase == DONE:
                return f"complete in attempt {self.attempt}"
            if self.phase == FAILED:
                return f"failed: {self.reason}"
            if self.phase == START:
                stuck = f"; no sign of progress for {self.settings.stuck_seconds:g} s or longer" if self.overdue() else ""
                return f"running attempt {self.attempt}: {self.finished(TRAINER)} trainers and {self.finished(DATA_LOADER)} data loaders have finished{stuck}"
            waits = self.missing()
            more = f" and {len(waits) - 3} more" if len(waits) > 3 else ""
            return f"waiting after attempt {self.attempt} ({self.reason}): " + ("; ".join(waits[:3]) + more or "backing off")


class Memory:
    """What the coordinator finds again when it is restarted. Failures are forgotten with
    the revision of the StatefulSet, so that a job that was changed has another chance."""

    def __init__(self, directory, revision):
        self.file = os.path.join(directory, "coordinator.json")
        self.values = {"attempt": 0, "done": False, "revision": revision, "failures": 0, "failed": "", "checkpoint": None}

    def read(self):
        """Find what was kept. An OSError says that it cannot be read."""
        try:
            with open(self.file) as file:
                kept = json.load(file)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return
        revision = self.revision
        self.values.update(kept)
        if self.revision != revision:
            self.values.update(revision=revision, failures=0, failed="")

    def __getattr__(self, key):
        return self.values[key]

    def save(self, **changes):
        """Keep changes, on the disk too if that can be written to."""
        self.values.update(changes)
        try:
            os.makedirs(os.path.dirname(self.file), exist_ok=True)
            with open(self.file + ".new", "w") as file:
                json.dump(self.values, file)
            os.replace(self.file + ".new", self.file)
        except OSError:
            pass


def name(key):
    return f"{key[0]} {key[1]}"


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Serves reports at /report, and the status at /status."""

    daemon_threads = True
    request_queue_size = 1024


def serve(coordinator, port):
    """Serve a coordinator from now on."""

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self):
            member = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(json.dumps(coordinator.report(member)))

        def do_GET(self):
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            self.answer(coordinator.status(query.get("run", [""])[0]) + "\n")

        def answer(self, text):
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def look():
        while True:
            time.sleep(60)
            coordinator.look()

    def tidy():
        while True:
            coordinator.work.wait()
            coordinator.work.clear()
            coordinator.tidy()

    for work in (Server(("", port), Handler).serve_forever, look, tidy):
        threading.Thread(target=work, daemon=True).start()
