"""Works on the volumes of a job for its coordinator: reads and writes the record of the run, finds checkpoints, and removes
those that are not needed.

A volume may hang for minutes, and a replica that gets no answer meanwhile ends its command. So all of this runs in threads of
its own, and nothing that touches a volume holds the coordinator's lock, which guards the state of both.
"""

import errno
import os
import threading
import time
import uuid

import checkpoints
from record import Foreign, Record, Superseded


class Keeper:
    """Works on the volumes for a coordinator."""

    def __init__(self, coordinator, settings, clock):
        self.coordinator, self.settings, self.clock = coordinator, settings, clock
        self.lock = coordinator.lock
        self.record = Record(settings.state_directory, uuid.uuid4().hex, settings.job)
        self.work = threading.Event()  # set when keep has something to do
        self.hurry = threading.Event()  # set when hold has something to record that cannot wait for a scan
        self.loaded = False  # whether the record of the previous coordinator is read
        # Reading. All failures in a row are one error for people.
        self.reading = None  # when the read began that has not returned
        self.failed_reads, self.read_error = 0, ""
        self.read_again = 0.0  # when to read next after a failure
        self.known, self.strange, self.given_up = {}, {}, {}  # see checkpoints.Found
        # Writing. changes counts the changes of the record, recorded those that the file has.
        self.recording = threading.Lock()  # taken before lock
        self.changes = self.recorded = 0
        self.failed_writes, self.write_error = 0, ""
        # The claim of the coordinator that has the run, and when it was first seen.
        self.claim, self.claim_seen = None, 0
        # Removing.
        self.unneeded = {}  # the checkpoints to remove, with the reason
        self.clutter = threading.Event()  # set when there are some

    # For the coordinator, with the lock.

    def remember(self, **changes):
        """Have changes recorded."""
        self.record.values.update(changes)
        self.changes += 1
        self.work.set()

    def saved(self):
        """Report whether the file has all changes."""
        return self.recorded == self.changes

    def drop(self, paths, why):
        """Have checkpoints removed, also those whose removal has failed before."""
        self.unneeded.update(dict.fromkeys(paths, why))
        if self.unneeded:
            self.clutter.set()

    def rested(self):
        """Report whether to read a volume again after a failure."""
        return self.clock() >= self.read_again

    def trouble_reading(self):
        """Return that a volume hangs, for people, or ""."""
        since = self.clock() - self.reading if self.reading is not None else 0
        return f"; a volume has not answered for {since:.0f} s" if since > self.settings.lost_seconds else ""

    def trouble_read(self, prefix=""):
        """Return why a volume could not be read, for people, or ""."""
        return f"; {prefix}{self.read_error}" if self.read_error else ""

    def trouble_saving(self):
        """Return why the record cannot be written, for people, or ""."""
        if not self.write_error:
            return "; the volume is full" if self.record.full else ""
        times = f", {self.failed_writes} times in a row" if self.failed_writes > 1 else ""
        return f"; this cannot be recorded: {self.write_error}{times}"

    def trouble_found(self):
        """Return what is no checkpoint although it may look like one, for people, or ""."""
        for path, why in self.strange.items():
            more = f", and {len(self.strange) - 1} more" if len(self.strange) > 1 else ""
            return f"; {path} is no checkpoint: {why}{more}"
        return ""

    # In threads of their own.

    def run(self):
        """Work from now on."""

        def keep():
            self.keep()
            soon = self.failed_reads or self.write_error or self.coordinator.waits()
            self.work.wait(self.moment() if soon else self.settings.look_seconds)

        def tidy():
            self.clutter.wait()
            self.clutter.clear()
            self.tidy()

        def hold():
            # A scan of the checkpoints takes minutes, and must not cost the claim.
            self.hurry.clear()
            self.hold()
            self.hurry.wait(self.settings.lost_seconds / 3)

        for work in (keep, tidy, hold):
            threading.Thread(target=self.repeat, args=(work,), daemon=True).start()

    def repeat(self, work):
        """Work from now on. An unexpected error must not end the thread: the job would continue, and
        its end would never be recorded."""
        while True:
            try:
                work()
            except Exception as error:
                self.coordinator.log(f"{work.__name__} continues after {error!r}")
                time.sleep(self.moment())

    def moment(self):
        """Return how long to wait before trying again what may succeed soon, in seconds."""
        return max(0.1, min(self.settings.backoff_seconds, 1))

    def keep(self):
        """Do everything but the removal of checkpoints."""
        self.work.clear()
        self.load()
        self.reclaim()
        self.save_record()
        self.scan()
        self.save_record()

    def load(self):
        """Read the record of the previous coordinator."""
        if self.loaded or not self.rested():
            return
        try:
            kept = self.read(self.record.read)
        except OSError as error:
            self.fail_read(error)
            return
        except Foreign as error:
            with self.lock:
                self.read_again = float("inf")
                self.coordinator.give_up(str(error))
                self.recorded = self.changes  # it is not this job's record
            return
        with self.lock:
            self.failed_reads, self.read_error = 0, ""
            self.loaded = True
            outranked = self.record.is_outranked(kept, self.settings.pod)
            if not outranked:
                self.coordinator.recall(kept)
        if outranked and kept.get("saves"):
            self.stand_down(f"nn-worker 0 of the pod {kept['pod']} still saves: waiting for it")
        elif outranked:
            self.stand_down()

    def hold(self):
        """Renew the claim. If another coordinator has it and no longer renews it, claim the run again."""
        if not self.loaded:
            return
        with self.lock:
            renews = not self.coordinator.superseded and (self.coordinator.runs() or self.coordinator.waits())
            if renews:
                self.record.values["beat"] += 1
                self.changes += 1
        if renews:
            self.save_record()
        elif self.coordinator.superseded:
            self.observe()

    def observe(self):
        """Claim the run again if the claim of the other coordinator stands still for twice the time
        after which a replica is lost, or for the first time when that has saved."""
        try:
            kept = self.read(self.record.read)
        except (OSError, Superseded):
            self.claim = None
            return
        claim, now = [kept.get(part) for part in ("term", "holder", "beat")], self.clock()
        if claim != self.claim:
            self.claim, self.claim_seen = claim, now
        saved = not self.record.term and not self.record.is_outranked(kept, self.settings.pod)
        if saved or now - self.claim_seen > 2 * self.settings.lost_seconds:
            with self.lock:
                why = "nn-worker 0 has saved" if saved else f"no coordinator has renewed its claim for {now - self.claim_seen:.0f} s"
                self.coordinator.log(why + ": claiming the run")
                self.claim, self.coordinator.superseded = None, False
                self.coordinator.recall(kept)
            self.save_record()
            self.work.set()

    def reclaim(self):
        """Write the record again if an older coordinator has replaced it: the volume may have held back its last write."""
        if not self.loaded or self.coordinator.superseded or not self.rested():
            return
        try:
            held = self.read(self.record.check)
        except OSError:
            return  # scan and save_record report it
        except Superseded:
            self.stand_down()
            return
        if not held:
            with self.lock:
                self.changes += 1

    def scan(self):
        """Find the checkpoints if the coordinator waits for them, or an attempt runs."""
        with self.lock:
            waited = self.coordinator.waits_for()
            wanted = any(waited) or self.coordinator.runs()
        if not wanted or not self.loaded or not self.rested():
            return
        try:
            found = self.read(self.find)
        except OSError as error:
            self.fail_read(error)
            return
        except Superseded:
            self.stand_down()
            return
        with self.lock:
            self.failed_reads, self.read_error = 0, ""
            for path in set(found.strange) - set(self.strange):
                self.coordinator.log(f"{path} is no checkpoint: {found.strange[path]}")
            for path in set(found.given_up) - set(self.given_up):
                self.coordinator.log(f"PERSIA has given up the checkpoint {path}: {found.given_up[path]}")
            self.strange, self.given_up = found.strange, found.given_up
            starts = self.coordinator.take(found, waited)
            if starts:
                self.drop(found.incomplete, "it is not complete")
        if starts:
            # The number of an attempt is not used twice, even if this process ends now.
            recorded = self.save_record()
            if self.record.full:
                # The attempt could write nothing either, so it waits.
                self.tidy()
                recorded = self.save_record(again=True)
            with self.lock:
                self.coordinator.start(found, recorded)

    def find(self):
        self.record.check()
        found = checkpoints.scan(self.settings.checkpoints, self.settings.older, self.known)
        known = list(filter(None, (self.coordinator.written, self.record.checkpoint, self.record.resume, self.record.proven)))
        if known and not found.complete:
            # There were some: the job must not begin again because they are gone, or cannot be looked at now.
            for path in found.strange:
                if any((seen + os.sep).startswith(path + os.sep) for seen in known):
                    raise OSError(f"{path}: {found.strange[path]}")
            raise OSError(f"{known[0]} was complete, and neither it nor another one is there and complete; restore one, or give the job "
                          "another runId, which starts the training over")
        return found

    def read(self, function):
        """Return what a function reads from a volume. Meanwhile, status reports a hanging one."""
        self.reading = self.clock()
        try:
            return function()
        finally:
            self.reading = None

    def fail_read(self, error):
        """Start no attempt until the volume can be read: it would start from the beginning."""
        with self.lock:
            self.failed_reads += 1
            self.read_again = self.clock() + self.coordinator.pause(self.failed_reads)
            self.read_error = f"the checkpoints cannot be read: {error}"
            if self.failed_reads == 1:
                self.coordinator.log(self.read_error)
            else:
                self.read_error += f", {self.failed_reads} times in a row"
            self.coordinator.starting = False

    def save_record(self, again=False):
        """Write the record if it has changed, or again, and report whether the file has it. After a
        failure, keep tries again."""
        # keep and release may record at the same time: the later one writes what is known then.
        with self.recording:
            with self.lock:
                changes, values = self.changes, dict(self.record.values, **self.coordinator.ledger.record())
                if not self.loaded or changes == self.recorded and not again:
                    return self.loaded
            full = self.record.full
            try:
                self.record.write(values)
                trouble = ""
            except OSError as error:
                trouble = str(error)
                # The previous coordinator may have recorded the end of the job.
                self.loaded = error.errno != errno.ESTALE or self.record.claimed is None
            except Superseded:
                self.stand_down()
                return False
            with self.lock:
                if trouble and not self.write_error:
                    self.coordinator.log(f"the state of the run cannot be recorded: {trouble}")
                elif self.record.full and not full:
                    self.coordinator.log("the volume is full; the record of the run is overwritten")
                self.failed_writes = self.failed_writes + 1 if trouble else 0
                self.write_error = trouble
                if not trouble:
                    self.recorded, self.record.claimed = changes, None
                return not trouble

    def release(self, seconds):
        """Record that the attempt ends with this coordinator's pod. Do not wait longer for a volume that hangs."""
        with self.lock:
            self.remember(running=False)
        saving = threading.Thread(target=self.save_record, daemon=True)
        saving.start()
        saving.join(seconds)

    def tidy(self):
        """Remove the checkpoints that are not needed. On a network volume, that takes minutes to hours."""
        with self.lock:
            # The content of a folder before the folder.
            unneeded = sorted(self.unneeded, key=len, reverse=True)
        for folder in unneeded:
            with self.lock:
                why = self.unneeded.get(folder)
                if not why:
                    continue
            try:
                # The mount of a bucket may show an old record. What can be written is current.
                if not self.save_record(again=True):
                    return
                self.coordinator.log(f"removing {folder}: {why}")
                checkpoints.remove(folder)
            except Superseded:
                self.stand_down()
                return
            except OSError as error:
                self.coordinator.log(f"{folder} cannot be removed: {error}")
                continue
            with self.lock:
                self.unneeded.pop(folder, None)

    def stand_down(self, *why):
        with self.lock:
            self.unneeded = {}
            self.recorded = self.changes  # what is not recorded is void
            self.coordinator.stand_down(*why)
