"""The record of a run: the file through which a coordinator takes over from the previous one."""

import errno
import json
import os
from typing import Any, Dict

Values = Dict[str, Any]

# The values that have numbers by some name.
NUMBERS = ("doubts", "ledger", "causes", "trained")

# The size of the file. It stays the same, so that the file can be overwritten where it is when the volume has no room for
# another one: first its second half, and then the first one, which begins with the mark meanwhile.
SIZE, MARK = 32 * 1024, b"!"

# How a bucket is mounted: by GKE's driver, and by gcsfuse itself.
BUCKETS = ("fuse", "fuse.gcsfuse")

# How many pods the record knows.
PODS = 8


class Superseded(Exception):
    """Another coordinator has claimed the run."""


class Foreign(Superseded):
    """The record is of another job, for example of a stack with a copied stack file."""


def path(folder: str) -> str:
    """Return where the record is in a folder."""
    return os.path.join(folder, "coordinator.json")


def blank(job: str) -> Values:
    """Return the record of a run that has not begun: what the next coordinator needs. The holder of the claim counts
    beat up. Whoever waits for it observes by its own clock that beat stands still; those of two machines may differ."""
    return {
        "job": job,  # its full name, with its stack
        "attempt": 0, "done": False, "revision": "", "failures": 0, "failed": "", "checkpoint": None,
        # The checkpoint of the last attempt, the last one from which an attempt made progress, and how many failed before with others.
        "resume": None, "proven": None, "doubts": {},
        # See ledger.py.
        "ledger": {}, "causes": {}, "ends": [], "trained": {},
        # The claim, and whether an attempt runs that this pod coordinates.
        "term": 0, "holder": "", "pod": "", "running": False, "beat": 0, "pods": [],
        # Whether nn-worker 0 of this pod saves before the pod ends, whether it has ended with the pod, and whether
        # replicas may run that no coordinator hears, so that the next attempt waits until they have ended.
        "saves": False, "released": False, "unheard": False,
        # The name of the servers' memory, which is the attempt that gave it to them, or 0, and how many servers have
        # parts of it. The dense state from which the last attempt continued with that memory, until it makes progress.
        "memory": 0, "servers": 0, "dense": None,
    }


def claimed(values: Values, kept: Values, pod: str, holder: str) -> Values:
    """Return values of a record that continue from the record of the previous coordinator, as the newest one.

    A pod cannot know when it was created. But a new pod claims the run when it starts, so the order
    in which pods first claimed it is the order of their creation, and pods keeps that."""
    values = dict(values, **kept)
    pods = values["pods"] + [pod] * (pod not in values["pods"])
    return dict(values, term=values["term"] + 1, holder=holder, pod=pod, running=False, saves=False, released=False, pods=pods[-PODS:])


def is_outranked(kept: Values, pod: str) -> bool:
    """Report whether another pod keeps the run: one that was created later than this one, or that still saves."""
    pods, holder = kept.get("pods", []), kept.get("pod")
    return bool(kept.get("saves") and holder != pod or pod in pods and holder in pods and pods.index(pod) < pods.index(holder))


