"""Coordinates a job: does what its machine decides (see machine.py), and tells it what has happened.

The coordinator runs beside nn-worker 0. Every replica, nn-worker 0 included, reports to it every few seconds, and the answer
says what to do. Only the coordinator decides, so all replicas agree. It needs nothing that a job may lack: no rights in the
cluster, no volume, no NATS, and no metrics gateway. If it is lost, nn-worker 0 is lost too, and the job has to restart anyway;
its successor learns the number of the attempt from the other replicas.

A volume may hang for minutes, and a replica that gets no answer meanwhile ends its command. So what touches a volume runs in
threads of its own, without the lock, which guards the machine.
"""

import queue
import threading
import time
import uuid

import checkpoints
import events
import record
from machine import Machine


class Coordinator:
    """A machine with clocks, threads, and volumes."""

    def __init__(self, settings, log, clock=time.monotonic, wall=time.time):
        self.settings, self.log, self.clock, self.wall = settings, log, clock, wall
        self.machine = Machine(settings, uuid.uuid4().hex, clock(), wall())
        self.lock = threading.Lock()
        self.record = record.Record(settings.state_directory, settings.job)
        self.known = {}  # see checkpoints.Found
        self.call = lambda: None  # has every replica report now
        # A scan and a removal take minutes on a network volume, and must not cost the claim.
        writing, finding, removing = queue.Queue(), queue.Queue(), queue.Queue()
        self.queues = {events.Load: writing, events.Save: writing, events.Scan: finding, events.Remove: removing}

    def happens(self, kind, *values):
        """Tell the machine of an event, act on it, and return the answer, if there is one."""
        answer = None
        with self.lock:
            for action in self.machine.decide(self.clock(), self.wall(), kind(*values)):
                if isinstance(action, events.Log):
                    self.log(action.text)
                elif isinstance(action, events.Answer):
                    answer = action.values
                elif isinstance(action, events.Call):
                    self.call()
                else:
                    self.queues[type(action)].put(action)
        return answer

    def report(self, member):
        """Take a replica's report, and return the answer. Raise a ValueError if it is not a whole one."""
        return self.happens(events.Reported, member)

    def status(self, run="", known=False):
        """Return the state of the job, for somebody or for its completion, which is known."""
        return self.happens(events.Asked, run, known)

    def metrics(self):
        self.happens(events.Ticked)
        with self.lock:
            return self.machine.metrics()

    def stays(self):
        self.happens(events.Ticked)
        with self.lock:
            return self.machine.stays()

    def release(self, seconds, call_seconds):
        """Record that the pod of this coordinator ends. Wait no longer than this for the volume, and for replicas that were called."""
        self.happens(events.Leaving)
        began = self.clock()
        left = seconds
        while self.clock() - began < left:
            time.sleep(0.05)
            with self.lock:
                left = max(seconds * (self.machine.changes != self.machine.saved), call_seconds * (not self.machine.heard_all()))

    def run(self):
        """Work from now on."""

        def tick():
            self.happens(events.Ticked)
            time.sleep(self.machine.moment())

        jobs = [lambda actions=actions: self.do(actions.get()) for actions in dict.fromkeys(self.queues.values())]
        for job in [tick] + jobs:
            threading.Thread(target=self.repeat, args=(job,), daemon=True).start()

    def repeat(self, job):
        """Work from now on. An unexpected error must not end the thread: the end of the job would never be recorded."""
        while True:
            try:
                job()
            except Exception as error:
                self.log(f"the coordinator continues after {error!r}")
                time.sleep(1)

    def do(self, action):
        """Do what the machine has decided on a volume, and tell it the result."""
        try:
            values = (None, *self.work(action))
        except Exception as error:
            values = (error,)
        self.happens(RESULTS[type(action)], *values)

    def work(self, action):
        if isinstance(action, events.Load):
            return (self.record.read(),)
        if isinstance(action, events.Save):
            return self.record.write(action.values, action.claimed)
        if isinstance(action, events.Scan):
            found = checkpoints.scan(self.settings.checkpoints, self.settings.older, self.known, action.values["memory"])
            return found, self.record.check(action.values, action.claimed)  # another may have claimed the run meanwhile
        checkpoints.remove(action.folder)
        return ()


# The event that follows an action.
RESULTS = {events.Load: events.Loaded, events.Save: events.Saved, events.Scan: events.Scanned, events.Remove: events.Removed}
