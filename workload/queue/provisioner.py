"""Asks GKE for the nodes of pools with queued provisioning.

The nn-workers of such a job name a ProvisioningRequest, for which GKE adds nodes. The job asks when all of its other replicas
run, since the machines of the other pools come one by one. It asks for the nn-workers that have no node: nodes that another job
has left take some at once, and a node may be lost later. A request that waits while other nodes take nn-workers goes, so that
no node comes for them. These nodes may be the request's own, and GKE says so after they have come, so it goes only some minutes
later. When Kueue stops the job, or the job ends, the request goes too.

A request that GKE has given up is replaced: at once by one for the next pool of the job, and after the last, some time later, by
one for the first. No answer needs a person: Kueue stops a job whose replicas do not all run in time, and admits it again.
"""

import argparse
import copy
import datetime
import json
import os
import ssl
import time
import urllib.error
import urllib.request

CLASS = "queued-provisioning.gke.io"
ANNOTATION = "autoscaling.x-k8s.io/consume-provisioning-request"
JOB_LABEL = "jobset.sigs.k8s.io/jobset-name"
ROLE_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"

# Annotations of a request: the pools after its own, best first, as a job has all; and what GKE has said of those before.
POOLS, TRIED = "persia.com/node-pools", "persia.com/tried"

# The conditions with which GKE has given a request up, so that nodes will not come or stay.
GIVEN_UP = ("Failed", "CapacityRevoked", "BookingExpired")

# How long GKE may take to say that the nodes of a request are there, after the first pod has one of them.
SETTLE = datetime.timedelta(minutes=5)

# The next steps for a job.
ASK, RELEASE, NEXT, NOTHING = "ask", "release", "next", "nothing"


def asking_role(job):
    """Returns the role whose pods name the request of the job, or None. Where Kueue asks itself, pods name its own requests."""
    name, roles = job["metadata"]["name"], job["spec"].get("replicatedJobs") or []
    return next((role for role in roles if annotation(role["template"]["spec"]["template"], ANNOTATION) == name), None)


def annotation(thing, name):
    """Returns an annotation, or an empty text."""
    return thing.get("metadata", {}).get("annotations", {}).get(name, "")


def condition(thing, *kinds, status="True"):
    """Returns the first condition of some kinds that has a status, or None."""
    conditions = thing.get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] in kinds and entry["status"] == status), None)


def runs(job):
    """Returns whether the job may have pods."""
    return not (condition(job, "Completed", "Failed") or job["spec"].get("suspend") or job["metadata"].get("deletionTimestamp"))


def others_run(job, pods):
    """Returns whether all replicas of the other roles run."""
    for role in job["spec"]["replicatedJobs"]:
        running = [pod for pod in live_pods(role, pods) if pod.get("status", {}).get("phase") in ("Running", "Succeeded")]
        if role is not asking_role(job) and len(running) < role["template"]["spec"]["parallelism"]:
            return False
    return True


def missing(role, pods):
    """Returns how many nodes the replicas of the role lack: 0 until each has a pod. A substitute may take its predecessor's."""
    live = live_pods(role, pods)
    without = [pod for pod in live if condition(pod, "PodScheduled", status="False")]
    return len(without) if len(live) >= role["template"]["spec"]["parallelism"] else 0


def asks_too_much(role, request, pods, now):
    """Returns whether a request asks for more nodes than the replicas that have been on no node for a while."""
    since = [condition(pod, "PodScheduled") for pod in live_pods(role, pods)]
    placed = sum(1 for entry in since if entry and now - time_of(entry) >= SETTLE)
    return role["template"]["spec"]["parallelism"] - placed < request["spec"]["podSets"][0]["count"]


def live_pods(role, pods):
    """Returns the pods of a role that have not failed and are not being deleted."""
    own = [pod for pod in pods if pod["metadata"].get("labels", {}).get(ROLE_LABEL) == role["name"]]
    return [pod for pod in own if pod.get("status", {}).get("phase") != "Failed" and not pod["metadata"].get("deletionTimestamp")]


def time_of(entry):
    """Returns since when a condition is as it is."""
    return datetime.datetime.fromisoformat(entry["lastTransitionTime"].replace("Z", "+00:00"))


def next_step(job, request, pods, now, retry):
    """Returns the next step for a job. pods are the pods of the job, if it runs."""
    if not runs(job):
        return RELEASE if request else NOTHING
    if request is None:
        return ASK if missing(asking_role(job), pods) and others_run(job, pods) else NOTHING
    over = condition(request, *GIVEN_UP)
    if not condition(request, "Provisioned"):
        if not others_run(job, pods):
            return RELEASE  # a server has lost its node: no GPUs without it
        if not over and asks_too_much(asking_role(job), request, pods, now):
            return RELEASE  # the next round asks for the rest
    if not over or not missing(asking_role(job), pods):
        return NOTHING
    if now - time_of(over) >= datetime.timedelta(seconds=retry):
        return RELEASE  # the next round asks for the first pool
    return NEXT if annotation(request, POOLS) else NOTHING


