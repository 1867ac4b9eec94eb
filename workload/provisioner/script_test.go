package provisioner_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/workload/provisioner"
)

type object = map[string]any

// job returns a JobSet of two nn-workers and two servers.
func job(fields object) object {
	role := func(name string, replicas int, annotations map[string]string) object {
		pod := object{"metadata": object{"annotations": annotations}}
		return object{"name": name, "template": object{"spec": object{"parallelism": replicas, "template": pod}}}
	}
	set := object{
		"metadata": object{"name": "feed"},
		"spec":     object{"replicatedJobs": []any{role("embedding-ps", 2, map[string]string{}), role("nn-worker", 2, provisioner.PodAnnotations("feed"))}},
	}
	for field, value := range fields {
		set[field] = value
	}
	return set
}

// pod returns a pod of a role. Without a node, the scheduler has found none.
func pod(role, phase, node string) object {
	scheduled := "True"
	if node == "" {
		scheduled = "False"
	}
	return object{
		"metadata": object{"labels": object{"jobset.sigs.k8s.io/replicatedjob-name": role}}, "spec": object{"nodeName": node},
		"status": object{"phase": phase, "conditions": []object{{"type": "PodScheduled", "status": scheduled}}},
	}
}

// request returns a ProvisioningRequest for two nodes, whose condition has been true since 12:00.
func request(condition string) object {
	return object{"spec": object{"podSets": []object{{"count": 2}}}, "status": object{"conditions": []object{
		{"type": "Accepted", "status": "False", "lastTransitionTime": "2026-01-01T12:00:00Z"},
		{"type": condition, "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"},
	}}}
}

// nextSteps prints the steps of jobs, where 60 seconds are between two requests.
const nextSteps = `
import datetime, json, sys
import provisioner
def step(job, request, pods, now):
    return provisioner.next_step(job, request, pods or [], datetime.datetime.fromisoformat(now), 60)
print(json.dumps({name: step(*arguments) for name, arguments in json.loads(sys.argv[1]).items()}))
`

func TestNextStep(t *testing.T) {
	const noon, later = "2026-01-01T12:00:59+00:00", "2026-01-01T12:01:00+00:00"
	with := func(pods []object, more ...object) []object { return slices.Concat(pods, more) }
	running := []object{pod("embedding-ps", "Running", "a"), pod("embedding-ps", "Running", "b")}
	servers := with(running, pod("nn-worker", "Pending", ""), pod("nn-worker", "Pending", ""))
	oneServer := []object{pod("embedding-ps", "Running", "a"), pod("embedding-ps", "Pending", ""), pod("nn-worker", "Pending", "")}
	half := with(running, pod("nn-worker", "Running", "c"), pod("nn-worker", "Pending", ""))
	whole := with(running, pod("nn-worker", "Running", "c"), pod("nn-worker", "Running", "d"))
	unseen := pod("nn-worker", "Pending", "")
	delete(unseen["status"].(object), "conditions")
	onLostNode := pod("nn-worker", "Running", "d")
	onLostNode["metadata"].(object)["deletionTimestamp"] = "2026-01-01T12:00:00Z"
	waiting := job(nil)
	stopped := job(nil)
	stopped["spec"].(object)["suspend"] = true
	complete := job(object{"status": object{"conditions": []object{{"type": "Completed", "status": "True"}}}})
	deleted := job(object{"metadata": object{"name": "feed", "deletionTimestamp": "2026-01-01T12:00:00Z"}})
	tests := map[string]struct {
		job, request object
		pods         []object
		now, want    string
	}{
		"the servers start":                                {waiting, nil, oneServer, noon, "nothing"},
		"the servers run":                                  {waiting, nil, servers, noon, "ask"},
		"GKE looks for machines":                           {waiting, request("Accepted"), servers, later, "nothing"},
		"a server is lost meanwhile":                       {waiting, request("Accepted"), oneServer, noon, "release"},
		"the machines are there":                           {waiting, request("Provisioned"), servers, later, "nothing"},
		"a server is lost too late":                        {waiting, request("Provisioned"), oneServer, later, "nothing"},
		"the job runs":                                     {waiting, request("BookingExpired"), whole, later, "nothing"},
		"nodes of another job take some meanwhile":         {waiting, request("Accepted"), half, noon, "release"},
		"nodes of another job take all meanwhile":          {waiting, request("Accepted"), whole, noon, "release"},
		"a substitute is to come meanwhile":                {waiting, request("Accepted"), servers[:3], noon, "nothing"},
		"GKE gives up":                                     {waiting, request("Failed"), servers, noon, "nothing"},
		"GKE gave up a while ago":                          {waiting, request("Failed"), servers, later, "release"},
		"the machines were not used":                       {waiting, request("BookingExpired"), servers, later, "release"},
		"the machines were taken":                          {waiting, request("CapacityRevoked"), servers, later, "release"},
		"Kueue stops the job":                              {stopped, request("Accepted"), servers, noon, "release"},
		"the job is complete":                              {complete, request("BookingExpired"), nil, noon, "release"},
		"somebody deletes the job":                         {deleted, request("Accepted"), servers, noon, "release"},
		"a stopped job without a request":                  {stopped, nil, nil, noon, "nothing"},
		"nodes of another job take all":                    {waiting, nil, whole, noon, "nothing"},
		"nodes of another job take some":                   {waiting, nil, half, noon, "ask"},
		"a GPU node is lost":                               {waiting, request("BookingExpired"), half, later, "release"},
		"nodes come one after the other":                   {waiting, request("Provisioned"), half, later, "nothing"},
		"a lost node is still listed":                      {waiting, nil, with(half, onLostNode), noon, "ask"},
		"a pod failed on its node":                         {waiting, nil, with(half, pod("nn-worker", "Failed", "d")), noon, "ask"},
		"a substitute is to come":                          {waiting, nil, with(half[:3], onLostNode), noon, "nothing"},
		"another substitute is to come":                    {waiting, nil, with(servers[:3], onLostNode), noon, "nothing"},
		"the substitute of a failed pod is to come":        {waiting, nil, with(servers[:3], pod("nn-worker", "Failed", "d")), noon, "nothing"},
		"the scheduler has not seen a substitute":          {waiting, nil, with(half[:3], unseen), noon, "nothing"},
		"a substitute is to come, and the request is over": {waiting, request("BookingExpired"), with(half[:3], onLostNode), later, "nothing"},
	}
	arguments := map[string]any{}
	for name, test := range tests {
		arguments[name] = []any{test.job, test.request, test.pods, test.now}
	}
	text, err := json.Marshal(arguments)
	require.NoError(t, err)
	output, err := exec.Command("python3", "-B", "-c", nextSteps, string(text)).CombinedOutput()
	require.NoError(t, err, "%s", output)
	var steps map[string]string
	require.NoError(t, json.Unmarshal(output, &steps))
	for name, test := range tests {
		assert.Equal(t, test.want, steps[name], name)
	}
}

