package gcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	clienttesting "k8s.io/client-go/testing"

	"persia/config"
	"persia/gcp"
	"persia/internal/testkit"
	"persia/workload/persia/persiav1"
	"persia/workload/queue"
)

// workload is an object that creates pods of a job.
type workload struct {
	job      string
	replicas int
}

// workloads returns the objects that create the pods of jobs.
func workloads(t *testing.T, objects map[resource.URN]inCluster) map[resource.URN]workload {
	t.Helper()
	all := map[resource.URN]workload{}
	for urn, object := range objects {
		switch urn.Type() {
		case "kubernetes:apps/v1:StatefulSet":
			set := read[appsv1.StatefulSet](t, object)
			if job := set.Spec.Template.Labels["persia_job"]; job != "" {
				all[urn] = workload{job, int(*set.Spec.Replicas)}
			}
		case "kubernetes:persia.com/v1:PersiaJob":
			job := read[persiav1.PersiaJob](t, object)
			has := workload{job: job.Name}
			for _, role := range []*persiav1.Role{&job.Spec.NNWorker.Role, job.Spec.Dataloader, job.Spec.EmbeddingWorker, job.Spec.EmbeddingParameterServer} {
				has.replicas += int(role.Replicas)
			}
			all[urn] = has
		case queue.JobSetToken:
			set := read[queue.JobSet](t, object)
			has := workload{job: set.Name}
			for _, role := range set.Spec.ReplicatedJobs {
				if set.Spec.Suspend == nil || !*set.Spec.Suspend {
					has.replicas += int(*role.Template.Spec.Completions)
				}
			}
			all[urn] = has
		}
	}
	return all
}

// replicasOf counts the replicas of a job.
func replicasOf(all map[resource.URN]workload, job string) int {
	count := 0
	for _, has := range all {
		if has.job == job {
			count += has.replicas
		}
	}
	return count
}

// read returns an object as its type.
func read[T any](t *testing.T, object inCluster) T {
	t.Helper()
	var typed T
	require.NoError(t, json.Unmarshal(testkit.Must(json.Marshal(object.outputs.Mappable()))(t), &typed))
	return typed
}

