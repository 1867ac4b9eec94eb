package gcp

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	replicasText = regexp.MustCompile(`^(\S+) restarts: its (\d+) replicas are replaced`)
	roundsText   = regexp.MustCompile(`GKE recreates the nodes of the pool (\S+), (\d+) at once, about (\d+) min`)
	replacedText = regexp.MustCompile(`Google Cloud deletes all nodes of the pool (\S+), and creates them again: about (\d+) min without nodes`)
	resizedText  = regexp.MustCompile(`GKE deletes nodes of the pool (\S+): (all|\d+)`)
)

// saidToEnd returns the workloads of PEDL, and of a job that goes on, that the last preview said to end by themselves.
func (e *engine) saidToEnd(t *testing.T) []string {
	t.Helper()
	var names []string
	goesOn := replicasOf(workloads(t, e.objects), "criteo") > 0
	for _, effect := range e.announced {
		ofPool := slices.ContainsFunc(effect.Ends, func(name string) bool { return strings.HasPrefix(name, "pool ") })
		for _, name := range effect.Ends {
			if !ofPool && (strings.HasPrefix(name, "pedl-") || goesOn && strings.HasPrefix(name, "criteo-")) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// endedOfPEDL returns the workloads of PEDL whose pods the last up changed or deleted.
func (e *engine) endedOfPEDL() []string {
	var names []string
	for _, s := range e.steps {
		workload := slices.Contains([]string{"DaemonSet", "Deployment", "StatefulSet"}, s.kind) && strings.HasPrefix(s.name, "pedl-")
		if workload && (s.operation == "delete" || s.operation == "update" && s.changesPods()) {
			names = append(names, s.name)
		}
	}
	slices.Sort(names)
	return names
}

// both applies several edits.
func both(edits ...func(values)) func(values) {
	return func(file values) {
		for _, edit := range edits {
			edit(file)
		}
	}
}

// ofJob sets a setting of the only job.
func ofJob(path string, value any) func(values) { return set("persia:jobs", "0."+path, value) }

// autoscaled has from 3 to 6 workers.
func autoscaled(file values) {
	set("persia:nodePools", "0", values{"name": "workers", "machineType": "n2-standard-32", "autoscaling": values{"minNodes": 3, "maxNodes": 6}})(file)
}

// ubuntu has NVIDIA's installer load a version of the driver.
func ubuntu(version string) func(values) {
	return func(file values) {
		file["persia:nvidiaDriver"] = values{"installer": "ubuntu-daemonset", "version": version}
	}
}

// services adds a pool for services, and removePool removes it.
func services(file values) {
	file["persia:nodePools"] = append(slices.Clone(file["persia:nodePools"].([]any)), values{"name": "services", "machineType": "n2-standard-32", "nodes": 3})
}

func removePool(file values) { file["persia:nodePools"] = file["persia:nodePools"].([]any)[:2] }

// platform adds PEDL, on a pool for services.
func platform(file values) {
	services(file)
	file["persia:pedl"] = values{
		"masterImage": "determinedai/pedl-master:1", "agentImage": "determinedai/pedl-agent:1", "nodePool": "services",
		"registry": values{"password": "word"}, "postgresql": values{"postgresqlPassword": "word"},
	}
}

// elsewhere has PEDL use a database of the user.
func elsewhere(password string) func(values) {
	return set("persia:pedl", "postgresql", values{"external": values{"host": "10.0.0.9", "password": password}})
}

func withoutPersistence(file values) {
	set("persia:pedl", "postgresql.persistence", values{"enabled": false})(file)
}

// byOperator leaves the job to PERSIA's operator.
func byOperator(file values) {
	file["persia:operator"] = values{"image": "example.com/persia-operator:1"}
	ofJob("engine", "operator")(file)
	ofJob("mounts", []any{values{"volume": "shared", "mountPath": "/shared"}})(file)
}

// queued has the job wait in the queue of a team, which owns all nodes.
func queued(file values) {
	file["persia:queue"] = values{
		"teams":      []any{values{"name": "ads", "nodes": values{"training": 2, "workers": 4}}, values{"name": "feed", "nodes": values{}}},
		"priorities": []any{values{"name": "urgent", "value": 10}},
	}
	ofJob("engine", "jobset")(file)
	ofJob("queue", "ads")(file)
}

// TestEffects makes edits of a whole stack. The program says what becomes of the training and its
// data for each, and the plan restarts the pods that the program names.
func TestEffects(t *testing.T) {
	const checkpoints = "folder criteo/1 of gs://my-project-checkpoints"
	shared := []any{values{"volume": "shared", "mountPath": "/shared"}}
	all := []string{"criteo-dataloader", "criteo-embedding-ps", "criteo-embedding-worker", "criteo-nn-worker"}
	for _, c := range []struct {
		name         string
		before, edit func(values)
		// says are parts of the effects, in their order. restarts are the roles whose pods are replaced.
		says     []string
		restarts []string
	}{
		{"nothing", nil, func(values) {}, nil, nil},
		{"a second zone", nil, set("persia:cluster", "zones", []any{"us-central1-a", "us-central1-b"}), []string{
			"persia:cluster.systemPool: GKE deletes nodes of the pool system: 1 of 2 in us-central1-a, which it chooses",
			"persia:nodePools[1]: GKE deletes nodes of the pool training: 1 of 2 in us-central1-a, which it chooses; criteo may restart on other nodes, and resumes from the newest checkpoint in " + checkpoints,
			"persia:nodePools[0]: GKE deletes nodes of the pool workers: 2 of 4 in us-central1-a, which it chooses",
		}, nil},
		{"another version of NATS", nil, set("persia:nats", "version", "2.10.1"), []string{
			"the NATS cluster persia-nats-service gets another version: its 3 servers are replaced, one at a time",
		}, nil},
		{"more memory for NATS", nil, set("persia:nats", "resources.limits.memory", "3Gi"), []string{
			"the NATS cluster persia-nats-service restarts: its 3 servers are replaced at once; criteo restarts when NATS answers again, unless that is soon, and resumes from the newest checkpoint in " + checkpoints,
		}, nil},
		{"an image of a JobSet", ofJob("engine", "jobset"), ofJob("dataloader.image", "example.com/training/criteo:2"), []string{
			"criteo restarts: its 10 replicas are replaced, about 2 min; it resumes from the newest checkpoint in " + checkpoints + "; if its run is complete, its replicas come back to find that out: to prevent it, write suspend: true",
		}, all},
		{"a JobSet instead of StatefulSets while nothing runs", ofJob("suspend", true), ofJob("engine", "jobset"), nil, nil},
		{"a renamed job while nothing runs", ofJob("suspend", true), ofJob("name", "other"), []string{
			"criteo ends, because it is not in the stack file; its checkpoints stay in " + checkpoints + ": to resume from them, write it again with this name and runId",
		}, nil},
		{"a removed job", nil, func(file values) { file["persia:jobs"] = []any{} }, []string{"criteo ends, because it is not in the stack file"}, nil},
		{"another run", nil, ofJob("runId", "second"), []string{
			"criteo restarts: its 10 replicas are replaced, about 8 min; it starts from the beginning, as run `second`, unless that has checkpoints; the old checkpoints stay in " + checkpoints,
		}, all},
		{"a stopped job", nil, ofJob("suspend", true), []string{
			"criteo stops; without suspend, it resumes from the newest checkpoint in " + checkpoints,
		}, nil},
		{"an image", nil, ofJob("dataloader.image", "example.com/training/criteo:2"), []string{
			"criteo restarts: its 4 dataloaders are replaced, about 8 min; it resumes from the newest checkpoint in " + checkpoints + "; to replace all at once, suspend it first",
		}, []string{"criteo-dataloader"}},
		{"another volume for checkpoints", nil, ofJob("mounts", shared), []string{
			"about 8 min; it starts from the newest checkpoint in folder criteo/1 of Filestore instance shared in us-central1-a, or from the beginning if there is none; the old checkpoints stay in",
		}, all},
		{"another folder of the bucket", nil, set("persia:storage", "0.mountOptions", []any{"only-dir=second"}), []string{
			"criteo: its next attempt starts from the newest checkpoint in folder second/criteo/1 of gs://my-project-checkpoints, or from the beginning if there is none; the old checkpoints stay in " + checkpoints,
			"keep the old mountOptions of the volume checkpoints",
		}, nil},
		{"another mount option", nil, set("persia:storage", "0.mountOptions", []any{"uid=1000"}), []string{
			"pods that do not restart keep the old mountOptions of the volume checkpoints: to restart a job that mounts it, run kubectl -n persia delete pods -l persia_job=JOB",
		}, nil},
		{"no volume", nil, ofJob("mounts", []any{}), []string{
			"it starts from the beginning, because nn-workers, embedding workers, and embedding parameter servers mount no volume at the same path; the old checkpoints stay in " + checkpoints,
		}, all},
		{"a volume to read only", nil, ofJob("mounts", []any{values{"volume": "checkpoints", "mountPath": "/checkpoints", "readOnly": true}}), []string{
			"it starts from the beginning, because",
		}, all},
		{"a folder of the script's own", nil, ofJob("env", []any{values{"name": "PERSIA_CKPT_DIR", "value": "/checkpoints/mine"}}), []string{
			"it resumes from what its script loads from /checkpoints/mine",
		}, all},
		{"another machine for the training", nil, set("persia:nodePools", "1.machineType", "g2-standard-16"), []string{
			"persia:nodePools[1].machineType was g2-standard-32 and is now g2-standard-16: GKE recreates the nodes of the pool training, 1 at once, about 20 min; criteo restarts up to 2 times, and resumes from the newest checkpoint in " + checkpoints + ": to restart it once, suspend it first",
		}, nil},
		{"spot workers", nil, set("persia:nodePools", "0.spot", true), []string{
			" are replaced; it resumes from the newest checkpoint in " + checkpoints,
			"persia:nodePools[0].spot was not set and is now true: Google Cloud deletes all nodes of the pool workers, and creates them again: about 20 min without nodes; criteo restarts on other nodes",
		}, []string{"criteo-dataloader", "criteo-embedding-ps", "criteo-embedding-worker"}},
		{"another image in a queue", queued, ofJob("dataloader.image", "example.com/training/criteo:2"), []string{
			"criteo restarts: its 10 replicas are replaced, and wait in the queue ads until there is room for all; it resumes from the newest checkpoint in " + checkpoints,
		}, all},
		{"no queue", queued, func(file values) {
			file["persia:queue"] = values{"teams": []any{values{"name": "ads"}}}
			delete(file["persia:jobs"].([]any)[0].(values), "queue")
		}, []string{"criteo restarts: its 10 replicas are replaced, about 2 min"}, all},
		{"fewer nodes than autoscaling allows", autoscaled, set("persia:nodePools", "0", values{"name": "workers", "machineType": "n2-standard-32", "nodes": 3}), []string{
			"persia:nodePools[0]: GKE deletes nodes of the pool workers: down to 3 nodes, which it chooses, if autoscaling has created more; criteo may restart on other nodes",
		}, nil},
		{"another installer of the driver", nil, ubuntu("550.90.12"), []string{
			"is now INSTALLATION_DISABLED: Google Cloud deletes all nodes of the pool training",
		}, nil},
		{"another image of a database without a volume", both(platform, withoutPersistence), set("persia:pedl", "postgresql.image.tag", "11"), []string{
			"pedl-postgresql restarts, and its data is lost: to keep it, set persia:pedl.postgresql.persistence",
		}, nil},
		{"a database without its volume", platform, withoutPersistence, []string{
			"pedl-postgresql restarts; its data stays in projects/my-project/zones/us-central1-a/disks/persia-pedl-postgresql, which it no longer uses: to use it again, restore persia:pedl.postgresql",
			"the volume pedl-postgresql is no longer in the stack file",
		}, nil},
		{"a database elsewhere", both(platform, set("persia:pedl", "postgresql.persistence.storageClass", "standard-rwo")), elsewhere("word"), []string{
			"pedl-master restarts; pedl-postgresql ends; its data stays in the claim pedl-postgresql",
		}, nil},
		{"no PEDL", platform, func(file values) { delete(file, "persia:pedl") }, []string{
			"pedl-agent ends; pedl-master ends; pedl-postgresql ends",
			"the volume pedl-postgresql is no longer in the stack file; its data stays in projects/my-project/zones/us-central1-a/disks/persia-pedl-postgresql",
		}, nil},
		{"NATS on a pool that goes", both(services, set("persia:nats", "nodePool", "services")), both(set("persia:nats", "nodePool", "workers"), removePool), []string{
			"the NATS cluster", "the pool services is no longer in the stack file: GKE deletes its nodes; the NATS cluster persia-nats-service runs there: criteo restarts when NATS answers again, unless that is soon",
		}, nil},
		{"an image of a job of the operator", byOperator, ofJob("dataloader.image", "example.com/training/criteo:2"), []string{
			"criteo restarts: its 10 replicas are replaced, about 2 min; it resumes from what its script loads",
		}, all},
		{"env", nil, ofJob("env", []any{values{"name": "OF_THE_JOB", "value": "set"}}), []string{"criteo restarts: "}, all},
		{"the entry script of a role", nil, ofJob("persiaEnv.PERSIA_DATALOADER_ENTRY", "/workspace/other.py"), []string{"criteo restarts: "}, []string{"criteo-dataloader"}},
		{"nodePool of a role", nil, ofJob("dataloader.nodePool", "training"), []string{"criteo restarts: "}, []string{"criteo-dataloader"}},
		{"replicas of a role", nil, ofJob("dataloader.replicas", 5), []string{"criteo restarts: "}, []string{"criteo-dataloader", "criteo-nn-worker"}},
		{"autoscaling", nil, autoscaled, nil, nil},
		{"a renamed volume", nil, both(set("persia:storage", "0.name", "saved"), ofJob("mounts", []any{values{"volume": "saved", "mountPath": "/checkpoints"}})), []string{"criteo restarts: "}, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, file := newStack(t, "../.."), editable(t)
			if c.before != nil {
				c.before(file)
			}
			e.up(file)
			assert.Empty(t, e.effects(), "a new stack")
			c.edit(file)
			done := e.edited(t, file)
			assertSaid(t, c.says, done.effects)
			assert.Equal(t, c.restarts, done.restarts)
		})
	}
}

// TestEditsInTwoUpdates makes edits that `up` could not finish, on nodes that hold the job once. The program
// refuses them, and accepts them after an update without the job.
func TestEditsInTwoUpdates(t *testing.T) {
	const elsewhere = "persia:storage[0]: Kubernetes cannot change where the volume checkpoints is, and does not delete it while its claim exists; "
	const noRoom = "persia:jobs[0]: the job other does not fit on the pool training beside the job criteo"
	suspended, onJobSet, onStatefulSet := ofJob("suspend", true), ofJob("engine", "jobset"), ofJob("engine", "statefulset")
	twice := func(of string) string {
		return "persia:jobs[0].engine: Invalid value: " + of + " in the cluster, and Pulumi would create its new pods before it deletes the old ones"
	}
	for name, c := range map[string]struct {
		before, edit func(values)
		says         string
	}{
		"another bucket": {nil, set("persia:storage", "0.gcsFuse.bucket", "my-project-others"), elsewhere + "give the volume for gs://my-project-others another name"},
		"another bucket of a renamed volume": {nil, both(set("persia:storage", "0.gcsFuse.bucket", "my-project-others"), set("persia:storage", "0.name", "others"),
			ofJob("mounts", []any{values{"volume": "others", "mountPath": "/checkpoints"}})), ""},
		"a renamed job":                             {nil, ofJob("name", "other"), noRoom},
		"a renamed job where there is room":         {set("persia:nodePools", "1.nodes", 4), both(set("persia:nodePools", "0.nodes", 8), ofJob("name", "other")), ""},
		"a JobSet instead of StatefulSets":          {nil, onJobSet, twice(`"jobset": the job criteo has engine: statefulset`)},
		"the operator instead of what is suspended": {suspended, byOperator, twice(`"operator": the job criteo has engine: statefulset`)},
		"a renamed pool with a reservation": {set("persia:nodePools", "1.reservation", "l4"), both(set("persia:nodePools", "1.name", "others"), ofJob("nnWorker.nodePool", "others")),
			`persia:nodePools[1].reservation: Invalid value: "l4": the nodes of others would wait for the machines of the pool training, which Pulumi deletes only when they are there; keep the name training`},
		"a renamed pool without one":           {nil, both(set("persia:nodePools", "1.name", "others"), ofJob("nnWorker.nodePool", "others")), ""},
		"StatefulSets instead of the operator": {byOperator, onStatefulSet, twice(`"statefulset": the job criteo has engine: operator`)},
	} {
		t.Run(name, func(t *testing.T) {
			e, file := newStack(t, "../.."), editable(t)
			if c.before != nil {
				c.before(file)
			}
			e.up(file)
			without := maps.Clone(file)
			without["persia:jobs"] = []any{}
			if strings.Contains(c.says, "reservation") {
				without["persia:nodePools"] = without["persia:nodePools"].([]any)[:1]
			}
			c.edit(file)
			if c.says != "" {
				require.ErrorContains(t, e.tryUp(file), c.says)
				assert.Empty(t, e.steps)
				if strings.HasPrefix(c.says, "persia:storage") {
					return
				}
				e.up(without)
			}
			e.up(file)
		})
	}
}

// assertSaid checks that there is one effect for each part, in the order of the parts.
func assertSaid(t *testing.T, parts, effects []string) {
	t.Helper()
	if !assert.Len(t, effects, len(parts), "%s", strings.Join(effects, "\n")) {
		return
	}
	for i, part := range parts {
		assert.Contains(t, effects[i], part)
	}
}
