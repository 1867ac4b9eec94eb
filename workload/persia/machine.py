"""Decides what the replicas of a job do: keeps those of all roles in the same attempt.

PERSIA cannot continue without a replica: nn-workers hang when one of them is lost, and a server that restarts has no part of
the model. So when a replica fails, all replicas start again together, in another attempt. Only servers may keep their memory.

The machine is a function from its state and an event to its next state and actions (see events.py). It has no threads, clocks,
files, or sockets: coordinator.py, which has them, decides nothing.
"""

import errno
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import ledger
import record
import speed
from checkpoints import Found
from events import (Action, Answer, Asked, Call, Event, Leaving, Load, Loaded, Log, Remove, Removed, Reported, Save, Saved, Scan, Scanned,
                    Ticked)
from link import ANSWER_SECONDS
from record import Foreign, Superseded, Values
from roster import DATALOADER, NN_WORKER, SERVER, Key, Roster, busy, check, name
from settings import Settings

# The orders. An attempt starts only when no replica runs the previous one, so no replica writes a checkpoint after the
# coordinator has chosen one. KEEP stops no server that has the memory of the attempt.
START, GO, STOP, KEEP, DONE, FAILED = "start", "go", "stop", "keep", "done", "failed"

# What a job does in a phase of its machine, for those who ask.
PHASES = {START: "running", STOP: "waiting", DONE: "done", FAILED: "failed"}

# The claim on the run: this coordinator has not read the record, holds the claim, or has lost it to a newer coordinator.
UNREAD, HELD, LOST = "unread", "held", "lost"

# The longest pause before an attempt, after how long one has made progress anyway, and how long an ended job waits to be asked.
LONGEST_PAUSE, LONG_ATTEMPT, LONGEST_UNASKED = 300, 6 * 3600, 600

# After how many seconds an attempt from a dense state that has saved another one counts like one with a checkpoint.
NEW_GROUND = 600

# After how many seconds a write of the record may have been held back, and have replaced the claim of a newer coordinator.
HELD_BACK = 1

# How many replicas report in a second at most while an attempt is about to start.
SOON = 4000


class Trouble(NamedTuple):
    """Why an attempt ended. counts is whether that counts as a failure: a pod that is replaced, for a drained node or a new
    image, proves nothing against the training. doubts is whether the checkpoint may be the cause. cause is the kind of reason,
    and replica who has it, for the ledger."""

    reason: str
    counts: bool
    doubts: bool
    cause: str
    replica: str = ""


class Chosen(NamedTuple):
    """What the next attempt starts from: a scan, when the record has a number of changes, and the dense state if servers keep
    their memory. before has the values of the record that the start changes."""

    found: Found
    change: int
    dense: Optional[str]
    before: Values


def trouble_of(key: Key, what: str, counts: bool, doubts: bool, cause: str) -> Trouble:
    """Return the Trouble that a replica makes."""
    return Trouble(name(key) + what, counts, doubts, cause, name(key).replace(" ", "-"))


def few(texts: List[str]) -> Values:
    """Return the first of some texts, and how many there are."""
    return {"first": texts[:3], "all": len(texts)}


def told(slow: Dict[Tuple[str, ...], float]) -> List[str]:
    """Return what to do with slow replicas, for people."""
    return [f"{replica} is slow: its {figure} has {share:.0%} of the speed of others; `kubectl cordon {node}` and `kubectl delete pod -n "
            f"persia {pod}` move it" for (replica, node, pod, figure), share in slow.items()]


