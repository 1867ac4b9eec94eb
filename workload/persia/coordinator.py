"""The coordinator of a job: keeps the replicas of all roles in the same attempt.

PERSIA cannot go on without a replica: trainers hang when one of them is gone, and a server
that starts again knows nothing of the training. So when a replica fails, all replicas end
their commands and start again together from the last checkpoint. That is an attempt.

The first trainer coordinates. Every replica, including the trainers, reports to it every
few seconds and is told what to do. Only the coordinator decides, so all replicas agree, and
it needs nothing that a job may lack: no rights in the cluster, no volume, no NATS, and no
metrics gateway. If it is lost, a trainer is lost, and the job must start again anyway; the
other replicas tell its successor which attempt they are in.

Threads share the coordinator under its lock. A volume may hang for minutes, and a replica
that cannot report counts as lost, so nothing that touches a volume holds the lock: keep and
tidy do that, in threads of their own.
"""

import collections
import threading
import time
import uuid

import checkpoints
from link import ANSWER_SECONDS
from memory import Memory, Superseded
from roster import Roster, busy, name

TRAINER, DATA_LOADER = "nn-worker", "dataloader"

# What a replica is told. An attempt starts only when no replica runs the one before, so no
# replica writes a checkpoint after the others have chosen theirs.
START, GO, STOP, DONE, FAILED = "start", "go", "stop", "done", "failed"

LONGEST_WAIT = 300

# reason says why an attempt ended. counts is whether it counts as a failure: a pod that is
# replaced, for a drained node or a new image, says nothing about the training. doubts is whether
# the checkpoint may be the cause.
Trouble = collections.namedtuple("Trouble", "reason counts doubts")


def failure(reason):
    return Trouble(reason, True, True)


