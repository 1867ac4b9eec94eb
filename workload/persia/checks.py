"""Checks the requirements of a command, without which it would fail after minutes, or hang."""

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
import urllib.parse

import speed
from link import full_name
from processes import Command
from record import lost_bucket
from roster import DATALOADER, NN_WORKER

# GKE mounts the GPU driver there and sets no variable. PERSIA's image even drops the one that its base image sets.
DRIVER = "/usr/local/nvidia"


def before(role, environment):
    """Return why a role cannot start, or None, from checks that take no time."""
    entry = {NN_WORKER: "PERSIA_NN_WORKER_ENTRY", DATALOADER: "PERSIA_DATALOADER_ENTRY"}.get(role)
    for name in filter(None, ("PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG", entry)):
        file = environment.get(name)
        if file and not os.path.isfile(file):
            return f"{name} names {file}, which is not there: is it in the image, or uploaded to a volume that the role mounts?"
    return None


class Files:
    """Checks for the files that a role needs, in a thread: a volume may hang, and the replica has to report meanwhile."""

    def __init__(self, role, environment, seconds):
        self.role, self.environment, self.seconds = role, environment, seconds
        self.looking, self.found = None, None
        self.lost = None  # why no command of this pod can write checkpoints any more

    def begin(self):
        """Begin to look, unless a look has not returned."""
        if not self.looking or not self.looking.is_alive():
            self.looking = threading.Thread(target=self.look, daemon=True)
            self.looking.start()

    def missing(self):
        """Return why the role cannot start, or None."""
        self.begin()
        self.looking.join(self.seconds)
        if self.looking.is_alive():
            return "the volume with its configuration and its script does not answer"
        return self.found

    def look(self):
        bucket = lost_bucket()
        if bucket:
            self.lost = (
                f"gcsfuse has ended, which mounted {bucket}: delete the pod {os.uname().nodename}, which gets no other; "
                "if memory ran out, increase sidecar.memory"
            )
        self.found = self.lost or before(self.role, self.environment)


class MachineCheck:
    """Checks whether PyTorch can use the GPUs that a replica has requested (a script that falls back to the CPU would train for
    weeks), and measures the machine if there is a following replica, or an empty one. PyTorch takes a minute to load from a cold
    disk, and a broken driver may hang, so speed.py is a process of its own."""

    def __init__(self, environment, following=None, clock=time.monotonic):
        self.environment = environment
        self.wanted = int(environment.get("PERSIA_GPUS", "0"))
        self.seconds = float(environment.get("PERSIA_GPU_SECONDS", "300"))
        self.clock, self.asked = clock, clock()
        self.command, self.output = None, None
        self.found = {}
        if self.wanted or following is not None:
            self.output = tempfile.TemporaryFile("w+")
            python = environment.get("PERSIA_PYTHON", sys.executable)
            arguments = [str(self.wanted)] + ([] if following is None else [following])
            self.command = Command([python, "-B", speed.__file__] + arguments, environment, self.output)

    def waiting(self):
        """Report whether the process has not answered, and has time left."""
        return self.command is not None and self.command.status() is None and self.clock() - self.asked < self.seconds

    def trouble(self):
        """Return why PyTorch cannot use the GPUs, or None. What was found remains."""
        if self.command and self.command.status() == 0:
            self.output.seek(0)
            with contextlib.suppress(ValueError, IndexError):
                self.found = json.loads(self.output.read().splitlines()[-1])
        if not self.wanted:
            return None
        if self.command.status() is None:
            return (
                f"PyTorch has not said within {self.seconds:g} s which GPUs it sees: does nvidia-smi answer on the node, "
                f"and is the driver in {DRIVER}?"
            )
        if "gpus" not in self.found:
            return "PyTorch cannot be asked for its GPUs"
        if self.found["gpus"] < self.wanted:
            return (
                f"PyTorch sees {self.found['gpus']} GPUs and the replica has asked for {self.wanted}: is the driver in {DRIVER}, "
                "and is PyTorch one for CUDA?"
            )
        return None


def for_gpus(environment):
    """Return an environment with the folders of the GPU driver, if they exist, and with NCCL that fails instead of hangs."""
    # PyTorch 2.2 renamed the variable.
    environment = {"NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", **environment}
    for name, folder in (("LD_LIBRARY_PATH", "lib64"), ("PATH", "bin")):
        folder = os.path.join(DRIVER, folder)
        paths = [path for path in environment.get(name, "").split(":") if path]
        if os.path.isdir(folder) and folder not in paths:
            environment[name] = ":".join(paths + [folder])
    return environment


def address(url):
    """Return host and port of a URL, or None without a host."""
    parts = urllib.parse.urlsplit(url)
    return (parts.hostname, parts.port or 4222) if parts.hostname else None


def reachable(where, seconds=5):
    """Report whether a server accepts connections. While DNS does not answer, the lookup may take much longer than seconds."""
    if not where:
        return True
    found = []

    def connect():
        with contextlib.suppress(OSError, UnicodeError):
            socket.create_connection((full_name(where[0]), where[1]), timeout=seconds).close()
            found.append(True)

    asking = threading.Thread(target=connect, daemon=True)
    asking.start()
    asking.join(seconds)
    return bool(found)