def with_requests(template):
    """Returns a pod template that requests its limits. Kubernetes adds these requests to pods only."""
    template = copy.deepcopy(template)
    for container in template["spec"].get("initContainers", []) + template["spec"]["containers"]:
        resources = container.setdefault("resources", {})
        resources["requests"] = {**resources.get("limits", {}), **resources.get("requests", {})}
    return template


class API:
    """The API server, as the pod's service account."""

    def __init__(self, server, account):
        self.server, self.account = server, account
        self.tls = ssl.create_default_context(cafile=os.path.join(account, "ca.crt"))

    def call(self, method, path, body=None):
        # The kubelet renews the token.
        with open(os.path.join(self.account, "token"), encoding="utf-8") as file:
            token = file.read()
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        request = urllib.request.Request(self.server + path, body and json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:
            return json.load(answer)

    def list(self, path):
        return self.call("GET", path).get("items") or []

    def delete(self, path):
        try:
            self.call("DELETE", path)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise


class Provisioner:
    """Acts for the jobs of a namespace."""

    def __init__(self, api, namespace, retry):
        self.api, self.retry = api, retry
        self.jobs = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"
        self.requests = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{namespace}/provisioningrequests"
        self.core = f"/api/v1/namespaces/{namespace}/"

    def round(self):
        """Takes the step of each job."""
        jobs = [job for job in self.api.list(self.jobs) if asking_role(job)]
        if not jobs:
            return
        requests = {request["metadata"]["name"]: request for request in self.api.list(self.requests)}
        for job in jobs:
            try:
                self.act(job, requests)
            except Exception as error:
                # The other jobs must not wait until the API server accepts this one's request.
                print(f"{job['metadata']['name']}: {error!r}", flush=True)

    def act(self, job, requests):
        name = job["metadata"]["name"]
        pods = self.api.list(f"{self.core}pods?labelSelector={JOB_LABEL}={name}") if runs(job) else []
        now, request = datetime.datetime.now(datetime.timezone.utc), requests.get(name)
        step = next_step(job, request, pods, now, self.retry)
        if step in (RELEASE, NEXT):
            self.api.delete(self.requests + "/" + name)
            self.api.delete(self.core + "podtemplates/" + name)
        if step in (ASK, NEXT):
            self.ask(job, missing(asking_role(job), pods), request)
        if step != NOTHING:
            print(f"{name}: {step}", flush=True)

    def ask(self, job, count, refused):
        """Asks for nodes of the job's first pool, or of the one after a refused request's."""
        name, template = job["metadata"]["name"], with_requests(asking_role(job)["template"]["spec"]["template"])
        # Both go with the job, also if this program does not run then.
        owner = {"apiVersion": job["apiVersion"], "kind": "JobSet", "name": name, "uid": job["metadata"]["uid"]}
        metadata = {"name": name, "ownerReferences": [owner]}
        over = refused and condition(refused, *GIVEN_UP)
        tried = f"{annotation(refused, TRIED)} {over['lastTransitionTime']}: {over['message']}; " if refused else ""
        pool, _, rest = annotation(refused or job, POOLS).partition(",")
        if pool:
            template["spec"]["nodeSelector"]["cloud.google.com/gke-nodepool"] = pool
            metadata["annotations"] = {POOLS: rest, TRIED: tried + pool}
        self.api.delete(self.core + "podtemplates/" + name)
        pods = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}
        self.api.call("POST", self.core + "podtemplates", pods)
        # GKE accepts one set of pods.
        spec = {"provisioningClassName": CLASS, "podSets": [{"count": count, "podTemplateRef": {"name": name}}]}
        request = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": metadata, "spec": spec}
        self.api.call("POST", self.requests, request)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--account", required=True, help="folder with the token and the certificate of the API server")
    parser.add_argument("--retry-seconds", type=float, default=60)
    parser.add_argument("--poll-seconds", type=float, default=5)
    options = parser.parse_args()
    server = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**os.environ)
    provisioner = Provisioner(API(server, options.account), options.namespace, options.retry_seconds)
    while True:
        try:
            provisioner.round()
        except Exception as error:
            # The API server does not answer, or in part, or an object has changed meanwhile.
            print(f"trying again: {error!r}", flush=True)
        time.sleep(options.poll_seconds)


if __name__ == "__main__":
    main()
