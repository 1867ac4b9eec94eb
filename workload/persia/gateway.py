"""Pushes the state of a replica, and of the job, to the job's metrics gateway."""

import contextlib
import itertools
import pathlib
import threading
import time
import urllib.request

# Without a proxy that the environment names for addresses outside of the cluster.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Gateway:
    """The place of a replica or of the job in the metrics gateway."""

    def __init__(self, address, path, seconds, log):
        self.address, self.path, self.seconds, self.log = address, path, seconds, log
        self.failed = False  # whether the last push has failed
        self.lock = threading.Lock()  # so that the last push has the newest values

    def push(self, values):
        """Replace the values in the gateway with the values that a function returns."""
        with self.lock:
            try:
                known = self.address and self.path and values()
                if known:
                    self.put(known)
                self.failed = False
            except Exception as error:  # one of the values, too, must not end the pushes of all
                if not self.failed:
                    self.log(f"cannot push to the metrics gateway at {self.address}; retrying: {error!r}")
                self.failed = True

    def put(self, values):
        body = ""
        for family, items in itertools.groupby(values.items(), lambda item: item[0].partition("{")[0]):
            body += f"# TYPE {family} {'counter' if family.endswith('_total') else 'gauge'}\n"
            body += "".join(f"{name} {value}\n" for name, value in items)
        headers = {"Content-Type": "text/plain; version=0.0.4"}
        request = urllib.request.Request(f"http://{self.address}{self.path}", body.encode(), headers, method="PUT")
        direct.open(request, timeout=10).close()

    def keep_pushing(self, values):
        """Push again and again, because a gateway that restarts has lost its values."""

        def work():
            while True:
                self.push(values)
                time.sleep(self.seconds)

        threading.Thread(target=work, daemon=True).start()


# The files of the container's memory, in bytes, with control groups version 2 and version 1.
MEMORY = (
    ("memory.current", "memory.max", "memory.stat", "inactive_file"),
    ("memory/memory.usage_in_bytes", "memory/memory.limit_in_bytes", "memory/memory.stat", "total_inactive_file"),
)


def memory_ratio(groups="/sys/fs/cgroup"):
    """Return which share of its memory the container uses, without the kernel's caches, or None without a limit."""
    for current, limit, stat, cache in MEMORY:
        with contextlib.suppress(OSError, ValueError, KeyError):
            used, most, state = (pathlib.Path(groups, name).read_text() for name in (current, limit, stat))
            given_back = dict(line.split() for line in state.splitlines())[cache]
            return (int(used) - int(given_back)) / int(most)
    return None


def of(environment, log, whole_job=False):
    """Return the place of a replica or the job in the gateway that an environment names, or one that takes nothing."""
    address, path = environment.get("PERSIA_METRICS_GATEWAY_ADDR"), environment.get("PERSIA_REPLICA_METRICS", "")
    if whole_job:
        # A push replaces the last one to the same path: with the run in it, a run that failed would stay.
        path = "/".join(path.split("/")[:4])
    return Gateway(address, path, float(environment.get("PERSIA_REPORT_SECONDS", "15")), log)
