package gke_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/infra/gke"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestClusterWithJobsIsNotReplaced: unless the stack file names the cluster, no setting replaces it while jobs run there.
func TestClusterWithJobsIsNotReplaced(t *testing.T) {
	const identifier = "projects/my-project/locations/us-central1/clusters/persia-dev?datapath=ADVANCED_DATAPATH&privateNodes=true&controlPlane=172.16.0.0/28"
	provider := func(identifier string) settings {
		return settings{"urn:pulumi:stack::persia::persia:gke:Cluster$pulumi:providers:kubernetes::persia-dev": settings{
			"outputs": settings{"clusterIdentifier": identifier}}}
	}
	state := func(object string, spec settings) settings {
		state := provider(identifier)
		state["urn:pulumi:stack::persia::persia:workload:Job$kubernetes:"+object] = settings{
			"outputs": settings{"metadata": settings{"name": "adult-income"}, "spec": spec},
		}
		return state
	}
	job := func(replicas int) settings {
		return state("apps/v1:StatefulSet::adult-income-nn-worker", settings{"replicas": replicas, "template": settings{
			"metadata": settings{"labels": settings{"persia_job": "adult-income", "app.kubernetes.io/name": "nn-worker"}},
			"spec":     settings{"containers": []any{settings{"name": "nn-worker"}}},
		}})
	}
	jobSet := func(spec settings) settings {
		spec["replicatedJobs"] = []any{settings{"name": "nn-worker", "template": settings{"spec": settings{"completions": 1}}}}
		return state("jobset.x-k8s.io/v1alpha2:JobSet::adult-income", spec)
	}
	persiaJob := func(replicas int) settings {
		return state("persia.com/v1:PersiaJob::adult-income", settings{"nnWorker": settings{"replicas": replicas}})
	}
	running := job(1)
	elsewhere := maps.Clone(running)
	maps.Copy(elsewhere, provider("shared"))
	withPart := maps.Clone(running)
	maps.Copy(withPart, provider(identifier+"&zones=2"))
	for name, c := range map[string]struct {
		state   settings
		edits   settings
		refuses []string
	}{
		"a new stack":                     {nil, settings{"network.controlPlane": "172.16.1.0/28"}, nil},
		"an edit that replaces nothing":   {running, settings{"releaseChannel": "STABLE"}, nil},
		"another name":                    {running, settings{"name": "persia-two"}, []string{`persia:cluster.name: Invalid value: "persia-two": was persia-dev`}},
		"another region":                  {running, settings{"region": "us-east1", "zones": []any{"us-east1-b"}}, []string{`persia:cluster.region: Invalid value: "us-east1": was us-central1`}},
		"another project":                 {running, settings{"persia:project": "other-project"}, []string{`persia:project: Invalid value: "other-project": was my-project`}},
		"another range":                   {running, settings{"network.controlPlane": "172.16.1.0/28"}, []string{`persia:cluster.network.controlPlane: Invalid value: "172.16.1.0/28": was 172.16.0.0/28`}},
		"from a cluster that exists":      {elsewhere, nil, []string{`persia:cluster.existing: Invalid value: "not set": was set`, `persia:cluster.name: Invalid value: "persia-dev": was shared`}},
		"another name, and suspended":     {job(0), settings{"name": "persia-two"}, nil},
		"a JobSet":                        {jobSet(settings{"suspend": false}), settings{"name": "persia-two"}, []string{"persia:cluster.name"}},
		"a JobSet of a queue":             {jobSet(settings{}), settings{"name": "persia-two"}, []string{"persia:cluster.name"}},
		"a suspended JobSet":              {jobSet(settings{"suspend": true}), settings{"name": "persia-two"}, nil},
		"a job of the operator":           {persiaJob(1), settings{"name": "persia-two"}, []string{"persia:cluster.name"}},
		"a suspended job of the operator": {persiaJob(0), settings{"name": "persia-two"}, nil},
		"another name, and permitted":     {running, settings{"name": "persia-two", "replace": "persia-dev"}, nil},
		"permitted, but another one":      {running, settings{"name": "persia-two", "replace": "persia-two"}, []string{"persia:cluster.name"}},
		"a state without an identifier":   {settings{"urn:pulumi:stack::persia::pulumi:providers:kubernetes::persia-dev": settings{"outputs": settings{}}}, settings{"name": "persia-two"}, nil},
		"an identifier with another part": {withPart, nil, []string{"persia:cluster: Invalid value", "was " + identifier + "&zones=2"}},
		"permitted, and nothing replaced": {running, settings{"replace": "persia-dev"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorder, err := programtest.Deploy(t, programtest.ReadStack(t, "Pulumi.dev.yaml", ofCluster(c.edits)), upBefore(c.state))
			if c.refuses == nil {
				require.NoError(t, err)
				return
			}
			for _, text := range c.refuses {
				assert.ErrorContains(t, err, text)
			}
			assert.ErrorContains(t, err, "where the jobs that run are: adult-income. Restore the value")
			assert.Equal(t, testkit.First[:1], recorder.URNs())
		})
	}
}

func TestReplaceWarning(t *testing.T) {
	for name, c := range map[string]struct {
		replaced *gke.Replacement
		replace  string
		warns    bool
	}{
		"no permission":            {&gke.Replacement{Cluster: "a"}, "", false},
		"used":                     {&gke.Replacement{Cluster: "a"}, "a", false},
		"nothing is replaced":      {nil, "a", true},
		"another cluster is named": {&gke.Replacement{Cluster: "a"}, "b", true},
	} {
		warning := gke.ReplaceWarning(c.replaced, config.Cluster{Replace: c.replace})
		assert.Equal(t, c.warns, warning != "", "%s: %q", name, warning)
	}
}