class Coordinator:
    """Knows the replicas of a job and decides what they do."""

    def __init__(self, settings, log, clock=time.monotonic):
        self.settings, self.log, self.clock = settings, log, clock
        self.lock = threading.Lock()
        self.roster = Roster(settings.replicas, settings.lost_seconds)
        self.phase = STOP
        self.reason = "the job starts"
        self.attempt = 0
        self.not_before = 0  # when the next attempt may start
        self.started = 0  # when the last attempt started
        self.short = 0  # how many attempts in a row a replaced pod ended soon
        self.trainers_ended = None  # when the last trainer ended in this attempt
        self.resume = None  # the checkpoint that the attempt began with
        self.written = None  # the newest checkpoint that the attempt has written
        self.got_on = 0  # when the attempt last got on
        self.progressed = False  # whether it has got on since it began
        self.tells = False  # whether its trainers tell of their progress
        self.superseded = False
        # The end of a job whose pods end with it.
        self.began = clock()
        self.over_since = None  # when this coordinator first knew that the job is complete or has failed
        self.completion_told = False
        # The work of keep, and its results.
        self.memory = Memory(settings.state_directory, uuid.uuid4().hex)
        self.recording = threading.Lock()  # taken before lock
        self.recalled = False  # whether it is known what there was before
        self.ended = None  # why the last attempt ended, until that is counted
        self.starting = False  # whether all replicas wait for the next attempt
        self.changes = self.recorded = 0  # how many changes the memory has had, and its file
        self.unsaved = ""  # why the file does not have them
        self.unread, self.unread_reason = 0, ""  # how many scans in a row have failed, and why
        self.read_again = 0  # when the next one may begin
        self.scanning = None  # when the scan began that is under way
        self.work = threading.Event()  # set when keep has something to do
        self.unneeded = set()  # the checkpoints that tidy is to remove
        self.clutter = threading.Event()  # set when there are some

    # Reports.

    def report(self, member):
        """Take a replica's report, and return what it is to do."""
        with self.lock:
            key = (member["role"], member["replica"])
            # A kept address may lead to the coordinator of another job, which has the
            # address now.
            if member.get("coordinator", self.settings.coordinator) != self.settings.coordinator:
                return {"order": STOP, "run": None, "attempt": 0, "resume": None}
            # While a changed job rolls, replicas of the run before report too: they may
            # have finished that one.
            if not self.roster.expects(key) or member.get("run") != self.settings.run or self.superseded:
                return self.answer(STOP)
            before = self.roster.reports.get(key)
            if self.phase == START and before and self.roster.has_finished(before):
                # It is idle, so the attempt goes on without the replaced pod.
                member = dict(before, instance=member["instance"], pod=member["pod"])
            self.roster.take(key, member, self.clock())
            self.notice(before, member)
            if self.phase != START and member["attempt"] > self.attempt:
                self.meet(member["attempt"])
            if self.phase == FAILED and before and before["revision"] != member["revision"]:
                self.retry(key)
            if member.get("done") and self.phase == STOP:
                self.finish()
            self.advance(key, before)
            return self.order(key, member)

    def meet(self, attempt):
        """Go on from an attempt of which no record is known. The coordinator that started it may
        be cut off, and its own replica runs until it notices."""
        self.attempt = attempt
        if self.recalled:
            self.not_before = max(self.not_before, self.clock() + self.settings.lost_seconds + self.settings.stop_seconds)

    def notice(self, before, member):
        """Notice signs of progress, and a replica that may still run."""
        now = self.clock()
        if not before or any(before.get(what) != member.get(what) for what in ("attempt", "state", "progress")):
            self.got_on = now
        if member.get("progress") is not None and member["attempt"] == self.attempt:
            self.told_progress(before, member)
        if before and before["pod"] != member["pod"] and (busy(before) or before.get("begins")):
            # Its node may be cut off, and it ends its command only when it notices that.
            self.not_before = max(self.not_before, before["seen"] + self.settings.lost_seconds + self.settings.stop_seconds)

    def told_progress(self, before, member):
        """Record progress. A script reports it before it loads a checkpoint, so only the
        second report proves progress."""
        self.tells = True
        if not self.memory.tells:
            self.remember(tells=True)
        again = before and before["attempt"] == member["attempt"] and before["progress"] not in (None, member["progress"])
        if again and self.phase == START:
            self.prove()

    def prove(self):
        """Record that the attempt makes progress, so its first checkpoint is good."""
        if self.progressed:
            return
        self.progressed = True
        if self.resume:
            doubts = {path: count for path, count in self.memory.doubts.items() if path != self.resume}
            self.remember(proven=self.resume, doubts=doubts)

    def advance(self, key, before):
        """Change the phase if the last report allows or requires it."""
        if self.phase == START:
            trouble = self.trouble(key, before)
            if trouble:
                self.fail(trouble)
            elif self.roster.ended(TRAINER) and self.roster.ended(DATA_LOADER):
                self.finish()
        elif self.phase == STOP and not self.ended and not self.starting and self.ready():
            self.starting = True
            self.work.set()

    def ready(self):
        return self.clock() >= max(self.not_before, self.read_again) and self.roster.ready(self.clock())

    # Attempts.

    def trouble(self, key, before):
        """Return why the attempt cannot succeed, or None."""
        member = self.roster.reports[key]
        finished = self.roster.has_finished(member)
        if before and before["instance"] != member["instance"] and not finished:
            return Trouble(f"{name(key)} was restarted", *[before["pod"] == member["pod"]] * 2)
        if member.get("leaving") and not finished:
            return Trouble(f"{name(key)} was told to end", False, False)
        if member["attempt"] == self.attempt:
            if member["state"] == "failed":
                # Without GPUs, files, or NATS, an attempt fails with any checkpoint.
                return Trouble(f"{name(key)}: {member['reason']}", True, member.get("doubts", True))
            if member["state"] == "waiting":
                return Trouble(f"{name(key)} has ended its command", True, False)
            if finished and key[0] not in (TRAINER, DATA_LOADER) and not self.roster.ended(TRAINER):
                # PERSIA's servers never end by themselves.
                return failure(f"{name(key)} ended before the trainers")
        silent = self.roster.silent(self.clock())
        if silent:
            return Trouble(f"{name(silent)} has not been heard of for {self.settings.lost_seconds:g} s", True, False)
        return self.stuck()

    def stuck(self):
        """Return why the attempt cannot succeed although all replicas live, or None."""
        if not self.roster.ended(TRAINER):
            self.trainers_ended = None
            # All replicas may wait for each other forever. If the script does not report its
            # progress, only people can tell.
            if self.overdue() and self.tells:
                return failure(f"no trainer has made progress for {self.settings.stuck_seconds:g} s")
        elif self.trainers_ended is None:
            self.trainers_ended = self.clock()
        elif not self.roster.ended(DATA_LOADER) and self.clock() - self.trainers_ended > self.settings.end_seconds:
            # PERSIA ends a trainer's loop without an error when no data comes.
            return failure("the trainers ended before the data loaders had sent all data")
        return None

    def overdue(self):
        """Report whether the attempt has shown no progress for too long."""
        return 0 < self.settings.stuck_seconds < self.clock() - self.got_on

    def fail(self, trouble):
        """End the attempt. Whether the job has failed depends on its checkpoints, so keep
        counts the failure."""
        self.phase, self.reason, self.ended = STOP, trouble.reason, trouble
        self.starting = False
        self.not_before = max(self.not_before, self.clock())
        self.log(f"attempt {self.attempt} ends: {trouble.reason}")
        self.work.set()

    def count_failure(self, found):
        """Count the failure of the last attempt. Failures count from the last checkpoint: a
        job that makes progress may fail any number of times."""
        trouble, self.ended = self.ended, None
        failures = self.memory.failures if found.newest() == self.memory.checkpoint else 0
        failures += trouble.counts
        self.remember(failures=failures, checkpoint=found.newest(), running=False)
        if trouble.doubts and self.resume and not self.progressed:
            self.doubt(self.resume)
        if failures >= self.settings.attempts:
            self.phase, self.reason = FAILED, f"{failures} attempts failed without a new checkpoint, the last one because {trouble.reason}"
            self.remember(failed=self.reason)
            self.log("the job has failed: " + self.reason)
            return
        wait = max(self.pause(failures), self.pause_for_replaced(trouble))
        self.not_before = max(self.not_before, self.clock() + wait)
        self.log(f"attempt {self.attempt + 1} starts in {wait:g} s or later")

    def pause(self, failures):
        """Return how long to wait after failures in a row, in seconds."""
        return min(self.settings.backoff_seconds * 2 ** min(failures - 1, 16), LONGEST_WAIT) if failures else 0

    def pause_for_replaced(self, trouble):
        """Return how long to wait when a pod was replaced, in seconds. That is no failure, and
        once it costs nothing. A pod that is replaced again and again ends attempts soon."""
        soon = not trouble.counts and self.clock() - self.started < LONGEST_WAIT
        self.short = self.short + 1 if soon else 0
        return self.pause(self.short - 1) if self.short > 1 else 0

    def doubt(self, checkpoint):
        doubts = dict(self.memory.doubts)
        doubts[checkpoint] = doubts.get(checkpoint, 0) + 1
        self.remember(doubts=doubts)

    def choose(self, found):
        """Return the checkpoint for the next attempt, or None. It is the newest one, unless
        attempts that began with it failed before they got on: one, if the script tells of
        its progress, and two if it cannot be known how far they got."""
        paths = [checkpoint.path for checkpoint in found.complete]
        doubts = {path: count for path, count in self.memory.doubts.items() if path in paths}
        enough = 1 if self.memory.tells else 2
        trusted = [path for path in paths if doubts.get(path, 0) < enough]
        if paths and not trusted:
            # Something else is the cause.
            trusted, doubts = paths, {}
        if doubts != self.memory.doubts:
            self.remember(doubts=doubts)
        return trusted[0] if trusted else None

    def retry(self, key):
        """Start a failed job again after a change."""
        self.phase, self.reason = STOP, f"{name(key)} was changed"
        self.remember(failures=0, failed="")

    def finish(self):
        """The job is complete. The replicas remember it, too: each reports it to the
        coordinator's successor."""
        self.phase, self.ended, self.starting = DONE, None, False
        self.remember(done=True, running=False)
        self.log(f"finished in attempt {self.attempt}")

    # Answers.

    def order(self, key, member):
        """Return the order for a replica, with the data that it needs."""
        order = self.phase
        if order == START and member["attempt"] == self.attempt:
            order = GO
        # It may run although it never reports that.
        self.roster.reports[key]["begins"] = order == START
        return self.answer(order)

    def answer(self, order):
        return {
            "order": order, "run": self.settings.run, "attempt": self.attempt, "resume": self.resume,
            # So that a replica does not run beside the next attempt.
            "silence": self.silence(), "superseded": self.superseded,
        }

    def silence(self):
        """Return after how many seconds without an answer a replica ends its command. It is
        less than lost_seconds, since a replica that waits for an answer notices late, and
        kills what does not end by itself late."""
        late = 2 * (self.settings.beat_seconds + ANSWER_SECONDS)
        return max(self.settings.lost_seconds - late, self.settings.lost_seconds / 2)

    def status(self, run=""):
        """Return one line for people and for the job's completion, which asks about a run:
        this may be the coordinator of the run before, about to be replaced."""
        with self.lock:
            if run not in ("", self.settings.run):
                return f"waiting: the coordinator is of run {self.settings.run}"
            if self.superseded:
                return "waiting: a newer coordinator has taken over"
            if self.phase == DONE:
                text = self.completed()
                # Only the job's completion asks about a run.
                self.completion_told = self.completion_told or run != "" and text.startswith("complete ")
                return text
            if self.phase == FAILED:
                self.completion_told = self.completion_told or run != ""
                return f"failed: {self.reason}{self.trouble_saving()}"
            if self.phase == START:
                stuck = f"; no sign of progress for {self.settings.stuck_seconds:g} s or longer" if self.overdue() else ""
                finished = f"{self.roster.count(TRAINER)} trainers and {self.roster.count(DATA_LOADER)} data loaders have finished"
                return f"running attempt {self.attempt}: {finished}{stuck}{self.trouble_reading()}{self.trouble_saving()}"
            return f"waiting after attempt {self.attempt} ({self.unread_reason or self.reason}): {self.waits()}{self.trouble_reading()}{self.trouble_saving()}"

    def completed(self):
        """Return what to say of a job that is complete. Until that is recorded, the loss of
        all pods would start it again, so the job's completion waits."""
        if self.recorded == self.changes:
            return f"complete in attempt {self.attempt}"
        if self.unsaved or self.unread_reason:
            return f"finished in attempt {self.attempt}{self.trouble_saving()}"
        return f"finished in attempt {self.attempt}: recording that in {self.memory.file}"

    def stays(self):
        """Report whether this coordinator of a job that is complete or has failed must stay, in
        a job whose pods end with it: while trainers and data loaders have not left, and for a
        limited time while the completion has not been told or the end is not recorded."""
        with self.lock:
            if self.phase not in (DONE, FAILED):
                return True
            now = self.clock()
            if self.over_since is None:
                self.over_since = now
            # A replica that has never reported may have left on a predecessor's order.
            if len(self.roster.reports) < self.roster.total and now - self.began <= self.settings.lost_seconds:
                return True
            for key in self.roster.heard:
                present = now - self.roster.reports[key]["seen"] <= self.settings.lost_seconds
                if present and key[0] in (TRAINER, DATA_LOADER) and key != (TRAINER, 0):
                    return True
            known = self.completion_told and self.recorded == self.changes
            return not known and now - self.over_since <= self.settings.told_seconds

    def waits(self):
        waits = self.roster.missing(self.clock())
        more = f" and {len(waits) - 3} more" if len(waits) > 3 else ""
        return "; ".join(waits[:3]) + more or ("reading the checkpoints" if self.starting or self.ended else "backing off")

    def trouble_reading(self):
        """Return a text that says that a volume hangs or cannot be read, or ""."""
        since = self.clock() - self.scanning if self.scanning is not None else 0
        if since > self.settings.lost_seconds:
            return f"; a volume has not answered for {since:.0f} s"
        return f"; {self.unread_reason}" if self.unread_reason and self.phase == START else ""

    def trouble_saving(self):
        trouble = self.unsaved or self.phase == DONE and self.unread_reason
        return f"; this cannot be recorded: {trouble}" if trouble else ""

    # Work on volumes.

    def keep(self):
        """Do the work on volumes, except for removing checkpoints."""
        self.work.clear()
        self.recall()
        self.hold()
        self.record()
        self.scan()
        self.record()

    def recall(self):
        """Read and take over the predecessor's record."""
        if self.recalled or not self.rested():
            return
        try:
            self.scanning = self.clock()
            kept = self.memory.read()
        except OSError as error:
            self.unreadable(error)
            return
        finally:
            self.scanning = None
        with self.lock:
            self.recalled = True
            self.readable()
            self.memory.claim(kept, self.settings.pod)
            self.remember()
            if self.attempt > self.memory.attempt:
                self.meet(self.attempt)
            self.attempt = max(self.attempt, self.memory.attempt)
            if self.memory.revision != self.settings.revision:
                # A changed job starts again.
                self.remember(revision=self.settings.revision, failures=0, failed="", tells=False)
            if self.memory.done or self.phase == DONE:
                self.phase = DONE
                self.remember(done=True)
            elif self.memory.failed:
                self.phase, self.reason = FAILED, self.memory.failed
            elif kept.get("running"):
                self.take_over(kept.get("pod"))

    def take_over(self, pod):
        """End the attempt that the predecessor, in a pod, did not end."""
        self.resume = self.memory.resume
        self.progressed = self.resume == self.memory.proven
        if pod == self.settings.pod:
            self.fail(failure(f"{TRAINER} 0 was restarted"))
            return
        self.fail(Trouble(f"{TRAINER} 0 was replaced", False, False))
        # The predecessor may be cut off, and its trainer runs until it notices.
        self.not_before = self.clock() + self.settings.lost_seconds + self.settings.stop_seconds

    def rested(self):
        """Report whether a volume that could not be read may be tried again."""
        return self.clock() >= self.read_again

    def unreadable(self, error):
        """Wait until a volume can be read: an attempt would start from the beginning."""
        with self.lock:
            self.unread += 1
            self.read_again = self.clock() + self.pause(self.unread)
            reason = f"the checkpoints cannot be read: {error}"
            if self.unread == 1:
                self.log(reason)
            self.unread_reason = reason + (f", {self.unread} times in a row" if self.unread > 1 else "")
            self.starting = False

    def readable(self):
        self.unread, self.unread_reason = 0, ""

    def scan(self):
        """Read the checkpoints, and do the work that waits for them."""
        with self.lock:
            starting, ended = self.starting, self.ended
            wanted = starting or ended or self.phase == START
            if not wanted or not self.recalled or not self.rested():
                return
            self.scanning = self.clock()
        try:
            self.memory.check()
            found = checkpoints.scan(self.settings.checkpoints, self.settings.older)
        except OSError as error:
            self.unreadable(error)
            return
        except Superseded:
            self.stand_down()
            return
        finally:
            self.scanning = None
        with self.lock:
            self.readable()
            if ended or self.phase == START:
                self.notice_checkpoint(found)
            if self.phase != START:
                # Folders of later attempts may come back from a backup at any time.
                self.attempt = max(self.attempt, found.last_attempt)
            # What has changed since the scan began needs another one.
            if ended and self.ended is ended:
                self.count_failure(found)
            elif self.phase == START and not starting:
                self.drop(found.surplus(self.settings.keep, self.needed()))
            starting = starting and self.starting
            if starting:
                self.prepare(found)
        if starting:
            # The number of an attempt is not used twice, even if this process ends now.
            recorded = self.record()
            with self.lock:
                if recorded:
                    self.start(found)
                else:
                    self.starting = False
                    self.not_before = max(self.not_before, self.clock() + self.pause(1))

    def prepare(self, found):
        """Choose the checkpoint of the next attempt."""
        self.resume = self.choose(found)
        self.remember(attempt=self.attempt + 1, running=True, resume=self.resume)

    def start(self, found):
        """Start the attempt, unless something has happened while its number was recorded."""
        ready, self.starting = self.starting and self.phase == STOP and self.ready(), False
        if not ready or self.superseded:
            self.remember(running=False)
            return
        self.attempt = max(self.attempt + 1, self.memory.attempt)
        self.started = self.clock()
        self.phase, self.trainers_ended = START, None
        self.progressed = self.tells = False
        self.written = None
        self.roster.begin(self.attempt)
        self.got_on = self.clock()
        # The attempt may begin with a checkpoint that was to be removed before.
        self.unneeded = set()
        self.drop(found.surplus(self.settings.keep, self.needed()) + found.incomplete)
        self.log(f"attempt {self.attempt} starts from " + (self.resume or "the beginning"))

    def notice_checkpoint(self, found):
        """Notice a new checkpoint of this attempt. Others come back from a backup."""
        newest = found.newest(self.attempt)
        if newest and newest != self.written:
            self.written, self.got_on = newest, self.clock()
            self.log(f"new checkpoint {newest}")
            self.prove()

    def needed(self):
        """Return the checkpoints to keep at any age: the one that this attempt began with, and
        the last one from which an attempt made progress."""
        return {self.resume, self.memory.proven}

    def remember(self, **changes):
        """Have changes recorded."""
        self.memory.values.update(changes)
        self.changes += 1
        self.work.set()

    def hold(self):
        """Replace the record of an older coordinator: a volume that hung may have kept its
        last write until this one had written."""
        if not self.recalled or not self.rested():
            return
        try:
            self.scanning = self.clock()
            held = self.memory.check()
        except OSError:
            return  # scan and record tell of it
        except Superseded:
            self.stand_down()
            return
        finally:
            self.scanning = None
        if not held:
            with self.lock:
                self.changes += 1

    def record(self):
        """Record what has changed, and report whether the file has it. If not, keep tries again."""
        # The threads of keep and of release write one after the other, each what is known then.
        with self.recording:
            with self.lock:
                changes, values = self.changes, dict(self.memory.values)
                if not self.recalled or changes == self.recorded:
                    return self.recalled
            try:
                self.memory.write(values)
                trouble = ""
            except OSError as error:
                trouble = str(error)
            except Superseded:
                self.stand_down()
                return False
            with self.lock:
                if trouble and not self.unsaved:
                    self.log(f"the state of the run cannot be recorded: {trouble}")
                self.unsaved = trouble
                if not trouble:
                    self.recorded = changes
                return not trouble

    def stand_down(self):
        """Leave the job to a newer coordinator."""
        with self.lock:
            if not self.superseded:
                self.log("a newer coordinator has taken over: standing down")
            self.superseded, self.phase, self.unneeded = True, STOP, set()
            self.starting, self.ended = False, None

    def drop(self, paths):
        """Have checkpoints removed, in addition to those that could not be before."""
        self.unneeded.update(paths)
        if self.unneeded:
            self.clutter.set()

    def tidy(self):
        """Remove the checkpoints that are not needed any more. On a network volume this
        takes from minutes to hours."""
        with self.lock:
            # Remove the content of a folder before the folder.
            unneeded = sorted(self.unneeded, key=len, reverse=True)
        for folder in unneeded:
            with self.lock:
                if folder not in self.unneeded:
                    continue
            try:
                self.memory.check()
                checkpoints.remove(folder)
            except Superseded:
                self.stand_down()
                return
            except OSError as error:
                self.log(f"{folder} cannot be removed: {error}")
                continue
            with self.lock:
                self.unneeded.discard(folder)

    def run(self):
        """Keep the volumes in threads of their own from now on."""

        def keep():
            self.keep()
            due = self.unread or self.unsaved or self.phase == STOP
            self.work.wait(self.moment() if due else self.settings.look_seconds)

        def tidy():
            self.clutter.wait()
            self.clutter.clear()
            self.tidy()

        for work in (keep, tidy):
            threading.Thread(target=self.repeat, args=(work,), daemon=True).start()

    def repeat(self, work):
        """Work until a newer coordinator has taken over. An error that nothing expects must
        not end the thread: the job would go on, and its end would never be recorded."""
        while not self.superseded:
            try:
                work()
            except Exception as error:
                self.log(f"{work.__name__} goes on after {error!r}")
                time.sleep(self.moment())

    def moment(self):
        """Return the seconds until something is tried again that may succeed soon."""
        return max(0.1, min(self.settings.backoff_seconds, 1))

    def release(self, seconds):
        """Record that the attempt ends with this coordinator's pod. Do not wait for a
        volume that hangs."""
        with self.lock:
            self.remember(running=False)
        saving = threading.Thread(target=self.record, daemon=True)
        saving.start()
        saving.join(seconds)
