"""Coordinates a job: keeps the replicas of all roles in the same attempt.

PERSIA cannot continue without a replica: nn-workers hang when one of them is lost, and a server that restarts has no part of
the model. So when a replica fails, all replicas end their commands and start together from the last checkpoint. Each such start
is an attempt.

The coordinator runs beside nn-worker 0. Every replica, nn-worker 0 included, reports to it every few seconds, and the answer
says what to do. Only the coordinator decides, so all replicas agree. It needs nothing that a job may lack: no rights in the
cluster, no volume, no NATS, and no metrics gateway. If it is lost, nn-worker 0 is lost too, and the job has to restart anyway;
its successor learns the number of the attempt from the other replicas.

The coordinator's lock guards its state, and the keeper's (see keeper.py), which does the work on volumes.
"""

import collections
import threading
import time

import ledger
from keeper import Keeper
from link import ANSWER_SECONDS
from roster import Roster, busy, check, name

NN_WORKER, DATALOADER = "nn-worker", "dataloader"

# The orders. An attempt starts only when no replica runs the previous one, so no replica writes
# a checkpoint after the coordinator has chosen one.
START, GO, STOP, DONE, FAILED = "start", "go", "stop", "done", "failed"

# The longest pause before an attempt, how long one runs that made progress in any case, and how long a job that is
# over waits for its completion to ask, in seconds.
LONGEST_PAUSE, LONG_ATTEMPT, LONGEST_UNASKED = 300, 6 * 3600, 600

# reason is why an attempt ended. counts is whether that counts as a failure: a pod that is
# replaced, for a drained node or a new image, proves nothing against the training. doubts is
# whether the checkpoint may be the cause. cause is the kind of reason, and replica who has it, for the ledger.
Trouble = collections.namedtuple("Trouble", "reason counts doubts cause replica")


def trouble_of(key, what, counts, doubts, cause):
    """Return the Trouble that a replica makes."""
    return Trouble(name(key) + what, counts, doubts, cause, name(key).replace(" ", "-"))


