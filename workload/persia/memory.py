"""The record of a run: the file through which a coordinator takes over from the previous one."""

import errno
import json
import os


# The values that are a path or None.
PATHS = ("checkpoint", "resume", "proven")


class Superseded(Exception):
    """A newer coordinator has claimed the run."""


class Unreadable(OSError):
    """The file exists, but it is not a record. A complete job must not train again because of
    that."""


class Memory:
    """The values of the record. Each coordinator of the run claims the record with a higher
    term, after which the previous one may not write it."""

    def __init__(self, folder, holder):
        self.file = os.path.join(folder, "coordinator.json")
        self.holder = holder
        self.values = {
            "attempt": 0, "done": False, "revision": "", "failures": 0, "failed": "", "checkpoint": None,
            # The checkpoint that the last attempt started from, the last one from which an
            # attempt made progress, and how many attempts failed before that with others.
            "resume": None, "proven": None, "doubts": {},
            # Whether the script reports its progress.
            "reports_progress": False,
            # The claim, and whether an attempt runs that this pod coordinates.
            "term": 0, "holder": "", "pod": "", "running": False,
        }

    def __getattr__(self, key):
        return self.values[key]

    def claim(self, kept, pod):
        """Continue from the record of the previous coordinator, as the newest one."""
        self.values.update(kept)
        self.values.update(term=self.values["term"] + 1, holder=self.holder, pod=pod, running=False)

    def read(self):
        """Return the record, or {} if the file does not exist."""
        try:
            with open(self.file, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return {}
        try:
            values = json.loads(text.decode())
        except ValueError:
            values = None
        if not self.is_record(values):
            raise Unreadable(f"{self.file} is not the record of a run; if the run was not complete, remove the file")
        return values

    def is_record(self, values):
        """Report whether values read from the file have the right types."""
        if not isinstance(values, dict):
            return False
        known = {key: value for key, value in values.items() if key in self.values}
        paths = [known.pop(key) for key in PATHS if key in known]
        return (
            all(isinstance(value, type(self.values[key])) for key, value in known.items())
            and all(path is None or isinstance(path, str) for path in paths)
            and all(isinstance(count, int) for count in known.get("doubts", {}).values())
        )

    def check(self):
        """Report whether this coordinator wrote the file. Raise Superseded if a newer one has
        claimed the run."""
        kept = self.read()
        mine = (self.values["term"], self.values["holder"])
        found = (kept.get("term", 0), kept.get("holder", ""))
        if found[0] > mine[0] or found[0] == mine[0] and found[1] != mine[1]:
            raise Superseded
        return found == mine

    def write(self, values):
        """Replace the file. A crash leaves the old or the new record."""
        folder = os.path.dirname(self.file)
        self.check()
        os.makedirs(folder, exist_ok=True)
        # Two coordinators must not write the same temporary file.
        temporary = f"{self.file}.{self.holder}"
        with open(temporary, "w") as file:
            json.dump(values, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.file)
        flush_folder(folder)


def flush_folder(folder):
    """Flush the new name of a file to the disk, if the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF):
            raise
    finally:
        os.close(descriptor)