class Record:
    """The file. Each coordinator claims it with a higher term, after which the previous one may not write it."""

    def __init__(self, folder, job=""):
        self.file = path(folder)
        self.job = job

    def read(self):
        """Return the record, or {} if the file does not exist."""
        folder, name = os.path.split(self.file)
        try:
            # The mount of a bucket shows files as the node has seen them last, until it lists the folder, and removed ones even then.
            if name not in os.listdir(folder) and in_bucket(folder):
                return {}
            with open(self.file, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return {}
        # A bucket never loses what a file had: a coordinator was killed while it created this one.
        if not text and in_bucket(folder):
            return {}
        try:
            text = text[len(text) // 2 :] if text.startswith(MARK) else text
            values, _ = json.JSONDecoder().raw_decode(text.decode().lstrip())
        except ValueError:
            values = None
        if not self.is_record(values):
            # It is not the record of a new run: a complete job must not train again.
            raise OSError(f"{self.file} is not the record of a run; if the run was not complete, remove the file")
        owner = values.get("job") or self.job
        if owner != self.job:
            raise Foreign(f'{self.file} is the record of the job {owner}, and this is {self.job}. If that job still trains, give this one '
                          f'another runId or folder. Otherwise, as after a new name of the stack, continue its run: '
                          f'write "job": "{self.job}" into the file')
        return values

    def is_record(self, values):
        """Report whether values read from the file have the right types."""
        if not isinstance(values, dict):
            return False
        # What begins as None is a path.
        kinds: Values = {key: (str, type(None)) if value is None else type(value) for key, value in blank("").items()}
        known = {key: value for key, value in values.items() if key in kinds}
        return (
            all(isinstance(value, kinds[key]) for key, value in known.items())
            and all(isinstance(number, (int, float)) for key in NUMBERS for number in known.get(key, {}).values())
            and all(isinstance(pod, str) for pod in known.get("pods", []))
            and all(isinstance(end, list) and len(end) == 3 for end in known.get("ends", []))
        )

    def check(self, values, claimed):
        """Return the record of an older coordinator that the file has instead of that with the claim of values, or None. Raise
        Superseded if a newer coordinator has claimed the run, and an ESTALE if the previous one has written meanwhile."""
        kept = self.read()
        mine = (values["term"], values["holder"])
        found = (kept.get("term", 0), kept.get("holder", ""))
        if found[0] > mine[0] or found[0] == mine[0] and found[1] != mine[1]:
            raise Superseded
        if found != mine and claimed not in (None, kept):
            raise OSError(errno.ESTALE, "the previous coordinator has written since this one has read", self.file)
        return None if found == mine else kept

    def write(self, values, claimed):
        """Replace the file, or overwrite it if there is no room for another one. Return whether there was none, the older record
        that was there, as check does, and whether nothing could replace another record. A crash leaves the old or the new one."""
        folder = os.path.dirname(self.file)
        older = self.check(values, claimed)
        os.makedirs(folder, exist_ok=True)
        text = json.dumps(values).encode()
        if in_bucket(folder):
            self.exchange(text.ljust(SIZE), values, claimed)
            return False, older, True
        # Two coordinators must not write the same temporary file.
        temporary = f"{self.file}.{values['holder']}"
        try:
            fill(temporary, "wb", text.ljust(SIZE))
            os.replace(temporary, self.file)
        except OSError as error:
            if os.path.exists(temporary):
                os.remove(temporary)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            if not full or not os.path.exists(self.file) or len(text) > os.path.getsize(self.file) // 2:
                raise
            self.overwrite(text)
            return True, older, False
        flush_folder(folder)
        return False, older, False

    def overwrite(self, text):
        """Overwrite the file where it is. At each moment, one half has a whole record."""
        with open(self.file, "r+b") as file:
            half = os.fstat(file.fileno()).st_size // 2
            steps = [(1, text[1:]), (0, text[:1])]
            if file.read(1) != MARK:  # otherwise only the second half is whole
                steps = [(half, text), (0, MARK)] + steps
            for at, part in steps:
                file.seek(at)
                file.write(part)
                file.flush()
                os.fsync(file.fileno())

    def exchange(self, text, values, claimed):
        """Overwrite the file in a bucket. The bucket keeps the old record until the new one is flushed,
        and refuses that, but no rename, if another coordinator has written the file since it was opened."""
        try:
            with open(self.file, "r+b") as file:
                self.check(values, claimed)
                # Nothing may be left of a longer record.
                file.write(text.ljust(os.fstat(file.fileno()).st_size))
                file.flush()
                os.fsync(file.fileno())
        except FileNotFoundError:
            fill(self.file, "xb", text)


def in_bucket(folder, mounts="/proc/self/mounts"):
    """Report whether a folder is mounted through Cloud Storage FUSE."""
    folder = os.path.realpath(folder) + os.sep
    # Of two mounts at the same point, the later one is seen.
    above = [mount for mount in reversed(mounted(mounts)) if folder.startswith(mount[0] + os.sep)]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1] in BUCKETS


def lost_bucket(mounts="/proc/self/mounts"):
    """Return where a bucket was mounted by a gcsfuse that has ended, or None. GKE gives a pod no other."""
    for point, kind in mounted(mounts):
        try:
            if kind in BUCKETS:
                os.stat(point)
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                return point
    return None


def mounted(mounts):
    """Return the mounts, each with its kind."""
    with open(mounts, errors="surrogateescape") as lines:
        found = [line.split(" ")[1:3] for line in lines]
    return [(point.replace("\\040", " ").rstrip(os.sep), kind) for point, kind in found]


def fill(name, mode, text):
    """Write a file, and flush it to the disk."""
    with open(name, mode) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


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