// restarted returns the roles, like criteo-nn-worker, that the last up restarts of the jobs that run before and after it.
func (e *engine) restarted(t *testing.T) []string {
	t.Helper()
	was, is := workloads(t, e.before), workloads(t, e.objects)
	var names []string
	for urn, had := range was {
		_, stays := is[urn] // or something else creates its pods
		switch {
		case had.replicas == 0 || replicasOf(is, had.job) == 0: // nothing runs
		case stays && !slices.ContainsFunc(e.steps, func(s step) bool { return s.restarts(urn) }):
		case urn.Type().Name() == "StatefulSet":
			names = append(names, urn.Name())
		default:
			for _, kind := range config.Kinds() {
				names = append(names, had.job+"-"+kind.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// restarts reports whether a step restarts an object's pods. Of templates, only a StatefulSet's replaces its pods.
func (s step) restarts(urn resource.URN) bool {
	return s.kind == string(urn.Type().Name()) && s.name == urn.Name() &&
		(s.operation == "replace" || s.kind == "StatefulSet" && s.changesPods())
}

// changesPods reports whether a step changes the template of pods.
func (s step) changesPods() bool {
	return slices.ContainsFunc(s.paths, func(path string) bool { return strings.HasPrefix(path, "spec.template.") })
}

// length returns the minutes in which GKE drains or creates nodes so often.
func length(rounds int) string {
	return fmt.Sprint((time.Duration(rounds) * config.UpgradeRoundTime).Minutes())
}

// nodesOf counts the nodes of a pool.
func (e *engine) nodesOf(pool string) int {
	count := 0
	for _, node := range e.nodes() {
		if node.Labels[gcp.LabelNodePool] == pool {
			count++
		}
	}
	return count
}

// history is how the number of nodes of a pool changed.
type history struct {
	least, most int
	// rounds are how many of the first nodes went before others came. The simulated provider changes the type and the
	// size of disks one after the other, so the nodes of the first change go too.
	rounds []int
}

// historyOf follows the nodes of a pool from the nodes before.
func (e *engine) historyOf(pool string, before map[string]corev1.Node) history {
	e.Helper()
	pools := map[string]string{}
	count := 0
	for name, node := range before {
		pools[name] = node.Labels[gcp.LabelNodePool]
		if pools[name] == pool {
			count++
		}
	}
	of := history{least: count, most: count}
	going := false
	for _, action := range e.client.Actions() {
		switch action := action.(type) {
		case clienttesting.CreateAction:
			node, is := action.GetObject().(*corev1.Node)
			if !is || node.Labels[gcp.LabelNodePool] != pool {
				continue
			}
			pools[node.Name] = pool
			count++
			going = false
		case clienttesting.DeleteAction:
			if action.GetResource().Resource != "nodes" || pools[action.GetName()] != pool {
				continue
			}
			count--
			if _, first := before[action.GetName()]; first {
				if !going {
					of.rounds = append(of.rounds, 0)
				}
				of.rounds[len(of.rounds)-1]++
				going = true
			}
		}
		of.least, of.most = min(of.least, count), max(of.most, count)
	}
	return of
}

// assertHappened compares the announced effects of the last up with what it did to the jobs that ran before.
func assertHappened(t *testing.T, e *engine) {
	t.Helper()
	was, is := workloads(t, e.before), workloads(t, e.objects)
	for _, text := range e.effects() {
		if match := replicasText.FindStringSubmatch(text); match != nil {
			assert.Equal(t, match[2], fmt.Sprint(replicasOf(is, match[1])), text)
		}
	}
	all := strings.Join(e.effects(), "\n")
	if replicasOf(was, "criteo") > 0 && replicasOf(is, "criteo") > 0 {
		replacesNATS := slices.ContainsFunc(e.steps, func(s step) bool { return s.kind == "NatsCluster" && s.operation == "replace" })
		assert.Equal(t, strings.Contains(all, " replaced at once"), replacesNATS, "%s\n%v", all, e.steps)
	}
	for _, s := range e.steps {
		if s.kind == "Bucket" || s.kind == "Instance" {
			assert.NotContains(t, []string{"delete", "replace"}, s.operation, "%v", s)
		}
	}
}

// assertNodes holds the effects against the nodes that went, and what they say of a pool against how its nodes went and
// came. Simulated time means nothing, so the times are held against the number of rounds.
func assertNodes(t *testing.T, e *engine, before map[string]corev1.Node) {
	t.Helper()
	all, now := strings.Join(e.effects(), "\n"), e.nodes()
	had, lost := map[string]int{}, map[string]int{}
	for name, node := range before {
		pool := node.Labels[gcp.LabelNodePool]
		had[pool]++
		if _, stays := now[name]; !stays {
			lost[pool]++
		}
	}
	for name, node := range now {
		// GKE taints a GPU pool only next to a pool without GPUs, and no update takes the taint away.
		tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == gcp.TaintGPU })
		assert.Equal(t, !node.Status.Allocatable.Name(gcp.GPUResource, quantity.DecimalSI).IsZero(), tainted, name)
	}
	for pool := range lost {
		assert.Regexp(t, `(pool `+pool+`\b)|everything in it`, all)
	}
	for _, match := range roundsText.FindAllStringSubmatch(all, -1) {
		said, pool := match[0], match[1]
		assert.Equal(t, had[pool], lost[pool], said)
		went := e.historyOf(pool, before)
		rounds := went.rounds
		upgrade := e.state[urnOf(nodePoolType, "persia-"+pool)].inputs.Mappable()["upgradeSettings"].(values)
		assert.EqualValues(t, upgrade["maxUnavailable"], had[pool]-went.least, said)
		assert.EqualValues(t, min(upgrade["maxSurge"].(float64), float64(had[pool])), went.most-had[pool], said)
		assert.Equal(t, match[2], fmt.Sprint(slices.Max(rounds)), said)
		assert.Equal(t, match[3], length(len(rounds)), said)
	}
	for _, match := range replacedText.FindAllStringSubmatch(all, -1) {
		said, pool := match[0], match[1]
		went := e.historyOf(pool, before)
		want := history{most: had[pool]}
		if had[pool] > 0 {
			want.rounds = []int{had[pool]}
		}
		assert.Equal(t, want, went, said)
		assert.Equal(t, had[pool], e.nodesOf(pool), said)
		assert.Equal(t, match[2], length(2), "without nodes, while they go and while others come: %s", said)
	}
	for _, match := range resizedText.FindAllStringSubmatch(all, -1) {
		count, err := strconv.Atoi(match[2])
		if err == nil {
			assert.Equal(t, count, lost[match[1]], match[0])
		} else {
			assert.Positive(t, lost[match[1]], match[0])
		}
	}
	for _, s := range e.steps {
		if s.kind == "NodePool" && (s.operation == "replace" || s.operation == "delete") && !strings.Contains(all, "everything in it") {
			pool := strings.TrimPrefix(s.name, "persia-")
			assert.Regexp(t, `Google Cloud deletes all nodes of the pool `+pool+`\b|the pool `+pool+` is no longer`, all)
		}
	}
}
