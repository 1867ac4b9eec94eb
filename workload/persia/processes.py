"""Runs and ends a replica's command, with all processes that it has started.

The children of a process that ends go to process 1 of its container, or to an ancestor that has called adopt. A launcher is one
of both, so everything that its command leaves is among its own descendants, in whatever session it runs.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time


class Command:
    """A command that runs in a session of its own."""

    frozen = False  # whether its processes are stopped, and keep their memory

    def __init__(self, arguments, environment, stdout=None):
        self.process = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, start_new_session=True)
        self.terminated = False  # whether SIGTERM was sent
        self.deadline = float("inf")  # until when processes may end by themselves
        self.killed = None  # when SIGKILL was first sent

    def status(self):
        """Return the exit status as a shell does, or None while the command runs."""
        reap(self.process)
        status = self.process.poll()
        return 128 - status if status is not None and status < 0 else status

    def end(self, seconds):
        """Begin to end all processes: after some seconds, ended kills them. Later calls can only cut that time."""
        self.deadline = min(self.deadline, time.monotonic() + (0 if self.frozen else seconds))

    def ended(self):
        """Send the signals that are due, and report whether all processes have ended: the one that others started may still save."""
        left = self.running()
        if not left:
            return True
        if time.monotonic() >= self.deadline:
            self.killed = self.killed or time.monotonic()
            self.kill(left, signal.SIGKILL)
        elif not self.terminated:
            # Once: a second signal would disturb a process that saves, and end a program that it starts for that.
            self.kill(left, signal.SIGTERM)
            self.terminated = True
        return False

    def freeze(self, frozen):
        """Stop all processes, so that they do nothing and answer nobody, or have them go on."""
        if frozen != self.frozen:
            self.frozen = frozen
            self.kill(self.running(), signal.SIGSTOP if frozen else signal.SIGCONT)

    def hangs(self, seconds):
        """Return which process has not ended some seconds after SIGKILL, or ""."""
        since = time.monotonic() - self.killed if self.killed else 0
        left = self.running() if since > seconds else set()
        if not left:
            return ""
        return f"process {min(left)} ({program(min(left))}) hangs and cannot be killed: it waits for a device or a volume of its node"

    def stop(self, seconds):
        """End all processes, and return the command's exit status."""
        self.end(seconds)
        while not self.ended():
            time.sleep(0.05)
        return self.status()

    def running(self):
        """Return the processes that are left."""
        reap(self.process)
        return descendants()

    def kill(self, pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def program(pid):
    """Return the name of the program that a process runs."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
        return file.read().strip()
    return "gone"


def adopt():
    """Become the parent of the processes that a command leaves, as process 1 always is."""
    if os.getpid() != 1:
        import ctypes

        # PR_SET_CHILD_SUBREAPER in the kernel's prctl.h.
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def heed_signals(runner):
    """Have SIGTERM and SIGINT set stopped, because the pod has to end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(runner, "stopped", True))


def log(text):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr, flush=True)


def reap(process=None):
    """Remove all children that have ended from the process table. A process of Python's reports its exit status afterwards."""
    with contextlib.suppress(ChildProcessError):  # no child is left
        for ended in iter(lambda: os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT), None):
            if process and process.pid == ended.si_pid and process.returncode is None:
                process.poll()
            else:
                os.waitpid(ended.si_pid, 0)


def descendants():
    """Return the processes that this one has started or adopted, and theirs."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{entry}/stat") as file:
            state, parent = file.read().rsplit(")", 1)[1].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry))
    found = [os.getpid()]
    for pid in found:  # which grows meanwhile
        found += children.get(pid, [])
    return set(found[1:])


class Scratch:
    """Folders whose files end with their pod, and use its memory until then."""

    def __init__(self, folders):
        # The image's own files are for each attempt.
        image = os.stat("/").st_dev
        folders = filter(os.path.isdir, folders)
        self.kept = {folder: os.listdir(folder) if os.stat(folder).st_dev == image else [] for folder in folders}

    def clear(self):
        """Remove the files of ended attempts. Only process 1 of a container has its own folders."""
        if os.getpid() == 1:
            for folder, kept in self.kept.items():
                remove(folder, kept)


def remove(folder, kept=()):
    """Remove the content of a folder, but nothing that is mounted in there."""
    device = os.stat(folder).st_dev
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            if entry.name in kept or entry.stat(follow_symlinks=False).st_dev != device:
                continue
            if entry.is_dir(follow_symlinks=False):
                remove(entry.path)
                os.rmdir(entry.path)
            else:
                os.remove(entry.path)


def connected(pids, port):
    """Return the processes that have a connection to a remote port."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(table) as file:
            rows = [line.split() for line in file.readlines()[1:]]
            # 01 is ESTABLISHED in the kernel's net/tcp_states.h.
            sockets |= {f"socket:[{row[9]}]" for row in rows if row[3] == "01" and int(row[2].rsplit(":", 1)[1], 16) == port}
    return {pid for pid in pids if not sockets.isdisjoint(open_files(pid))}


def open_files(pid):
    """Yield the open files of a process, except files that it closes meanwhile."""
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{descriptor}")