// TestTemplateRequestsLimits: without requests, GKE would put all pods of a request on one node.
func TestTemplateRequestsLimits(t *testing.T) {
	const script = `
import json
import provisioner
container = {"resources": {"limits": {"cpu": "4", "nvidia.com/gpu": "1"}, "requests": {"cpu": "2"}}}
template = provisioner.with_requests({"spec": {"containers": [container, {}]}})
print(json.dumps([c["resources"]["requests"] for c in template["spec"]["containers"]]))
`
	output, err := exec.Command("python3", "-B", "-c", script).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.JSONEq(t, `[{"cpu": "2", "nvidia.com/gpu": "1"}, {}]`, string(output))
}

// TestRound checks that a job asks for the nn-workers without a node, that one whose request the API
// server refuses does not hold up the others, and that a job for which Kueue asks is left to Kueue.
func TestRound(t *testing.T) {
	const script = `
import json, sys
import provisioner
class API:
    def list(self, path):
        return json.loads(sys.argv[1 if "jobsets" in path else 2]) if "requests" not in path else []
    def delete(self, path):
        pass
    def call(self, method, path, body):
        if body["metadata"]["name"] == "first":
            raise provisioner.urllib.error.HTTPError(path, 422, "refused", None, None)
        if "requests" in path:
            print(body["spec"]["podSets"][0]["count"], flush=True)
provisioner.next_step = lambda *arguments: provisioner.ASK
provisioner.Provisioner(API(), "persia", 60).round()
`
	jobs := []object{job(nil), job(nil), job(nil)}
	for i, name := range []string{"first", "second", "third"} {
		jobs[i]["apiVersion"] = "jobset.x-k8s.io/v1alpha2"
		jobs[i]["metadata"] = object{"name": name, "uid": name}
		roles := jobs[i]["spec"].(object)["replicatedJobs"].([]any)
		roles[1].(object)["template"].(object)["spec"].(object)["template"] = object{
			"metadata": object{"annotations": provisioner.PodAnnotations(name)}, "spec": object{"containers": []object{}},
		}
	}
	jobs[2]["metadata"] = object{"name": "plain", "uid": "plain"}
	text, err := json.Marshal(jobs)
	require.NoError(t, err)
	pods, err := json.Marshal([]object{pod("nn-worker", "Running", "left"), pod("nn-worker", "Pending", "")})
	require.NoError(t, err)
	output, err := exec.Command("python3", "-B", "-c", script, string(text), string(pods)).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, "first: HTTP Error 422: refused\n1\nsecond: ask\n", string(output))
}
