"""Measures how fast the machine of a replica is, before each attempt, and finds the machines that are slower than others.

    speed.py GPUS [NEXT]

prints as JSON how many GPUs PyTorch sees and, with NEXT, its figures. NEXT is where the next replica takes what is sent, or empty.
"""

import collections
import json
import os
import re
import signal
import socket
import socketserver
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, DefaultDict, Dict, List, Optional, Tuple

from record import Values

# How long GPUs are measured, and how long all may take without any, in seconds.
GPU_SECONDS, SECONDS = 5, 30

# How much is sent to the next replica at once, in bytes, and how often.
PART, PARTS = 1 << 20, 64

# A replica is slow below this part of the median.
SLOW = 0.6


def rate(seconds: float, work: Callable[[], Any], of: Callable[[List[float]], float] = min) -> float:
    """Return how often per second something can be done. Others use the machine too, so the fastest run counts."""
    times: List[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1 / of(times)


def measure(following: str) -> Dict[str, float]:
    """Return the figures of one core, its memory, and the network."""
    source, target = bytearray(32 << 20), bytearray(32 << 20)
    # A run takes longer than the kernel lets a container run that has used up its part of 100 ms.
    found = {"CPU": rate(0.6, lambda: sum(range(4_000_000))), "memory": rate(0.4, lambda: target.__setitem__(slice(None), source))}
    if following:
        try:
            host, port = following.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                found["network"] = statistics.median(rate(0, lambda: send(connection)) for _ in range(PARTS))
        except OSError as error:
            print(f"speed.py: {following}: {error}", file=sys.stderr)  # that replica may be gone
    return found


def send(connection: socket.socket) -> None:
    """Send a part, and wait until the other replica has taken it."""
    connection.sendall(bytes(PART))
    connection.recv(1)


def measure_gpu(torch: Any, numbers: Any, device: str, seconds: float = GPU_SECONDS) -> Tuple[float, float]:
    """Return the figures of a GPU, or 0 if it does not compute or copy the same each time. A hot one slows down: the usual run counts."""
    there = numbers.to(device)
    product, same = there.mm(there), [torch.equal(there.cpu(), numbers)]
    # To compare waits for the GPU.
    multiplying = rate(seconds, lambda: same.append(torch.equal(there.mm(there), product)), statistics.median)
    return multiplying * all(same), rate(seconds / 10, lambda: numbers.to(device).cpu(), statistics.median) * all(same)


def main(wanted: int, following: Optional[str]) -> Values:
    found: Values = {"gpus": 0}
    if wanted:
        import torch  # type: ignore[import]

        found["gpus"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
    else:
        signal.alarm(SECONDS)  # the network may hang
    if following is not None:
        with open("/proc/cpuinfo") as file:
            model = re.search(r"model name\s*: (.*)", file.read())
        found.update(machine=f"{os.cpu_count()} x {model and model.group(1)}", figures=measure(following))
        if 0 < wanted <= found["gpus"]:
            numbers = torch.rand(4096, 4096)  # 64 MiB
            with ThreadPoolExecutor(wanted) as executor:
                figures = zip(*executor.map(lambda number: measure_gpu(torch, numbers, f"cuda:{number}"), range(wanted)))
            found["figures"].update(zip(("GPU", "copies to and from a GPU"), map(min, figures)))
    return found


class Sink(socketserver.StreamRequestHandler):
    """Takes what another replica sends, and answers each part."""

    def handle(self) -> None:
        while len(self.rfile.read(PART)) == PART:
            self.wfile.write(b".")


def take() -> str:
    """Take what other replicas send from now on, and return where, or "" if the pod does not know its address."""
    try:
        server = socketserver.ThreadingTCPServer((socket.gethostbyname(socket.gethostname()), 0), Sink)
    except OSError:
        return ""
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "{}:{}".format(*server.server_address)


def slow(reports: Dict[Tuple[str, int], Values]) -> Dict[Tuple[str, ...], float]:
    """Return the replicas that were slow in their last two checks: name, node, pod, and figure, with the larger share of the median."""
    alike: DefaultDict[Tuple[Any, ...], Dict[Tuple[str, int], float]] = collections.defaultdict(dict)
    for key, report in reports.items():
        for number, check in enumerate(report["speed"].get("checks", [])[:2]):
            for figure, value in check["figures"].items():
                alike[number, key[0], check["machine"], figure][key] = value
    shares: DefaultDict[Tuple[str, ...], List[float]] = collections.defaultdict(list)
    for (*_, figure), values in alike.items():
        if figure == "network":
            # What is sent to a slow network is slow too, so the faster one of both directions counts.
            before = {key: (key[0], key[1] - 1) if key[1] else max(values) for key in values}
            values = {key: max(value, values.get(before[key], 0)) for key, value in values.items()}
        median = statistics.median(values.values())
        for key, value in values.items():
            if value < SLOW * median:
                where = reports[key]["speed"]
                shares[f"{key[0]}-{key[1]}", where["node"], where["pod"], figure].append(value / median)
    return {each: max(found) for each, found in shares.items() if len(found) == 2}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)))
