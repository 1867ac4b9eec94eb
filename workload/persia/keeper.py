"""Works on the volumes of a job for its coordinator: reads and writes the record of the run,
finds checkpoints, and removes those that are not needed.

A volume may hang for minutes, and a replica that gets no answer meanwhile ends its command. So
all of this runs in threads of its own, and nothing that touches a volume holds the coordinator's
lock, which guards the state of both.
"""

import threading
import time
import uuid

import checkpoints
from memory import Memory, Superseded


class Keeper:
    """Works on the volumes for a coordinator."""

    def __init__(self, coordinator, settings, clock):
        self.coordinator, self.settings, self.clock = coordinator, settings, clock
        self.lock = coordinator.lock
        self.memory = Memory(settings.state_directory, uuid.uuid4().hex)
        self.work = threading.Event()  # set when keep has something to do
        self.loaded = False  # whether the record of the previous coordinator is read
        # Reading. All failures in a row are one error for people.
        self.reading = None  # when the read began that has not returned
        self.failed_reads, self.read_error = 0, ""
        self.read_again = 0  # when to read next after a failure
        # Writing. changes counts the changes of the memory, recorded those that the file has.
        self.recording = threading.Lock()  # taken before lock
        self.changes = self.recorded = 0
        self.write_error = ""
        # Removing.
        self.unneeded = set()  # the checkpoints to remove
        self.clutter = threading.Event()  # set when there are some

    # For the coordinator, with the lock.

    def remember(self, **changes):
        """Have changes recorded."""
        self.memory.values.update(changes)
        self.changes += 1
        self.work.set()

    def saved(self):
        """Report whether the file has all changes."""
        return self.recorded == self.changes

    def drop(self, paths):
        """Have checkpoints removed, also those whose removal has failed before."""
        self.unneeded.update(paths)
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
        return f"; this cannot be recorded: {self.write_error}" if self.write_error else ""

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

        for work in (keep, tidy):
            threading.Thread(target=self.repeat, args=(work,), daemon=True).start()

    def repeat(self, work):
        """Work until a newer coordinator takes over. An unexpected error must not end the thread:
        the job would continue, and its end would never be recorded."""
        while not self.coordinator.superseded:
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
        self.record()
        self.scan()
        self.record()

    def load(self):
        """Read the record of the previous coordinator."""
        if self.loaded or not self.rested():
            return
        try:
            kept = self.read(self.memory.read)
        except OSError as error:
            self.fail_read(error)
            return
        with self.lock:
            self.failed_reads, self.read_error = 0, ""
            self.loaded = True
            self.coordinator.recall(kept)

    def reclaim(self):
        """Write the record again if an older coordinator has replaced it: the volume may have
        held back its last write."""
        if not self.loaded or not self.rested():
            return
        try:
            held = self.read(self.memory.check)
        except OSError:
            return  # scan and record report it
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
            starts = self.coordinator.take(found, waited)
        if starts:
            # The number of an attempt is not used twice, even if this process ends now.
            recorded = self.record()
            with self.lock:
                self.coordinator.start(found, recorded)

    def find(self):
        self.memory.check()
        return checkpoints.scan(self.settings.checkpoints, self.settings.older)

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

    def record(self):
        """Write the record if it has changed, and report whether the file has it. After a failure,
        keep tries again."""
        # keep and release may record at the same time: the later one writes what is known then.
        with self.recording:
            with self.lock:
                changes, values = self.changes, dict(self.memory.values)
                if not self.loaded or changes == self.recorded:
                    return self.loaded
            try:
                self.memory.write(values)
                trouble = ""
            except OSError as error:
                trouble = str(error)
            except Superseded:
                self.stand_down()
                return False
            with self.lock:
                if trouble and not self.write_error:
                    self.coordinator.log(f"the state of the run cannot be recorded: {trouble}")
                self.write_error = trouble
                if not trouble:
                    self.recorded = changes
                return not trouble

    def release(self, seconds):
        """Record that the attempt ends with this coordinator's pod. Do not wait longer for a
        volume that hangs."""
        with self.lock:
            self.remember(running=False)
        saving = threading.Thread(target=self.record, daemon=True)
        saving.start()
        saving.join(seconds)

    def tidy(self):
        """Remove the checkpoints that are not needed. On a network volume, that takes minutes to
        hours."""
        with self.lock:
            # The content of a folder before the folder.
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
                self.coordinator.log(f"{folder} cannot be removed: {error}")
                continue
            with self.lock:
                self.unneeded.discard(folder)

    def stand_down(self):
        with self.lock:
            self.unneeded = set()
            self.coordinator.stand_down()
