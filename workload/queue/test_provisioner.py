import datetime
import http.client
import io
import sys
import unittest
import urllib.error
from contextlib import redirect_stdout
from unittest import mock

import provisioner


def job(name="feed", annotation=True, **fields):
    """A JobSet of two servers and two nn-workers, which wait for the nodes of its request."""
    def role(name, annotations):
        pod = {"metadata": {"annotations": annotations}, "spec": {"containers": []}}
        return {"name": name, "template": {"spec": {"parallelism": 2, "template": pod}}}

    waits = {provisioner.ANNOTATION: name} if annotation else {}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "metadata": {"name": name, "uid": name, **fields.pop("metadata", {})},
        "spec": {"replicatedJobs": [role("embedding-ps", {}), role("nn-worker", waits)], **fields.pop("spec", {})}, **fields,
    }


def pod(role, phase, node, at="11:55:59", **fields):
    """A pod of a role. Without a node, the scheduler has found none."""
    scheduled = {"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": f"2026-01-01T{at}Z"}
    return {
        "metadata": {"labels": {provisioner.ROLE_LABEL: role}, **fields.pop("metadata", {})},
        "status": {"phase": phase, "conditions": [scheduled], **fields.pop("status", {})},
    }


def request(condition, pools=""):
    """A ProvisioningRequest for two nodes, whose condition has been true since 12:00, and the pools that are left."""
    def entry(kind, status):
        return {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T12:00:00Z"}

    return {"metadata": {"annotations": {provisioner.POOLS: pools}}, "spec": {"podSets": [{"count": 2}]},
            "status": {"conditions": [entry("Accepted", "False"), entry(condition, "True")]}}


NOON, LATER = "2026-01-01T12:00:59+00:00", "2026-01-01T12:01:00+00:00"
TIME = "2026-01-01T12:00:00Z"
RUNNING = [pod("embedding-ps", "Running", "a"), pod("embedding-ps", "Running", "b")]
PENDING = pod("nn-worker", "Pending", "")
SERVERS = RUNNING + [PENDING, PENDING]
OWN = RUNNING + [PENDING, pod("nn-worker", "Pending", "c", at="11:56:00")]
ONE_SERVER = [RUNNING[0], pod("embedding-ps", "Pending", ""), PENDING]
FIRST = RUNNING + [pod("nn-worker", "Running", "c")]
HALF = FIRST + [PENDING]
WHOLE = FIRST + [pod("nn-worker", "Running", "d")]
UNSEEN = pod("nn-worker", "Pending", "", status={"conditions": []})
FAILED = pod("nn-worker", "Failed", "d")
ON_LOST_NODE = pod("nn-worker", "Running", "d", metadata={"deletionTimestamp": TIME})
COMPLETE = job(status={"conditions": [{"type": "Completed", "status": "True"}]})

STEPS = [
    ("the servers start", job(), None, ONE_SERVER, NOON, "nothing"),
    ("the servers run", job(), None, SERVERS, NOON, "ask"),
    ("GKE looks for machines", job(), "Accepted", SERVERS, LATER, "nothing"),
    ("a server is lost meanwhile", job(), "Accepted", ONE_SERVER, NOON, "release"),
    ("the machines are there", job(), "Provisioned", SERVERS, LATER, "nothing"),
    ("a server is lost too late", job(), "Provisioned", ONE_SERVER, LATER, "nothing"),
    ("the job runs", job(), "BookingExpired", WHOLE, LATER, "nothing"),
    ("nodes of another job take some meanwhile", job(), "Accepted", HALF, NOON, "release"),
    ("its own nodes come before GKE says so", job(), "Accepted", OWN, NOON, "nothing"),
    ("then GKE says so", job(), "Provisioned", OWN, LATER, "nothing"),
    ("they were nodes of another job", job(), "Accepted", OWN, LATER, "release"),
    ("nodes of another job take all meanwhile", job(), "Accepted", WHOLE, NOON, "release"),
    ("a substitute is to come meanwhile", job(), "Accepted", SERVERS[:3], NOON, "nothing"),
    ("GKE gives up", job(), "Failed", SERVERS, NOON, "nothing"),
    ("GKE gave up a while ago", job(), "Failed", SERVERS, LATER, "release"),
    ("GKE gives up the first pool", job(), "Failed b", SERVERS, NOON, "next"),
    ("GKE gives up the last pool", job(), "Failed", SERVERS, NOON, "nothing"),
    ("a node of the first pool is lost", job(), "BookingExpired b", HALF, LATER, "release"),
    ("the machines were not used", job(), "BookingExpired", SERVERS, LATER, "release"),
    ("the machines were taken", job(), "CapacityRevoked", SERVERS, LATER, "release"),
    ("Kueue stops the job", job(spec={"suspend": True}), "Accepted", SERVERS, NOON, "release"),
    ("the job is complete", COMPLETE, "BookingExpired", [], NOON, "release"),
    ("somebody deletes the job", job(metadata={"deletionTimestamp": TIME}), "Accepted", SERVERS, NOON, "release"),
    ("a stopped job without a request", job(spec={"suspend": True}), None, [], NOON, "nothing"),
    ("nodes of another job take all", job(), None, WHOLE, NOON, "nothing"),
    ("nodes of another job take some", job(), None, HALF, NOON, "ask"),
    ("a GPU node is lost", job(), "BookingExpired", HALF, LATER, "release"),
    ("nodes come one after the other", job(), "Provisioned", HALF, LATER, "nothing"),
    ("a lost node is still listed", job(), None, HALF + [ON_LOST_NODE], NOON, "ask"),
    ("a pod failed on its node", job(), None, HALF + [FAILED], NOON, "ask"),
    ("a substitute is to come", job(), None, FIRST + [ON_LOST_NODE], NOON, "nothing"),
    ("another substitute is to come", job(), None, SERVERS[:3] + [ON_LOST_NODE], NOON, "nothing"),
    ("the substitute of a failed pod is to come", job(), None, SERVERS[:3] + [FAILED], NOON, "nothing"),
    ("the scheduler has not seen a substitute", job(), None, FIRST + [UNSEEN], NOON, "nothing"),
    ("a substitute is to come, and the request is over", job(), "BookingExpired", FIRST + [ON_LOST_NODE], LATER, "nothing"),
]


class TestProvisioner(unittest.TestCase):
    def test_next_step(self):
        for name, of, condition, pods, now, want in STEPS:
            with self.subTest(name):
                asked = request(*condition.split()) if condition else None
                self.assertEqual(provisioner.next_step(of, asked, pods, datetime.datetime.fromisoformat(now), 60), want)

    def test_template_requests_limits(self):
        """Without requests, GKE would put all pods of a request on one node."""
        container = {"resources": {"limits": {"cpu": "4", "nvidia.com/gpu": "1"}, "requests": {"cpu": "2"}}}
        template = provisioner.with_requests({"spec": {"containers": [container, {}]}})
        requests = [c["resources"]["requests"] for c in template["spec"]["containers"]]
        self.assertEqual(requests, [{"cpu": "2", "nvidia.com/gpu": "1"}, {}])

    def test_pools(self):
        """A request says which pool it is for, and of those before when and why they have refused."""
        of, api, refused = job(metadata={"annotations": {provisioner.POOLS: "a,b"}}), mock.Mock(), None
        of["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"list": "x"}
        for pool, tried in [("a", "a"), ("b", "a 12:00: none; b")]:
            provisioner.Provisioner(api, "persia", 60).ask(of, 1, refused)
            template, refused = [call[0][2] for call in api.call.call_args_list[-2:]]
            self.assertEqual({"list": "x", "cloud.google.com/gke-nodepool": pool}, template["template"]["spec"]["nodeSelector"])
            self.assertEqual(tried, refused["metadata"]["annotations"][provisioner.TRIED])
            refused["status"] = {"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": "12:00", "message": "none"}]}

    def test_round(self):
        """A job asks for the nn-workers without a node, a refused request holds up no other job, and a
        job for which Kueue asks is left to Kueue."""
        def call(method, path, body):
            if body["metadata"]["name"] == "first":
                raise urllib.error.HTTPError(path, 422, "refused", None, None)
            if "requests" in path:
                print(body["spec"]["podSets"][0]["count"])

        foreign = [{"metadata": {"name": "foreign"}, "spec": {}}, {"metadata": {"name": "empty"}, "spec": {"replicatedJobs": None}}]
        odd = job("odd")
        del odd["spec"]["replicatedJobs"][0]["name"]
        lists = {"jobsets": foreign + [job("first"), odd, job("second"), job("plain", annotation=False)], "provisioningrequests": []}
        api = mock.Mock(call=call)
        api.list = lambda path: lists.get(path.split("/")[-1], HALF)
        output = io.StringIO()
        with redirect_stdout(output):
            provisioner.Provisioner(api, "persia", 60).round()
        self.assertEqual(output.getvalue(), "first: <HTTPError 422: 'refused'>\nodd: KeyError('name')\n1\nsecond: ask\n")

    def test_rounds_go_on(self):
        """The API server's answer may be cut, and what it lists may be strange."""
        errors = [http.client.IncompleteRead(b""), KeyError("metadata"), OSError("refused"), SystemExit]
        output = io.StringIO()
        with redirect_stdout(output), mock.patch.object(sys, "argv", ["", "--namespace=persia", "--account=/", "--poll-seconds=0"]), \
                mock.patch.dict(provisioner.os.environ, {"KUBERNETES_SERVICE_HOST": "api", "KUBERNETES_SERVICE_PORT": "443"}), \
                mock.patch.object(provisioner, "API"), mock.patch.object(provisioner.Provisioner, "round", side_effect=errors):
            self.assertRaises(SystemExit, provisioner.main)
        self.assertEqual(3, output.getvalue().count("trying again: "))
