"""The ledger of a job: where its time went, and what ended its attempts."""

import collections
from typing import Any, Callable, Dict, List, Optional

from checkpoints import Checkpoint

# What a job does. Each of its seconds counts as one of these.
WAITING, STARTING, TRAINING, AGAIN, SAVING = ACTIVITIES = "waiting", "starting", "training", "training again", "saving"

# What an attempt does. How that counts is known when the attempt makes progress, writes a checkpoint, or ends.
STARTUP, RISK = "startup", "risk"

# Why attempts end.
LOST, SILENT, COMMAND, STUCK, REPLACED = "lost replica", "silent replica", "failed command", "no progress", "replaced pod"

# How many ends of attempts the record has, and how long one is in the metrics, in seconds.
ENDS, RECENT = 30, 6 * 3600

# The longest time between two coordinators that their clocks are believed, in seconds.
LONGEST_GAP = 30 * 24 * 3600


class Ledger:
    """Counts seconds by a clock. The wall clock, by which volumes date files, also measures the time between coordinators.

    In the values, "at" is when the last second was counted, "until" when the last one of an attempt was, "saved" when the newest
    checkpoint became complete, "unsaved" how long attempts have run since, "interval" the most that an attempt has run between two,
    "checkpoints" how many did, "away" for how much of the waiting the job had no pods, "lost" how many attempts have ended since
    "saved", "reports" is 1 if the script that trained last has reported its progress, "open" until the end of the last attempt is
    counted, "risked" what that had trained since "saved", and "kept" how many attempts continued with the memory of the servers."""

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self.clock, self.wall = clock, wall
        self.values: Dict[str, float] = dict.fromkeys(ACTIVITIES + (
            STARTUP, RISK, "at", "until", "saved", "unsaved", "interval", "checkpoints", "away", "lost", "reports", "open",
            "risked", "kept"), 0)
        self.causes: Dict[str, int] = collections.Counter()
        self.ends: List[Any] = []  # when the last attempts have ended, by which replica, and why
        self.trained: Dict[str, float] = {}  # how many seconds of training a checkpoint has
        self.written = 0  # how many checkpoints this attempt has
        self.activity: Optional[str] = WAITING
        self.last = clock()
        # When the last coordinator ended, how long the job had no pods then, and since when it has some.
        self.left, self.gap, self.since = 0.0, 0.0, float("inf")

    def record(self) -> Dict[str, Any]:
        """Return what the next coordinator needs."""
        self.count()
        return {"ledger": dict(self.values), "causes": dict(self.causes), "ends": self.ends, "trained": self.trained}

    def recall(self, kept: Dict[str, Any], over: bool) -> None:
        """Continue from the record of the previous coordinator. Since then, the job has waited, unless it was over."""
        if kept.get("ledger"):
            self.values.update(kept["ledger"])
            self.causes = collections.Counter(kept.get("causes"))
            self.ends, self.trained = kept.get("ends", []), kept.get("trained", {})
            self.left = self.values["at"]
            self.gap = 0 if over else min(max(0, self.wall() - self.left), LONGEST_GAP)
            self.values[WAITING] += self.gap
            self.values["away"] += self.gap
            self.last = self.clock()
            self.exists(self.since)

    def exists(self, since: float) -> None:
        """A replica has been there since some time. If nn-worker 0 alone was lost, the others' machines cost."""
        self.since = min(self.since, since)
        gap = min(self.gap, max(0, self.since - self.left))
        self.values["away"] -= self.gap - gap
        self.gap = gap

    def count(self) -> None:
        """Count the time since the last call."""
        now, self.values["at"] = self.clock(), self.wall()
        if self.activity:
            self.values[self.activity] += now - self.last
        if self.activity in (STARTUP, RISK):
            self.values["until"] = self.values["at"]
            self.values["unsaved"] += now - self.last
        self.last = now

    def turn(self, activity: Optional[str]) -> None:
        """Count the time from now on as another activity, or not at all."""
        self.count()
        self.activity = activity

    def move(self, before: str, after: str) -> None:
        self.values[after] += self.values[before]
        self.values[before] = 0

    def begin(self) -> None:
        """An attempt starts. If the end of the last one has not been counted, it ended with its coordinator's pod."""
        if self.values["open"]:
            self.lose(REPLACED)
        self.values["open"], self.written = 1, 0
        self.turn(STARTUP)

    def prove(self, reported: bool) -> None:
        """The attempt trains. Only a script that reports progress shows since when."""
        self.turn(RISK if self.activity == STARTUP else self.activity)
        self.move(STARTUP, STARTING if reported else RISK)
        self.values["reports"] = int(reported)

    def save(self, complete: List[Checkpoint], attempt: int) -> None:
        """Count what an attempt had trained until its new ones of all checkpoints, the newest of which is the first."""
        self.count()
        self.trained = {checkpoint.path: self.trained[checkpoint.path] for checkpoint in complete if checkpoint.path in self.trained}
        for checkpoint in [checkpoint for checkpoint in reversed(complete) if checkpoint.attempt == attempt]:
            since = max(0, self.values["until"] - checkpoint.time)
            trained = self.values[RISK] - since
            if checkpoint.time > self.values["saved"] and trained > 0:
                if self.written:
                    self.values["interval"] = max(self.values["interval"], self.values["unsaved"] - since)
                self.written += 1
                self.values["lost"] = 0
                saving = min(trained, checkpoint.seconds)
                self.values[RISK] = self.values["unsaved"] = since
                self.values[TRAINING] += trained - saving
                self.values[SAVING] += saving
                self.values["saved"] = checkpoint.time
                self.values["checkpoints"] += 1
                self.trained[checkpoint.path] = self.values[TRAINING]

    def resume(self, checkpoint: Optional[str]) -> float:
        """The next attempt starts from a checkpoint or the beginning. Return for how long it trains what newer ones have, in seconds."""
        again = self.values[TRAINING] - (self.trained.get(checkpoint, self.values[TRAINING]) if checkpoint else 0)
        self.values[TRAINING] -= again
        self.values[AGAIN] += again
        return again

    def lose(self, cause: str, replica: str = "") -> float:
        """The attempt has failed, maybe by a replica. Return how long it ran since its last checkpoint, in seconds."""
        self.count()
        ran = self.values[STARTUP] + self.values[RISK]
        self.causes[cause] += 1
        self.ends = (self.ends + [[self.wall(), replica, cause]])[-ENDS:]
        self.values["open"], self.values["risked"] = 0, self.values[RISK]
        self.values["lost"] += 1
        self.move(STARTUP, STARTING)
        self.move(RISK, AGAIN)
        return ran

    def keep(self, time: float) -> None:
        """The next attempt continues with the memory of the servers: it trains again what the last one had trained since some time."""
        kept = max(0, self.values["risked"] - max(0, self.values["until"] - time))
        self.values[AGAIN] -= kept
        self.values[RISK] += kept
        self.values["kept"] += 1
        self.values["lost"] = max(0, self.values["lost"] - 1)

    def finish(self) -> None:
        """The job is complete."""
        self.turn(None)
        self.move(STARTUP, TRAINING)
        self.move(RISK, TRAINING)

    def seconds(self) -> Dict[str, float]:
        """Return how long the job has done what. Time without pods, suspended or in a queue, is in none."""
        self.count()
        more = {STARTING: self.values[STARTUP], TRAINING: self.values[RISK], WAITING: -self.values["away"]}
        return {activity: self.values[activity] + more.get(activity, 0) for activity in ACTIVITIES}

    def metrics(self, saves: bool) -> Dict[str, float]:
        """Return the values of metrics by their names. saves is whether the job saves where its coordinator looks."""
        values: Dict[str, float] = {"persia_job_partial_attempts": self.values["kept"]}
        values.update({f'persia_job_seconds{{activity="{activity}"}}': round(seconds) for activity, seconds in self.seconds().items()})
        for cause, failures in self.causes.items():
            values[f'persia_job_failures_total{{cause="{cause}"}}'] = failures
        recent = collections.Counter((replica, cause) for when, replica, cause in self.ends if self.wall() - when < RECENT)
        for (replica, cause), attempts in recent.items():
            values[f'persia_job_ended_attempts{{replica="{replica}",cause="{cause}"}}'] = attempts
        if self.activity:
            values["persia_job_unsaved_seconds"] = round(self.values["unsaved"])
            if saves:
                values["persia_job_unsaved_attempts"] = self.values["lost"]
            if self.values["interval"]:
                values["persia_job_checkpoint_interval_seconds"] = round(self.values["interval"])
        return values
