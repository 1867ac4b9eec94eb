"""Tells the metrics gateway of a job how a replica is."""

import http.client
import threading
import time
import urllib.request

# A proxy for the way out of the cluster is not for what is within.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Gateway:
    """The place of one replica in the metrics gateway."""

    def __init__(self, address, path, seconds, log):
        self.address, self.path, self.seconds, self.log = address, path, seconds, log
        self.told = True
        self.lock = threading.Lock()  # what is told last is the latest

    def tell(self, values):
        """Put what a function says now in the place of what was told before."""
        with self.lock:
            self.put(values())

    def put(self, values):
        body = "".join(
            f"# TYPE persia_replica_{name} gauge\npersia_replica_{name} {value}\n" for name, value in values.items()
        )
        request = urllib.request.Request(
            f"http://{self.address}{self.path}",
            body.encode(),
            {"Content-Type": "text/plain; version=0.0.4"},
            method="PUT",
        )
        try:
            direct.open(request, timeout=10).close()
            self.told = True
        except (OSError, http.client.HTTPException):
            if self.told:
                self.log(f"the metrics gateway at {self.address} cannot be told: trying on")
            self.told = False

    def keep_telling(self, values):
        """Tell again and again what a function says, since the gateway keeps nothing over
        its own restart."""

        def work():
            while True:
                self.tell(values)
                time.sleep(self.seconds)

        threading.Thread(target=work, daemon=True).start()


def of(environment, log):
    """The gateway that an environment names, or None."""
    address, path = environment.get("PERSIA_METRICS_GATEWAY_ADDR"), environment.get("PERSIA_REPLICA_METRICS")
    if not address or not path:
        return None
    return Gateway(address, path, float(environment.get("PERSIA_REPORT_SECONDS", "15")), log)