class Coordinator:
    """Knows the last report of each replica, and decides what they do."""

    def __init__(self, settings, log, clock=time.monotonic, wall=time.time):
        self.settings, self.log, self.clock = settings, log, clock
        self.ledger = ledger.Ledger(clock, wall)
        self.lock = threading.Lock()
        self.keeper = Keeper(self, settings, clock)
        self.record = self.keeper.record
        self.roster = Roster(settings.replicas, settings.lost_seconds)
        self.phase = STOP
        self.reason = "the job starts"  # why the phase is STOP or FAILED
        self.attempt = 0
        self.starting = False  # whether the next attempt waits only for the keeper
        self.ended = None  # the Trouble that ended the last attempt, until it is counted
        self.not_before = 0  # when the next attempt may start
        self.superseded = False  # whether another coordinator has the run
        self.rivaled = False  # whether another coordinator may still lead replicas
        self.replaced = {}  # pods that have substitutes and still ran a command, and when that was first seen
        # The attempt that runs, or ran last.
        self.started = 0  # when it started
        self.resume = None  # the checkpoint that it started from
        self.written = None  # the newest checkpoint that it has written
        self.progressed = False  # whether it has made progress
        self.progress_seen = clock()  # when it last showed progress
        self.reports_progress = False  # whether its script reports progress
        self.nn_workers_ended = None  # when its last nn-worker finished
        self.short = 0  # how many attempts in a row a replaced pod ended soon
        # The end of a job whose pods end with it.
        self.began = self.over = clock()  # when this coordinator, and the end, began
        self.completion_asked = False  # whether the job's completion knows that it is complete or has failed
        self.lacks = ""  # what the machine of this coordinator lacks, for people
        self.stalled = False  # whether an attempt has ended without progress, and none has made any since

    # Reports.

    def report(self, member):
        """Take a replica's report, and return the answer. Raise NotWhole if it is not a whole one."""
        check(member)
        with self.lock:
            key = (member["role"], member["replica"])
            # A replica may have kept an address that another job has now.
            if member.get("coordinator", self.settings.coordinator) != self.settings.coordinator:
                return {"order": STOP, "run": None, "attempt": 0, "resume": None}
            # While the pods of a changed job are replaced, replicas of the previous run report
            # too, and may have finished that run.
            if not self.roster.expects(key) or member.get("run") != self.settings.run or self.superseded:
                return self.answer(STOP)
            self.ledger.exists(member["since"])
            before = self.roster.reports.get(key)
            if before and before["pod"] != member["pod"] and self.saves():
                # Its substitute would end the attempt.
                return self.answer(STOP)
            if before and self.has_substitute(before, member):
                if busy(member):
                    self.wait_for_silence(self.replaced.setdefault(member["pod"], self.clock()))
                return self.answer(STOP)
            if self.phase == START and before and self.roster.has_finished(before):
                # Its part is done, so the attempt continues without the replaced pod.
                member = dict(before, instance=member["instance"], pod=member["pod"], since=member.get("since", 0))
            self.roster.take(key, member, self.clock())
            self.notice(before, member)
            if self.phase != START and (not before or member["attempt"] > self.attempt):
                self.meet(member["attempt"])
            if self.phase == FAILED and before and before["revision"] != member["revision"]:
                self.retry(key)
            if member["done"] and self.phase == STOP and member["attempt"] == self.attempt > 0:
                self.finish()
            elif member.get("failed") and self.phase == STOP:
                self.give_up(member["failed"])
            self.advance(key, before)
            saves = self.phase == START and (NN_WORKER, 0) in self.roster.saving
            if saves != self.record.saves:
                self.keeper.remember(saves=saves)
                self.keeper.hurry.set()
            return self.order(key, member)

    def has_substitute(self, before, member):
        """Report whether a replica has a newer pod, which has reported. The pods of a lost node may
        run on, and reach the coordinator. In turn with their substitutes, they would end each attempt."""
        if before["pod"] == member["pod"] or before["leaving"] or self.clock() - before["seen"] > self.settings.lost_seconds:
            return False
        return member.get("since", 0) < before.get("since", 0)

    def notice(self, before, member):
        """Notice signs of progress, and a replica that may still run."""
        if not before or any(before.get(what) != member.get(what) for what in ("attempt", "state", "progress")):
            self.progress_seen = self.clock()
        if member.get("progress") is not None and member["attempt"] == self.attempt:
            self.notice_progress(before, member)
        if before and before["pod"] != member["pod"] and busy(before):
            self.wait_for_silence(before["seen"])

    def notice_progress(self, before, member):
        """Notice a report of progress. The script's first one comes before it loads a
        checkpoint, so only the second one proves progress."""
        self.reports_progress = True
        again = before and before["attempt"] == member["attempt"] and before["progress"] not in (None, member["progress"])
        if again and self.phase == START:
            self.prove()

    def prove(self):
        """Record that the attempt makes progress, so the checkpoint that it started from works."""
        if self.progressed:
            return
        self.progressed, self.stalled = True, False
        self.ledger.prove(self.reports_progress)
        if self.resume:
            doubts = {path: count for path, count in self.record.doubts.items() if path != self.resume}
            self.keeper.remember(proven=self.resume, doubts=doubts)

    def meet(self, attempt):
        """Notice a replica that may have obeyed another coordinator until now, which may be cut off with a replica beside
        it that runs on. It notices that when it has lost this one for long enough, and only then ends that command."""
        if attempt > self.attempt or attempt and self.rivaled:
            self.attempt = max(self.attempt, attempt)
            if self.keeper.loaded:
                self.wait_for_silence(self.clock() + self.settings.lost_seconds - self.silence())
        elif attempt < self.attempt and self.settings.once:
            # With JobSet, its last pod may run on, cut off just before this coordinator began.
            self.wait_for_silence(self.began)

    def wait_for_silence(self, since):
        """Start no attempt before a replica that is cut off since then has noticed that, and has
        ended its command. The next coordinator waits too, unless an attempt has started."""
        self.not_before = max(self.not_before, since + self.settings.lost_seconds + self.settings.stop_seconds)
        if not self.record.unheard:
            self.keeper.remember(unheard=True)

    def saves(self):
        """Report whether an nn-worker whose pod ends may still save, for which it needs all others."""
        return self.phase == START and any(role == NN_WORKER for role, _ in self.roster.saving)

    def advance(self, key, before):
        """Change the phase if the last report allows or requires that."""
        if self.phase == START:
            trouble = self.trouble(key, before)
            if trouble:
                self.fail(trouble)
            elif self.roster.ended(NN_WORKER) and self.roster.ended(DATALOADER):
                self.finish()
        elif self.phase == STOP and not self.ended and not self.starting and self.ready():
            self.starting = True
            self.keeper.work.set()

    def ready(self):
        now = self.clock()
        return now >= self.not_before and self.keeper.rested() and self.roster.ready(now)

    # The end of an attempt.

    def trouble(self, key, before):
        """Return why the attempt cannot succeed, or None."""
        member = self.roster.reports[key]
        finished = self.roster.has_finished(member)
        if before and before["instance"] != member["instance"] and not finished:
            same = before["pod"] == member["pod"]
            return trouble_of(key, " was restarted", same, False, ledger.LOST if same else ledger.REPLACED)
        if member.get("leaving") and not finished:
            return None if self.saves() else trouble_of(key, " was told to end", False, False, ledger.REPLACED)
        if member["attempt"] == self.attempt:
            if member["state"] == "failed":
                # Without GPUs, files, or NATS, an attempt fails with any checkpoint.
                return trouble_of(key, f": {member['reason']}", True, member.get("doubts", True), ledger.COMMAND)
            if member["state"] == "waiting":
                return trouble_of(key, " has ended its command", True, False, ledger.LOST)
            if finished and key[0] not in (NN_WORKER, DATALOADER) and not self.roster.ended(NN_WORKER):
                # PERSIA's servers never end by themselves.
                return trouble_of(key, " ended before the nn-workers", True, True, ledger.COMMAND)
        silent = self.roster.silent(self.clock())
        if silent:
            return trouble_of(silent, f" has not been heard of for {self.settings.lost_seconds:g} s", True, False, ledger.SILENT)
        return self.stuck()

    def stuck(self):
        """Return why the attempt cannot succeed although all replicas run, or None."""
        if not self.roster.ended(NN_WORKER):
            self.nn_workers_ended = None
            # All replicas may wait for each other forever. Without reports of progress, only people can find that out.
            if self.overdue() and self.reports_progress:
                return Trouble(f"no nn-worker has made progress for {self.settings.stuck_seconds:g} s", True, True, ledger.STUCK, "")
        elif self.nn_workers_ended is None:
            self.nn_workers_ended = self.clock()
        elif not self.roster.ended(DATALOADER) and self.clock() - self.nn_workers_ended > self.settings.end_seconds:
            # When no data comes, PERSIA ends the loop of an nn-worker without an error.
            return Trouble("the nn-workers ended before the dataloaders had sent all data", True, True, ledger.STUCK, "")
        return None

    def overdue(self):
        """Report whether the attempt has shown no progress for too long."""
        return 0 < self.settings.stuck_seconds < self.clock() - self.progress_seen

    def fail(self, trouble):
        """End the attempt. How it counts depends on the checkpoints, so the keeper reads them first."""
        self.phase, self.reason, self.ended = STOP, trouble.reason, trouble
        self.progress_seen = self.clock()
        self.stalled = self.stalled or trouble.cause == ledger.STUCK
        self.starting = False
        self.ledger.turn(ledger.WAITING)
        self.not_before = max(self.not_before, self.clock())
        self.log(f"attempt {self.attempt} ends: {trouble.reason}")
        self.keeper.work.set()

    def finish(self):
        """The job is complete. The replicas remember that too: each reports it to the next coordinator."""
        self.phase, self.ended, self.starting, self.over = DONE, None, False, self.clock()
        self.ledger.finish()
        self.keeper.remember(done=True, running=False)
        self.log(f"finished in attempt {self.attempt}")
        self.log(str(self.ledger))

    def give_up(self, reason):
        """The job has failed for good. Where its pods end with it, those that are left remember that too."""
        self.phase, self.reason, self.ended, self.starting, self.over = FAILED, reason, None, False, self.clock()
        self.ledger.turn(None)
        self.keeper.remember(failed=reason)
        self.log("the job has failed: " + reason)

    def retry(self, key):
        """Start a failed job again after a change."""
        self.phase, self.reason = STOP, f"{name(key)} was changed"
        self.ledger.turn(ledger.WAITING)
        self.keeper.read_again = 0
        self.keeper.remember(failures=0, failed="")

    def count_failure(self, found):
        """Count the failure of the last attempt. Failures count from the last checkpoint, or from the last attempt that ran for
        long, because a script may keep its checkpoints elsewhere: a job that makes progress may fail any number of times."""
        trouble, self.ended = self.ended, None
        worked = self.ledger.lose(trouble.cause, trouble.replica) > LONG_ATTEMPT and trouble.cause != ledger.STUCK
        self.log(str(self.ledger))
        failures = 0 if worked or found.newest() != self.record.checkpoint else self.record.failures
        failures += trouble.counts
        self.keeper.remember(failures=failures, checkpoint=found.newest(), running=False)
        if trouble.doubts and self.resume and not self.progressed and not worked:
            self.doubt(self.resume)
        if failures >= self.settings.attempts:
            self.give_up(f"{failures} attempts failed without a new checkpoint, the last one because {trouble.reason}")
            return
        pause = max(self.pause(failures), self.pause_for_replaced(trouble))
        self.not_before = max(self.not_before, self.clock() + pause)
        self.log(f"attempt {self.attempt + 1} starts in {pause:g} s or later")

    def pause(self, failures):
        """Return how long to wait after failures in a row, in seconds."""
        return min(self.settings.backoff_seconds * 2 ** min(failures - 1, 16), LONGEST_PAUSE) if failures else 0

    def pause_for_replaced(self, trouble):
        """Return how long to wait after a pod was replaced, in seconds. The first time, that
        costs nothing. A pod that is replaced again and again ends one attempt after the other."""
        soon = not trouble.counts and self.clock() - self.started < LONGEST_PAUSE
        self.short = self.short + 1 if soon else 0
        return self.pause(self.short - 1) if self.short > 1 else 0

    def doubt(self, checkpoint):
        doubts = dict(self.record.doubts)
        doubts[checkpoint] = doubts.get(checkpoint, 0) + 1
        self.keeper.remember(doubts=doubts)

    # The start of an attempt. The keeper calls these, with the lock.

    def runs(self):
        return self.phase == START

    def waits(self):
        return self.phase == STOP and not self.superseded

    def recall(self, kept):
        """Continue from the record of the previous coordinator."""
        self.ledger.recall(kept, kept.get("done") or kept.get("failed"))
        # JobSet starts a substitute while the old pod ends, and a StatefulSet afterwards.
        another = kept.get("pod") != self.settings.pod and (kept.get("running") or self.settings.once)
        self.rivaled = bool(another or kept.get("unheard") or self.attempt > kept.get("attempt", 0))
        self.record.claim(kept, self.settings.pod)
        self.keeper.remember()
        self.attempt = max(self.attempt, self.record.attempt)
        for attempt in [self.attempt] + [report["attempt"] for report in self.roster.reports.values()]:
            self.meet(attempt)
        if self.record.revision != self.settings.revision:
            # A changed job starts again.
            self.ledger.values["reports"] = 0
            self.keeper.remember(revision=self.settings.revision, failures=0, failed="")
        if self.record.done or self.phase == DONE:
            self.phase = DONE
            self.keeper.remember(done=True)
        elif self.record.failed:
            self.phase, self.reason = FAILED, self.record.failed
        elif self.phase == FAILED:
            self.keeper.remember(failed=self.reason)
        elif kept.get("running"):
            self.take_over(kept.get("pod"))
        self.ledger.turn(None if self.phase in (DONE, FAILED) else ledger.WAITING)

    def take_over(self, pod):
        """End the attempt that the previous coordinator, in a pod, did not end."""
        self.resume = self.record.resume
        self.progressed = self.resume == self.record.proven
        if pod == self.settings.pod:
            self.fail(trouble_of((NN_WORKER, 0), " was restarted", True, False, ledger.LOST))
            return
        self.fail(trouble_of((NN_WORKER, 0), " was replaced", False, False, ledger.REPLACED))

    def waits_for(self):
        """Return the start and the end of an attempt, if they wait for the checkpoints."""
        return self.starting, self.ended

    def take(self, found, waited):
        """Act on the result of a scan for the start or end that waited when it began: a newer one
        needs another scan. Report whether the next attempt has its checkpoint, and may start."""
        (starting, ended), written = waited, self.written
        if ended or self.phase == START:
            self.notice_checkpoint(found)
        self.ledger.save(found.complete, self.attempt)
        if self.written != written and not ended:
            self.log(str(self.ledger))
        if self.phase != START:
            # Folders of later attempts may come back from a backup at any time.
            self.attempt = max(self.attempt, found.last_attempt)
        if ended and self.ended is ended:
            self.count_failure(found)
        elif self.phase == START and not starting:
            self.drop_unneeded(found)
        if starting and self.starting:
            self.resume = self.choose(found)
            again = self.ledger.resume(self.resume)
            if again > 0:
                self.log(f"{self.resume} is not the newest checkpoint: {ledger.duration(again)} are trained again")
            self.keeper.remember(attempt=self.attempt + 1, running=True, resume=self.resume, unheard=False)
        return starting and self.starting

    def notice_checkpoint(self, found):
        """Notice a new checkpoint of this attempt. Checkpoints of others come back from a backup."""
        newest = found.newest(self.attempt)
        if newest and newest != self.written:
            self.written, self.progress_seen = newest, self.clock()
            self.log(f"new checkpoint {newest}")
            self.prove()

    def choose(self, found):
        """Return the checkpoint for the next attempt, or None. It is the newest one, unless two
        attempts that started from it failed before they made progress: anything may fail once."""
        paths = [checkpoint.path for checkpoint in found.complete]
        doubts = {path: count for path, count in self.record.doubts.items() if path in paths}
        trusted = [path for path in paths if doubts.get(path, 0) < 2]
        if paths and not trusted:
            # Something else is the cause.
            trusted, doubts = paths, {}
        if doubts != self.record.doubts:
            self.keeper.remember(doubts=doubts)
        return trusted[0] if trusted else None

    def start(self, found, recorded):
        """Start the attempt, unless its number could not be recorded, or something has happened meanwhile."""
        ready, self.starting = self.starting and self.phase == STOP and self.ready(), False
        if not recorded:
            self.not_before = max(self.not_before, self.clock() + self.pause(1))
        if not ready or not recorded or self.superseded:
            self.keeper.remember(running=False)
            return
        self.attempt = max(self.attempt + 1, self.record.attempt)
        self.started = self.progress_seen = self.clock()
        self.phase, self.nn_workers_ended = START, None
        self.ledger.begin()
        self.progressed = self.reports_progress = False
        self.written = None
        self.roster.begin(self.attempt)
        # The attempt may start from a checkpoint that was to be removed.
        self.keeper.unneeded = {}
        self.drop_unneeded(found)
        self.keeper.drop(found.incomplete, "it is not complete")
        self.log(f"attempt {self.attempt} starts from " + (self.resume or "the beginning"))

    def drop_unneeded(self, found):
        """Have old checkpoints removed, except the one that this attempt started from, and the
        last one from which an attempt made progress."""
        self.keeper.drop(found.surplus(self.settings.keep, {self.resume, self.record.proven}), "newer ones are complete")

    def stand_down(self, why="a newer coordinator has taken over: standing down"):
        """Leave the job to another coordinator, for as long as that renews its claim."""
        if not self.superseded:
            self.log(why)
        self.superseded, self.phase = True, STOP
        self.starting, self.ended = False, None

    # Answers.

    def order(self, key, member):
        """Return the answer to a replica's report."""
        order = self.phase
        if order == START and member["attempt"] == self.attempt:
            order = GO
        if order == START:
            self.roster.starts(key)
        return self.answer(order)

    def answer(self, order):
        return {
            "order": order, "run": self.settings.run, "attempt": self.attempt, "resume": self.resume,
            "silence": self.silence(), "superseded": self.superseded, "reason": self.reason, "recorded": self.keeper.saved(),
        }

    def silence(self):
        """Return after how many seconds without an answer a replica ends its command, so that it does not run beside the next
        attempt. The time is shorter than lost_seconds, because a replica that waits for an answer notices late: it may wait for
        one, then for a new connection, and for the answer there."""
        return max(self.settings.lost_seconds - 4 * ANSWER_SECONDS, self.settings.lost_seconds / 2)

    def status(self, run="", known=False):
        """Return one line for people and for the job's completion, which is known by its token. The
        completion asks about a run, because this may be the coordinator of the previous one."""
        with self.lock:
            if run not in ("", self.settings.run):
                return "waiting: the coordinator is of another run"
            if self.superseded:
                return "waiting: the coordinator of another pod has the run"
            if self.phase == DONE:
                text = self.completed()
                self.completion_asked = self.completion_asked or known and text.startswith("complete ")
                return text
            saving, reading = self.keeper.trouble_saving() + self.keeper.trouble_found(), self.keeper.trouble_reading()
            if self.phase == FAILED:
                self.completion_asked = self.completion_asked or known
                return f"failed: {self.reason}{saving}"
            if self.phase == START:
                reading = reading or self.keeper.trouble_read()
                return f"running attempt {self.attempt}: {self.running()}{reading}{saving}"
            return f"waiting after attempt {self.attempt} ({self.keeper.read_error or self.reason}): {self.waiting()}{reading}{saving}"

    def completed(self):
        """Return the status of a complete job. Until that is recorded, the loss of all pods would
        start the job again, so the completion waits."""
        if self.keeper.saved():
            return f"complete in attempt {self.attempt}"
        trouble = self.keeper.trouble_saving() or self.keeper.trouble_read("this cannot be recorded: ")
        return f"finished in attempt {self.attempt}{trouble or ': recording that in ' + self.record.file}"

    def running(self):
        finished = f"{self.roster.count(NN_WORKER)} nn-workers and {self.roster.count(DATALOADER)} dataloaders have finished"
        return finished + (f"; no sign of progress for {self.settings.stuck_seconds:g} s or longer" if self.overdue() else "")

    def waiting(self):
        waits = self.roster.missing(self.clock())
        more = f" and {len(waits) - 3} more" if len(waits) > 3 else ""
        waits = "; ".join(waits[:3]) + more or ("reading the checkpoints" if self.starting or self.ended else "backing off")
        return "; ".join(filter(None, (waits, self.lacks)))

    def metrics(self):
        """Return the metrics of the job, which its gateway gets, unless another coordinator has the run."""
        with self.lock:
            if self.superseded:
                return {}
            values = {
                "persia_job_attempt": self.attempt,
                "persia_job_failed": int(self.phase == FAILED),
                "persia_job_failures": self.record.failures,
                # A script that never reports progress trains on without a sign.
                "persia_job_stuck": int(self.phase in (START, STOP) and (
                    self.stalled or self.overdue() and (self.phase == STOP or self.reports_progress or self.ledger.values["reports"]))),
            }
            values.update(self.ledger.metrics(self.settings.checkpoints and not self.settings.saves_elsewhere))
            return values

    def stays(self):
        """Report whether the pod of this coordinator must outlive a job that is complete or has failed, where pods end with
        their job: until nn-workers and dataloaders have left, the completion has asked, and the end is recorded. A completion
        that cannot run must not hold the nodes: what is recorded on a volume, the coordinator of a later JobSet answers."""
        with self.lock:
            if self.phase not in (DONE, FAILED):
                return True
            now = self.clock()
            # A replica that has never reported may have left on the previous coordinator's order.
            if len(self.roster.reports) < self.roster.total and now - self.began <= self.settings.lost_seconds:
                return True
            for key in self.roster.heard:
                present = now - self.roster.reports[key]["seen"] <= self.settings.lost_seconds
                if present and key[0] in (NN_WORKER, DATALOADER) and key != (NN_WORKER, 0):
                    return True
            heard = self.completion_asked or self.settings.checkpoints and now - self.over > LONGEST_UNASKED
            return not heard or not self.keeper.saved()
