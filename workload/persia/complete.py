"""Ends with success when a training job of PERSIA's operator is complete, and with status 3 when it has failed.

The operator looks after no pod that it has made, so this does, through the API server. The job is complete when all nn-workers
and dataloaders have succeeded. It has failed when one of its pods has failed or is gone, and whenever PERSIA would let
nn-workers end with success that have not trained on all data.
"""

import calendar
import http.client
import json
import os
import ssl
import sys
import time
import urllib.request

COMPLETE, FAILED, GOING_ON = 0, 3, None

# The operator makes all pods of a job at once, and only once: when one is as old as this, in seconds, no other one will come.
MADE_SECONDS = 120

NN_WORKER, DATALOADER = "nn-worker", "dataloader"


class Job:
    """A training job as its pods show it, one look after the other."""

    def __init__(self, name, replicas, patience, clock=time.monotonic, now=time.time):
        self.roles = {role: [f"{name}-{role}-{i}" for i in range(count)] for role, count in replicas.items()}
        self.scripted = self.roles[NN_WORKER] + self.roles[DATALOADER]
        self.patience, self.clock, self.now = patience, clock, now
        # What this process has seen. One before it, in a pod that was lost, may have seen more.
        self.seen, self.finished = set(), set()
        self.made = False  # whether all pods have been made
        self.ended = None  # when all nn-workers were first seen to have ended

    def look(self, pods):
        """What has become of the job, with a word for people."""
        self.seen |= set(pods)
        self.made = self.made or any(self.now() - created(pod) > MADE_SECONDS for pod in pods.values())
        self.finished |= {name for name in self.scripted if name in pods and phase(pods[name]) == "Succeeded"}
        trouble = self.trouble(pods)
        if trouble:
            return FAILED, f"failed: {trouble}"
        if self.finished == set(self.scripted):
            return COMPLETE, "complete"
        absent = [name for names in self.roles.values() for name in names if name not in pods and name not in self.finished]
        if absent:
            who = f"{absent[0]} and {len(absent) - 1} more are" if absent[1:] else f"{absent[0]} is"
            return GOING_ON, f"waiting: {who} not there"
        scripted = ((role, set(self.roles[role])) for role in (NN_WORKER, DATALOADER))
        counts = (f"{len(self.finished & names)} of {len(names)} {role}s" for role, names in scripted)
        return GOING_ON, f"running: {' and '.join(counts)} have finished"

    def trouble(self, pods):
        """Why the job cannot be complete any more, or nothing."""
        nn_workers_ended = self.nn_workers_ended(pods)
        troubles = (self.trouble_of(name, pods, nn_workers_ended) for names in self.roles.values() for name in names)
        trouble = next(filter(None, troubles), None)
        if trouble or not nn_workers_ended:
            return trouble
        if self.ended is None:
            self.ended = self.clock()
        if self.clock() - self.ended > self.patience and not self.finished >= set(self.roles[DATALOADER]):
            # PERSIA ends an nn-worker's loop without an error when no data comes.
            return "the nn-workers ended before the dataloaders had sent all data"
        return None

    def trouble_of(self, name, pods, nn_workers_ended):
        if name not in pods:
            # Nothing makes a pod again. What has finished may go.
            may_go = name in self.finished or nn_workers_ended and name not in self.scripted
            if may_go or not self.made and name not in self.seen:
                return None
            return f"{name} is gone" + (", and was not seen to finish" if name in self.scripted and name not in self.seen else "")
        pod = pods[name]
        if name in self.scripted:
            return f"{name} failed: {why(pod)}" if phase(pod) == "Failed" else None
        if phase(pod) in ("Failed", "Succeeded") and not (nn_workers_ended and nn_workers_ended <= end(pod)):
            return f"{name} ended before the nn-workers: {why(pod)}"
        running = (start(pods[other]) for other in self.roles[NN_WORKER] if other in pods and phase(pods[other]) == "Running")
        if container(pod).get("restartCount") and any(started and started < start(pod) for started in running):
            return f"{name} was restarted after the nn-workers had started, and knows nothing of the training"
        return None

    def nn_workers_ended(self, pods):
        """When the last nn-worker ended, or nothing while one has not."""
        if not self.finished >= set(self.roles[NN_WORKER]):
            return ""
        return max([end(pods[name]) for name in self.roles[NN_WORKER] if name in pods] or ["0"])


def phase(pod):
    return pod.get("status", {}).get("phase", "")


def created(pod):
    """When a pod was created, in seconds since 1970."""
    return calendar.timegm(time.strptime(pod["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ"))


def container(pod):
    """The status of a pod's one container that PERSIA runs in."""
    return (pod.get("status", {}).get("containerStatuses") or [{}])[0]


def start(pod):
    """When the container started, as a text: Kubernetes writes all times alike, so that their texts can be compared."""
    return container(pod).get("state", {}).get("running", {}).get("startedAt") or ""


def end(pod):
    return container(pod).get("state", {}).get("terminated", {}).get("finishedAt") or ""


def why(pod):
    """What Kubernetes says about the end of a pod."""
    status, ended = pod.get("status", {}), container(pod).get("state", {}).get("terminated", {})
    code = f"status {ended['exitCode']}" if "exitCode" in ended else None
    said = [status.get("reason"), status.get("message"), ended.get("reason"), code]
    return ", ".join(filter(None, said)) or "Kubernetes does not say why"


def list_pods(environment):
    """Return the pods of the job by name, as the account of this pod may list them."""
    account = environment.get("PERSIA_ACCOUNT_DIR", "/var/run/secrets/kubernetes.io/serviceaccount")
    server = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}"
    url = server + "/api/v1/namespaces/{PERSIA_NAMESPACE}/pods?labelSelector=persia_job%3D{PERSIA_JOB}"
    # The token is another one every hour.
    with open(os.path.join(account, "token")) as file:
        request = urllib.request.Request(url.format(**environment), headers={"Authorization": "Bearer " + file.read().strip()})
    trust = ssl.create_default_context(cafile=os.path.join(account, "ca.crt"))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
    with opener.open(request, timeout=30) as answer:
        return {pod["metadata"]["name"]: pod for pod in json.load(answer)["items"]}


def main(environment):
    replicas = {role: int(count) for role, count in (part.split("=") for part in environment["PERSIA_REPLICAS"].split(","))}
    patience = float(environment.get("PERSIA_END_SECONDS", "60"))
    job, said = Job(environment["PERSIA_JOB"], replicas, patience), None
    while True:
        try:
            status, text = job.look(list_pods(environment))
        except (OSError, ValueError, http.client.HTTPException) as error:
            status, text = GOING_ON, f"the API server does not answer: {error}"
        if text != said:
            print(text, flush=True)
        said = text
        if status is not GOING_ON:
            return status
        time.sleep(float(environment.get("PERSIA_POLL_SECONDS", "15")))


if __name__ == "__main__":
    sys.exit(main(os.environ))