class Machine:
    """What the coordinator knows of a job, and what it decides."""

    def __init__(self, settings: Settings, holder: str, now: float, wall: float) -> None:
        self.settings, self.holder = settings, holder
        self.now, self.wall = now, wall  # when the last event happened
        self.actions: List[Action] = []  # on that event
        self.ledger = ledger.Ledger(lambda: self.now, lambda: self.wall)
        self.roster = Roster(settings.replicas, settings.lost_seconds)
        self.phase = STOP
        self.reason = "the job starts"  # why the phase is STOP or FAILED
        self.attempt = 0
        self.starting = False  # whether the next attempt waits only for the volume
        self.chosen: Optional[Chosen] = None  # what it starts from
        self.ended: Optional[Trouble] = None  # what ended the last attempt, until it is counted
        self.not_before = 0.0  # when the next attempt may start
        self.replaced: Dict[str, float] = {}  # pods that have substitutes and still ran a command, and when that was first seen
        # The attempt that runs, or ran last.
        self.started = self.called = now  # when it started, or when this coordinator did; and when replicas were last called
        self.resume: Optional[str] = None  # the checkpoint that it started from
        self.dense: Optional[str] = None  # the dense state that it started from, if servers kept their memory
        self.loads: Set[Key] = set()  # the servers that load their part of the checkpoint before it
        # The servers that have the memory of the attempt, and the nn-workers, that others can ask.
        self.joined: Dict[str, Set[Key]] = {SERVER: set(), NN_WORKER: set()}
        self.written: Optional[str] = None  # the newest checkpoint that it has written
        self.progressed = False  # whether it has made progress
        self.progress_seen = now  # when it last showed progress
        self.reports_progress = False  # whether its script reports progress
        self.nn_workers_ended: Optional[float] = None  # when its last nn-worker finished
        self.short = 0  # how many attempts in a row a replaced pod ended soon
        self.stalled = False  # whether an attempt has ended without progress, and none has made any since
        # The end of a job whose pods end with it.
        self.began = self.over = now  # when this coordinator, and the end, began
        self.completion_asked = False  # whether the job's completion knows that it is complete or has failed
        self.lacks = ""  # what the machine of this coordinator lacks, for people
        self.slow: Dict[Tuple[str, ...], float] = {}  # see speed.slow
        # The record. changes counts its changes, saved those that the file has, sent those that are being written.
        self.values = record.blank(settings.job)
        self.changes = self.saved = self.sent = 0
        self.claim = UNREAD
        self.claimed: Optional[Values] = None  # the record from which the claim continues, until the file has the claim
        self.vouched = False  # whether no replica can run an attempt that this coordinator does not know of
        self.renewed = now  # when the claim was last renewed
        self.rival: Optional[List[Any]] = None  # the claim of another coordinator
        self.rival_seen = 0.0  # when that was first seen
        # The work on volumes. All failures to read in a row are one error for people.
        self.loading: Optional[float] = None  # since when
        self.saving: Optional[float] = None
        self.unsure: Optional[float] = None  # from when on a scan shows whether the last write has replaced another claim
        self.scanning: Optional[float] = None
        self.scan_for: Tuple[bool, Optional[Trouble]] = (False, None)  # the start or the end that the scan is for
        self.load_at = self.save_at = self.read_at = self.look_at = 0.0  # when to do so next
        self.failed_reads, self.read_error = 0, ""
        self.failed_writes, self.write_error, self.full = 0, "", False
        self.newest: Optional[Tuple[str, float]] = None  # the newest complete checkpoint that a scan has found, and its time
        self.strange: Dict[str, str] = {}  # see checkpoints.Found
        self.given_up: Dict[str, str] = {}
        self.unneeded: Dict[str, str] = {}  # the checkpoints to remove, with the reason
        self.queue: List[str] = []  # those whose removal has not failed, the next one last
        self.proving = False  # whether the record is being written to prove that this coordinator may remove one
        self.removing: Optional[str] = None

    def decide(self, now: float, wall: float, event: Event) -> List[Action]:
        """Return the actions on an event, with its time by a clock that only goes forward, and by the wall clock, in seconds."""
        self.now, self.wall, self.actions = now, wall, []
        HANDLERS[type(event)](self, event)
        self.work()
        return self.actions

    def log(self, text: str) -> None:
        self.actions.append(Log(text))

    def call(self) -> None:
        """Have every replica report now, because an attempt starts or ends."""
        self.called = self.now
        self.actions.append(Call())

    # Reports.

    def take_report(self, event: Reported) -> None:
        """Answer a replica's report. Raise NotWhole if it is not a whole one."""
        check(event.member)
        self.actions.append(Answer(self.answer_to(event.member)))

    def answer_to(self, member: Values) -> Values:
        key = (member["role"], member["replica"])
        # A replica may have kept an address that another job has now.
        if member.get("coordinator", self.settings.coordinator) != self.settings.coordinator:
            return {"order": STOP, "run": None, "attempt": 0, "resume": None}
        # While the pods of a changed job are replaced, replicas of the previous run report too, and may have finished that run.
        if not self.roster.expects(key) or member.get("run") != self.settings.run or self.claim == LOST:
            return self.answer(STOP)
        self.ledger.exists(member["since"])
        before = self.roster.reports.get(key)
        if before and before["pod"] != member["pod"] and self.saves():
            # Its substitute would end the attempt.
            return self.answer(STOP)
        if before and self.has_substitute(before, member):
            if busy(member):
                self.wait_for_silence(self.replaced.setdefault(member["pod"], self.now))
            return self.answer(STOP)
        if self.phase == START and before and self.roster.has_finished(before):
            # Its part is done, so the attempt continues without the replaced pod.
            member = dict(before, instance=member["instance"], pod=member["pod"], since=member["since"])
        self.roster.take(key, member, self.now)
        self.notice(key, before, member)
        if key[0] in self.joined and key not in self.joined[key[0]] and self.joins(member):
            self.joined[key[0]].add(key)
            if self.all_joined(key[0]):
                self.call()
        self.learn(member["attempt"])
        if self.phase == FAILED and before and before["revision"] != member["revision"]:
            self.retry(key)
        if member["done"] and self.phase == STOP and member["attempt"] == self.attempt > 0:
            self.finish()
        elif member.get("failed") and self.phase == STOP:
            self.give_up(member["failed"])
        self.advance(key, before)
        saves = self.phase == START and (NN_WORKER, 0) in self.roster.saving
        if saves != self.values["saves"]:
            self.remember(saves=saves)
        return self.order(key, member)

    def joins(self, member: Values) -> bool:
        """Report whether others can ask a replica, and it has the memory of the attempt if it is a server."""
        own = member["attempt"] == self.attempt and member["connected"]
        return bool(own and (member["role"] != SERVER or member["memory"] == self.values["memory"]))

    def all_joined(self, role: str) -> bool:
        return len(self.joined[role]) >= self.settings.replicas.get(role, 0)

    def has_substitute(self, before: Values, member: Values) -> bool:
        """Report whether a replica has a newer pod that reports. In turn with it, a pod of a lost node would end each attempt."""
        if before["pod"] == member["pod"] or before["leaving"] or self.now - before["seen"] > self.settings.lost_seconds:
            return False
        return bool(member["since"] < before["since"])

    def notice(self, key: Key, before: Optional[Values], member: Values) -> None:
        """Notice signs of progress, and a replica that may still run."""
        if not before or any(before.get(what) != member.get(what) for what in ("attempt", "state", "progress")):
            self.progress_seen = self.now
        if member["progress"] is not None and member["attempt"] == self.attempt:
            self.reports_progress = True
            # The script's first report comes before it loads a checkpoint, so only the second one proves progress.
            last = before["progress"] if before and before["attempt"] == self.attempt else None
            if last not in (None, member["progress"]) and self.phase == START:
                self.prove()
        if before and before["pod"] != member["pod"] and busy(before):
            self.wait_for_silence(before["seen"])
        if not before and self.claim == HELD and self.is_unknown(key, member):
            self.wait_to_be_left()

    def is_unknown(self, key: Key, member: Values) -> bool:
        """Report whether an older pod of a replica that is new here may run the last attempt on, where it reaches nobody."""
        return self.attempt > 0 and (not self.vouched or member["attempt"] < self.attempt and key != (NN_WORKER, 0))

    def prove(self) -> None:
        """Record that the attempt makes progress, so the checkpoint that it started from works."""
        if self.progressed:
            return
        self.progressed, self.stalled = True, False
        self.ledger.prove(self.reports_progress)
        if self.dense:
            self.remember(dense=None)
        elif self.resume:
            doubts = {path: count for path, count in self.values["doubts"].items() if path != self.resume}
            self.remember(proven=self.resume, doubts=doubts)

    def learn(self, attempt: int) -> None:
        """Take over the number of a later attempt, which is in no record, or in one that the volume held back. The
        coordinator that started it may be cut off, with a replica beside it that runs on."""
        if self.phase == START or attempt <= self.attempt:
            return
        self.attempt = attempt
        if self.claim != UNREAD:
            self.values["memory"] = 0  # nobody knows what its servers have trained
            self.roster.keep(0)
            self.wait_to_be_left()

    def wait_for_silence(self, since: float) -> None:
        """Start no attempt before a replica that is cut off since then has noticed that, and has ended its command. The next
        coordinator waits too, unless an attempt has started."""
        self.not_before = max(self.not_before, since + self.settings.lost_seconds + self.settings.stop_seconds)
        if not self.values["unheard"]:
            self.remember(unheard=True)

    def wait_to_be_left(self) -> None:
        """Start no attempt before another coordinator that may run has missed a replica, and those that it reaches have ended."""
        self.wait_for_silence(self.now + self.settings.lost_seconds - self.silence())

    def saves(self) -> bool:
        """Report whether an nn-worker whose pod ends may still save, for which it needs all others."""
        return self.phase == START and any(role == NN_WORKER for role, _ in self.roster.saving)

    def advance(self, key: Key, before: Optional[Values]) -> None:
        """Change the phase if the last report allows or requires that."""
        if self.phase == START:
            trouble = self.trouble(key, before)
            if trouble:
                self.fail(trouble)
            elif self.roster.ended(NN_WORKER) and self.roster.ended(DATALOADER):
                self.finish()
        elif self.phase == STOP and not self.ended and not self.starting and self.ready():
            self.starting = True

    def ready(self) -> bool:
        return self.claim == HELD and self.now >= self.not_before and self.now >= self.read_at and self.roster.ready(self.now)

    # The end of an attempt.

    def trouble(self, key: Key, before: Optional[Values]) -> Optional[Trouble]:
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
        if self.dense and key[0] == SERVER and key not in self.loads and member["memory"] != self.values["memory"]:
            return trouble_of(key, " lost its memory before the attempt", True, False, ledger.LOST)
        silent = self.roster.stale(self.roster.working, self.now)
        if silent:
            return trouble_of(silent, f" has not been heard of for {self.settings.lost_seconds:g} s", True, False, ledger.SILENT)
        return self.stuck()

    def stuck(self) -> Optional[Trouble]:
        """Return why the attempt cannot succeed although all replicas run, or None."""
        if not self.roster.ended(NN_WORKER):
            self.nn_workers_ended = None
            # All replicas may wait for each other forever. Without reports of progress, only people can find that out.
            if self.overdue() and self.reports_progress:
                return Trouble(f"no nn-worker has made progress for {self.settings.stuck_seconds:g} s", True, True, ledger.STUCK)
        elif self.nn_workers_ended is None:
            self.nn_workers_ended = self.now
        elif not self.roster.ended(DATALOADER) and self.now - self.nn_workers_ended > self.settings.end_seconds:
            # When no data comes, PERSIA ends the loop of an nn-worker without an error.
            return Trouble("the nn-workers ended before the dataloaders had sent all data", True, True, ledger.STUCK)
        return None

    def overdue(self) -> bool:
        """Report whether the attempt has shown no progress for too long."""
        return 0 < self.settings.stuck_seconds < self.now - self.progress_seen

    def fail(self, trouble: Trouble) -> None:
        """End the attempt. How it counts depends on the checkpoints, so they are found first."""
        self.phase, self.reason, self.ended, self.progress_seen = STOP, trouble.reason, trouble, self.now
        self.stalled = self.stalled or trouble.cause == ledger.STUCK
        self.starting, self.chosen = False, None
        self.roster.keep(self.values["memory"])
        self.ledger.turn(ledger.WAITING)
        self.not_before = max(self.not_before, self.now)
        self.call()
        self.log(f"attempt {self.attempt} ends: {trouble.reason}")

    def finish(self) -> None:
        """The job is complete. The replicas remember that too: each reports it to the next coordinator."""
        self.phase, self.ended, self.starting, self.chosen, self.over = DONE, None, False, None, self.now
        self.roster.keep(0)
        self.ledger.finish()
        self.remember(done=True, running=False)
        self.log(f"finished in attempt {self.attempt}")

    def give_up(self, reason: str) -> None:
        """The job has failed for good. Where its pods end with it, those that are left remember that too."""
        self.phase, self.reason, self.ended, self.starting, self.chosen, self.over = FAILED, reason, None, False, None, self.now
        self.roster.keep(0)
        self.ledger.turn(None)
        self.remember(failed=reason)
        self.log("the job has failed: " + reason)

    def retry(self, key: Key) -> None:
        """Start a failed job again after a change."""
        self.phase, self.reason = STOP, f"{name(key)} was changed"
        self.ledger.turn(ledger.WAITING)
        self.load_at = self.read_at = self.now
        self.remember(failures=0, failed="")

    def count_failure(self, trouble: Trouble, found: Found) -> None:
        """Count the failure of the last attempt. Failures count from the last checkpoint, or from the last attempt that ran for
        long, because a script may keep its checkpoints elsewhere: a job that makes progress may fail any number of times."""
        self.ended = None
        gained = self.dense and found.dense != self.dense and self.now - self.started > NEW_GROUND
        long = self.ledger.lose(trouble.cause, trouble.replica) > LONG_ATTEMPT
        worked = (long or gained) and trouble.cause != ledger.STUCK
        failures = 0 if worked or found.newest() != self.values["checkpoint"] else self.values["failures"]
        failures += trouble.counts
        self.remember(failures=failures, checkpoint=found.newest(), running=False)
        if trouble.doubts and self.resume and not self.dense and not self.progressed and not worked:
            doubts = self.values["doubts"]
            self.remember(doubts={**doubts, self.resume: doubts.get(self.resume, 0) + 1})
        if failures >= self.settings.attempts:
            self.give_up(f"{failures} attempts failed without a new checkpoint, the last one because {trouble.reason}")
            return
        # The first time, a replaced pod costs nothing. One that is replaced again and again ends attempt after attempt.
        soon = not trouble.counts and self.now - self.started < LONGEST_PAUSE
        self.short = self.short + 1 if soon else 0
        pause = max(self.pause(failures - (self.roster.memory > 0)), self.pause(max(self.short - 1, 0)))
        self.not_before = max(self.not_before, self.now + pause)
        self.log(f"attempt {self.attempt + 1} starts in {pause:g} s or later")

    def pause(self, failures: int) -> float:
        """Return how long to wait after failures in a row, in seconds."""
        return min(self.settings.backoff_seconds * 2.0 ** min(failures - 1, 16), LONGEST_PAUSE) if failures else 0

    # The record.

    def remember(self, **changes: Any) -> None:
        """Have changes recorded."""
        self.values.update(changes)
        self.changes += 1

    def take_record(self, event: Loaded) -> None:
        """Continue from the record of the previous coordinator, or notice that this cannot be read."""
        self.loading = None
        self.load_at = self.now + (self.settings.lost_seconds / 3 if self.claim == LOST else self.moment())
        if isinstance(event.error, Foreign):
            self.load_at = float("inf")
            self.give_up(str(event.error))
            self.saved = self.changes  # it is not this job's record
        elif self.claim == LOST:
            self.observe(event.kept)
        elif event.error:
            self.fail_read(str(event.error))
        else:
            assert event.kept is not None
            self.failed_reads, self.read_error = 0, ""
            if record.is_outranked(event.kept, self.settings.pod):
                saves = f"nn-worker 0 of the pod {event.kept.get('pod')} still saves: waiting for it"
                self.stand_down(saves if event.kept.get("saves") else "")
            else:
                self.recall(event.kept)

    def observe(self, kept: Optional[Values]) -> None:
        """Claim the run again if the claim of the other coordinator stands still, or for the first time when that has saved."""
        if kept is None:
            self.rival = None
            return
        claim = [kept.get(part) for part in ("term", "holder", "beat")]
        if claim != self.rival:
            self.rival, self.rival_seen = claim, self.now
        if not self.values["term"] and not record.is_outranked(kept, self.settings.pod):
            self.log("nn-worker 0 has saved: claiming the run")
        elif self.now - self.rival_seen > 2 * self.settings.lost_seconds:
            self.log(f"no coordinator has renewed its claim for {self.now - self.rival_seen:.0f} s: claiming the run")
        else:
            return
        self.recall(kept)

    def recall(self, kept: Values) -> None:
        """Claim the run, and continue from the record of the previous coordinator."""
        self.claim, self.claimed, self.rival = HELD, kept, None
        self.ledger.recall(kept, bool(kept.get("done") or kept.get("failed")))
        self.values = record.claimed(self.values, kept, self.settings.pod, self.holder)
        self.remember()
        self.attempt = max(self.attempt, self.values["attempt"])
        self.vouched = not kept.get("unheard") and (kept.get("pod") == self.settings.pod or bool(kept.get("released")))
        if any(self.is_unknown(key, member) for key, member in self.roster.reports.items()):
            self.wait_to_be_left()
        changed = self.values["servers"] != self.settings.replicas.get(SERVER)  # which divides the embeddings anew
        if not self.settings.partial or changed or self.attempt > self.values["attempt"]:
            self.values["memory"] = 0
        if self.values["revision"] != self.settings.revision:
            # A changed job starts again.
            self.ledger.values["reports"] = 0
            self.remember(revision=self.settings.revision, failures=0, failed="")
        if self.values["done"] or self.phase == DONE:
            self.phase = DONE
            self.remember(done=True)
        elif self.values["failed"]:
            self.phase, self.reason = FAILED, self.values["failed"]
        elif self.phase == FAILED:
            self.remember(failed=self.reason)
        elif kept.get("running"):
            self.take_over(kept.get("pod"))
        self.roster.keep(self.values["memory"] if self.phase == STOP else 0)
        self.ledger.turn(None if self.phase in (DONE, FAILED) else ledger.WAITING)

    def take_over(self, pod: Optional[str]) -> None:
        """End the attempt that the previous coordinator, in a pod, did not end."""
        self.resume, self.dense = self.values["resume"], self.values["dense"]
        self.progressed = self.resume == self.values["proven"] and not self.dense
        same = pod == self.settings.pod
        what = " was restarted" if same else " was replaced"
        self.fail(trouble_of((NN_WORKER, 0), what, same, False, ledger.LOST if same else ledger.REPLACED))

    def stand_down(self, why: str = "") -> None:
        """Leave the job to another coordinator, for as long as that renews its claim."""
        if self.claim != LOST:
            self.log(why or "a newer coordinator has taken over: standing down")
        self.claim, self.phase = LOST, STOP
        self.load_at = self.now + self.settings.lost_seconds / 3
        self.starting, self.chosen, self.ended = False, None, None
        self.roster.keep(0)
        self.unneeded, self.queue = {}, []
        self.saved = self.changes  # what is not recorded is void

    def take_saved(self, event: Saved) -> None:
        """Act on the result of a write."""
        began, self.saving = self.saving, None
        proves, self.proving = self.proving, False
        if self.claim != HELD:
            return
        if isinstance(event.error, Superseded):
            self.stand_down()
            return
        trouble = str(event.error) if event.error else ""
        if trouble:
            self.save_at = self.now + self.moment()
            if getattr(event.error, "errno", None) == errno.ESTALE and self.claimed is not None:
                # The previous coordinator may have recorded the end of the job.
                self.claim, self.load_at = UNREAD, self.now
        else:
            if self.claimed is not None or event.older:
                # A write that was not held back, and replaces this claim nevertheless, has done so when it is renewed.
                self.renewed = self.now + 2 * HELD_BACK - self.settings.lost_seconds / 3
            if event.older:
                # The volume held back the last write of an older coordinator, which has replaced the record.
                self.learn(event.older.get("attempt", 0))
            self.saved, self.claimed = self.sent, None
            if not event.safe and self.now - (began or 0) > HELD_BACK:
                # A newer coordinator renews its claim by then.
                self.unsure = self.now + self.settings.lost_seconds / 3 + HELD_BACK
        if trouble and not self.write_error:
            self.log(f"the state of the run cannot be recorded: {trouble}")
        elif event.full and not self.full:
            self.log("the volume is full; the record of the run is overwritten")
        self.failed_writes = self.failed_writes + 1 if trouble else 0
        self.write_error, self.full = trouble, event.full
        if proves and trouble:
            self.queue = []
        elif proves and self.queue:
            self.removing = self.queue.pop()
            self.log(f"removing {self.removing}: {self.unneeded[self.removing]}")
            self.actions.append(Remove(self.removing))
        if trouble and self.chosen:
            self.start(False)
        self.start_chosen()

    # The checkpoints.

    def take_scan(self, event: Scanned) -> None:
        """Act on the result of a scan for the start or end that waited when it began: a newer one needs another scan."""
        began, self.scanning = self.scanning, None
        if self.claim != HELD:
            return
        if isinstance(event.error, Superseded):
            self.stand_down()
            return
        found, over = event.found, self.phase in (DONE, FAILED)
        trouble = self.lost_checkpoint(found) if found and not over else str(event.error or "")
        if trouble or not found:
            self.fail_read(trouble)
            return
        self.look_at = self.now + self.settings.look_seconds
        if self.unsure and began and began >= self.unsure:
            self.unsure = None
        if event.older is not None and self.claimed is None:
            self.changes += 1
            self.learn(event.older.get("attempt", 0))
        self.failed_reads, self.read_error = 0, ""
        for path in set(found.strange) - set(self.strange):
            self.log(f"{path} is no checkpoint: {found.strange[path]}")
        for path in set(found.given_up) - set(self.given_up):
            self.log(f"PERSIA has given up the checkpoint {path}: {found.given_up[path]}")
        self.strange, self.given_up = found.strange, found.given_up
        self.newest = next(((checkpoint.path, checkpoint.time) for checkpoint in found.complete), None)
        before, self.slow = self.slow, speed.slow(self.roster.reports)
        for text in set(told(self.slow)) - set(told(before)):
            self.log(text)  # no attempt ends for that
        if not over:
            self.take_found(found)
        self.start_chosen()

    def lost_checkpoint(self, found: Found) -> str:
        """Return why a job must not begin again: its checkpoints are gone, or cannot be looked at now. Otherwise, return ""."""
        known = [path for path in (self.written, self.values["checkpoint"], self.values["resume"], self.values["proven"]) if path]
        if not known or found.complete:
            return ""
        for path in found.strange:
            if any((seen + "/").startswith(path + "/") for seen in known):
                return f"{path}: {found.strange[path]}"
        return (f"{known[0]} was complete, and neither it nor another one is there and complete; restore one, or give the job "
                "another runId, which starts the training over")

    def take_found(self, found: Found) -> None:
        starting, ended = self.scan_for
        if ended or self.phase == START:
            self.notice_checkpoint(found)
        self.ledger.save(found.complete, self.attempt)
        if self.phase != START:
            # Folders of later attempts may come back from a backup at any time.
            self.attempt = max(self.attempt, found.last_attempt)
        if ended and self.ended is ended:
            self.count_failure(ended, found)
        elif self.phase == START:
            self.drop_unneeded(found)
        if starting and self.starting:
            self.prepare(found)

    def prepare(self, found: Found) -> None:
        """Choose what the next attempt starts from, and have that recorded."""
        self.resume = self.choose(found)
        before = {name: self.values[name] for name in ("memory", "servers", "dense")}
        why = self.begins_anew(found) if self.roster.memory else "no server has kept its memory"
        if self.roster.memory and why:
            self.log(f"all servers start anew: {why}")
            self.roster.keep(0)
            if self.roster.busy:
                self.starting = False  # until the servers have ended
                return
        dense, memory, servers = found.dense, self.values["memory"], self.settings.replicas.get(SERVER, 0)
        if why:
            dense, memory = None, self.attempt + 1 if self.settings.partial else 0
            again = self.ledger.resume(self.resume)
            if again > 0:
                self.log(f"{self.resume} is not the newest checkpoint: {again:.0f} s are trained again")
        self.remember(attempt=self.attempt + 1, running=True, resume=self.resume, memory=memory, servers=servers, dense=dense)
        self.chosen = Chosen(found, self.changes, dense, before)
        self.drop(found.incomplete, "it is not complete")

    def begins_anew(self, found: Found) -> str:
        """Return why the next attempt starts with all servers anew, or "" if they keep their memory."""
        if not found.dense or found.dense == self.values["dense"]:
            return "no nn-worker has saved its dense state since"
        if found.incomplete:
            return "a checkpoint was being written"
        if found.complete and (found.complete[0].time >= found.dense_time or self.resume != found.newest()):
            return "the dense state is not of the newest checkpoint"
        if 2 * min(self.values["failures"], self.attempt + 1 - self.values["memory"]) > self.settings.attempts:
            return f"{self.values['failures']} attempts failed without a new checkpoint"
        return self.lost_memory()

    def lost_memory(self) -> str:
        """Return that too many servers have lost their memory, or ""."""
        lost, servers = len(self.roster.without_memory(SERVER)), self.settings.replicas[SERVER]
        too_many = lost > max(1, servers // 10) or lost and not self.resume
        return f"{lost} of {servers} servers have lost their memory" if too_many else ""

    def notice_checkpoint(self, found: Found) -> None:
        """Notice a new checkpoint of this attempt. Checkpoints of others come back from a backup."""
        newest = found.newest(self.attempt)
        if newest and newest != self.written:
            self.written, self.progress_seen = newest, self.now
            self.log(f"new checkpoint {newest}")
            self.prove()

    def choose(self, found: Found) -> Optional[str]:
        """Return the checkpoint for the next attempt, or None. It is the newest one, unless two attempts that started from it
        failed before they made progress: anything may fail once."""
        paths = [checkpoint.path for checkpoint in found.complete if checkpoint.path != self.removing]
        doubts = {path: count for path, count in self.values["doubts"].items() if path in paths}
        trusted = [path for path in paths if doubts.get(path, 0) < 2]
        if paths and not trusted:
            # Something else is the cause.
            trusted, doubts = paths, {}
        if doubts != self.values["doubts"]:
            self.remember(doubts=doubts)
        return trusted[0] if trusted else None

    def start_chosen(self) -> None:
        """Start the next attempt when its number is recorded: no number is used twice, even if this process ends now. On a full
        volume it waits for the removals, because it could write nothing either."""
        if self.chosen and self.saved >= self.chosen.change and not self.unsure and not (self.full and (self.queue or self.removing)):
            self.start(True)

    def start(self, recorded: bool) -> None:
        """Start the attempt, unless its number could not be recorded, or something has happened meanwhile."""
        assert self.chosen
        found, _, dense, before = self.chosen
        number = self.values["attempt"]
        ready = self.starting and self.phase == STOP and self.ready() and not (dense and self.lost_memory()) and self.attempt < number
        self.starting, self.chosen = False, None
        if not recorded:
            self.not_before = max(self.not_before, self.now + self.pause(1))
        if not ready or not recorded:
            self.remember(running=False, **before)
            return
        self.dense, self.loads = dense, set(self.roster.without_memory(SERVER)) if dense else set()
        self.joined = {role: set() for role in self.joined}
        self.roster.keep(0)
        self.attempt = number
        self.started = self.progress_seen = self.now
        self.phase, self.nn_workers_ended = START, None
        if dense:
            self.ledger.keep(found.dense_time)
        self.ledger.begin()
        self.progressed = self.reports_progress = False
        self.written = None
        self.look_at = self.now + self.settings.look_seconds
        self.roster.begin(self.attempt)
        self.remember(unheard=False)
        # The attempt may start from a checkpoint that was to be removed.
        self.unneeded, self.queue = {}, []
        self.drop_unneeded(found)
        self.drop(found.incomplete, "it is not complete")
        again = f"{self.dense}; servers keep their memory, except {len(self.loads)}" if self.dense else self.resume or "the beginning"
        self.call()
        self.log(f"attempt {self.attempt} starts from {again}")

    def drop_unneeded(self, found: Found) -> None:
        """Have old checkpoints removed, but not the one of this attempt, or the last one from which an attempt made progress."""
        self.drop(found.surplus(self.settings.keep, {self.resume, self.values["proven"]}), "newer ones are complete")
        if self.settings.partial:  # elsewhere, such folders are the script's
            self.drop(found.forgotten, "the servers' memory beside it is gone")

    def drop(self, folders: List[str], why: str) -> None:
        """Have checkpoints removed, also those whose removal has failed before."""
        self.unneeded.update(dict.fromkeys(folders, why))
        # The content of a folder before the folder.
        self.queue = sorted((folder for folder in self.unneeded if folder != self.removing), key=len)

    def take_removed(self, event: Removed) -> None:
        """Act on the result of a removal."""
        folder, self.removing = self.removing, None
        if event.error:
            self.log(f"{folder} cannot be removed: {event.error}")
        elif folder:
            self.unneeded.pop(folder, None)
        self.start_chosen()

    def fail_read(self, error: str) -> None:
        """Start no attempt until the volume can be read: it would start from the beginning."""
        self.failed_reads += 1
        self.read_at = self.load_at = self.now + max(self.pause(self.failed_reads), self.moment())
        self.read_error = error
        if self.failed_reads == 1:
            self.log(f"the checkpoints cannot be read: {error}")
        self.starting = False

    def moment(self) -> float:
        """Return how long to wait before trying again what may succeed soon, in seconds."""
        return max(0.1, min(self.settings.backoff_seconds, 1))

    # The work on volumes.

    def work(self) -> None:
        """Begin the work on volumes that is due."""
        if self.claim != HELD:
            if self.loading is None and self.now >= self.load_at:
                self.loading = self.now
                self.actions.append(Load())
            return
        if self.phase in (START, STOP) and self.now - self.renewed >= self.settings.lost_seconds / 3:
            self.renewed = self.now
            self.remember(beat=self.values["beat"] + 1)
        wants_proof = bool(self.queue) and self.removing is None
        if self.saving is None and self.now >= self.save_at and (self.changes != self.saved or wants_proof):
            self.saving, self.sent, self.proving = self.now, self.changes, wants_proof
            self.actions.append(Save(dict(self.values, **self.ledger.record()), self.claimed))
        wanted = self.ended or self.starting and not self.chosen or self.phase != STOP and self.now >= self.look_at or \
            self.unsure and self.now >= self.unsure
        if wanted and self.scanning is None and self.now >= self.read_at:
            self.scanning, self.scan_for = self.now, (self.starting and not self.chosen, self.ended)
            self.actions.append(Scan(dict(self.values), self.claimed))

    # Answers.

    def order(self, key: Key, member: Values) -> Values:
        """Return the answer to a replica's report."""
        order = self.phase
        if order == START and member["attempt"] == self.attempt:
            order = GO
        elif order == START and (key[0] != SERVER and (self.loads or not self.dense) and not self.all_joined(SERVER)
                                 or key[0] == DATALOADER and not self.all_joined(NN_WORKER)):
            # Nothing may be trained before each server has its part. Who asks somebody who is not there, waits for 10 s.
            order = STOP
        elif order == STOP and key[0] == SERVER and (self.claim == UNREAD or self.roster.keeps(member)):
            order = KEEP
        if order == START:
            following = self.roster.starts(key)
            # All wait for a data loader then, so it is not measured.
            return dict(self.answer(order), next=None if self.dense and key[0] == DATALOADER else following)
        return self.answer(order)

    def answer(self, order: str) -> Values:
        # An attempt is about to start. While servers keep their memory, that is all that takes time.
        soon = self.starting or self.roster.memory > 0 or self.phase == START and (
            order in (START, STOP) or not all(map(self.all_joined, self.joined)))
        return {
            "order": order, "run": self.settings.run, "attempt": self.attempt, "resume": self.resume,
            "memory": self.values["memory"], "dense": self.dense,
            "soon": max(1, self.roster.total / SOON) if soon else None,
            "silence": self.silence(), "superseded": self.claim == LOST, "reason": self.reason, "recorded": self.saved == self.changes,
        }

    def silence(self) -> float:
        """Return after how many seconds without an answer a replica ends its command, so that it does not run beside the next
        attempt. It notices late: it may wait for an answer, then for a new connection, and for the answer there."""
        return max(self.settings.lost_seconds - 4 * ANSWER_SECONDS, self.settings.lost_seconds / 2)

    def ask(self, event: Asked) -> None:
        """Answer a question about a run, because this may be the coordinator of the previous one."""
        document = self.document(event.run)
        self.completion_asked = self.completion_asked or event.known and document["phase"] in ("done", "failed")
        self.actions.append(Answer(document))

    def document(self, run: str) -> Values:
        """Return the state of the job, as of version 1. People and programs read it through the package internal/answer, which
        has the sentences, and complete.sh. What time alone changes follows the troubles."""
        phase, since = PHASES[self.phase], min(began for began in (self.loading, self.scanning, self.now) if began is not None)
        if self.phase == DONE and self.saved != self.changes:
            # Until that is recorded, the loss of all pods would start the job again.
            phase = "recording"
        phase = "another run" if run not in ("", self.settings.run) else "superseded" if self.claim == LOST else phase
        path, time = self.newest or (self.values["checkpoint"], self.ledger.values["saved"])
        account = self.ledger.record()
        return {
            "version": 1, "job": self.settings.job, "run": self.settings.run, "phase": phase, "attempt": self.attempt,
            "reason": "" if self.phase in (START, DONE) else self.reason,
            "waits": few(self.roster.missing(self.now) if self.phase == STOP else
                         [f"{name(key)} loads its part of {self.resume}" for key in sorted(self.loads - self.joined[SERVER])]),
            "partial": bool(self.dense),
            "looks": self.phase == STOP and bool(self.starting or self.ended),
            "finished": self.roster.finished, "replicas": self.settings.replicas,
            "record": record.path(self.settings.state_directory),
            "troubles": {
                "lacks": self.lacks, "stuck": self.settings.stuck_seconds if self.overdue() else 0, "full": self.full,
                "read": self.read_error, "reads": self.failed_reads, "write": self.write_error, "writes": self.failed_writes,
                "slow": few(told(self.slow)),
                "strange": few([f"{path} is no checkpoint: {why}" for path, why in self.strange.items()]),
            },
            "hangs": self.now - since if self.now - since > self.settings.lost_seconds else 0,
            "checkpoint": {"path": path, "age": self.wall - time} if path else None,
            "progress": self.now - self.progress_seen if self.reports_progress else None,
            "ledger": account["ledger"], "causes": account["causes"],
        }

    def metrics(self) -> Dict[str, float]:
        """Return the metrics of the job, which its gateway gets, unless a newer coordinator has taken over."""
        if self.claim == LOST:
            return {}
        values: Dict[str, float] = {
            "persia_job_attempt": self.attempt,
            "persia_job_failed": int(self.phase == FAILED),
            "persia_job_failures": self.values["failures"],
            # A script that never reports progress trains on without a sign.
            "persia_job_stuck": int(self.phase in (START, STOP) and (
                self.stalled or self.overdue() and (self.phase == STOP or self.reports_progress or self.ledger.values["reports"] > 0))),
        }
        for (replica, node, _, figure), share in self.slow.items():
            values[f'persia_job_slow_ratio{{figure="{figure}",node="{node}",replica="{replica}"}}'] = share
        values.update(self.ledger.metrics(bool(self.settings.checkpoints) and not self.settings.saves_elsewhere))
        return values

    def heard_all(self) -> bool:
        """Report whether every replica that is there has reported since the last call."""
        first = next(iter(self.roster.heard), None)
        return first is None or bool(self.roster.reports[first]["seen"] >= self.called)

    def stays(self) -> bool:
        """Report whether the pod of this coordinator must outlive a job that is complete or has failed, where pods end with
        their job: until nn-workers and dataloaders have left, the completion has asked, and the end is recorded. A completion
        that cannot run must not hold the nodes: what is recorded on a volume, the coordinator of a later JobSet answers."""
        if self.phase not in (DONE, FAILED):
            return True
        # A replica that has never reported may have left on the previous coordinator's order.
        if len(self.roster.reports) < self.roster.total and self.now - self.began <= self.settings.lost_seconds:
            return True
        for key in self.roster.heard:
            present = self.now - self.roster.reports[key]["seen"] <= self.settings.lost_seconds
            if present and key[0] in (NN_WORKER, DATALOADER) and key != (NN_WORKER, 0):
                return True
        heard = self.completion_asked or self.settings.checkpoints and self.now - self.over > LONGEST_UNASKED
        return not heard or self.saved != self.changes


HANDLERS: Dict[type, Callable[[Machine, Any], None]] = {
    Reported: Machine.take_report, Asked: Machine.ask, Ticked: lambda machine, event: None,
    Loaded: Machine.take_record, Saved: Machine.take_saved,
    Scanned: Machine.take_scan, Removed: Machine.take_removed,
    Leaving: lambda machine, event: machine.remember(running=False, saves=False, released=True),
}
