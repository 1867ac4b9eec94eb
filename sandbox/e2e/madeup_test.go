package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/config/input"
)

type object = map[string]any

// madeUp is a stack that is made up to see whether the scheduler does with it what
// the plan says.
type madeUp struct {
	name string
	// pools are in addition to "rest", which carries the roles that do not matter.
	pools        []object
	machineTypes object
	installer    string
	nats         object
	jobs         []object
	// pool is the one that TestCapacity looks at.
	pool string
}

// together returns a stack with the pools and jobs of all the given stacks.
func together(stacks []madeUp) madeUp {
	all := madeUp{machineTypes: object{}}
	for _, stack := range stacks {
		all.pools = append(all.pools, stack.pools...)
		all.jobs = append(all.jobs, stack.jobs...)
		maps.Copy(all.machineTypes, stack.machineTypes)
		if stack.nats != nil {
			all.nats = stack.nats
		}
		if stack.installer != "" {
			all.installer = stack.installer
		}
	}
	return all
}

// job returns a job with the given roles. Its other roles are small.
func job(name string, roles object) object {
	const directory = "/home/PERSIA/examples/src/adult-income/"
	job := object{
		"name":          name,
		"enableMetrics": false,
		"persiaEnv": object{
			"PERSIA_GLOBAL_CONFIG":    directory + "config/global_config.yml",
			"PERSIA_EMBEDDING_CONFIG": directory + "config/embedding_config.yml",
			"PERSIA_NN_WORKER_ENTRY":  directory + "train.py",
			"PERSIA_DATALOADER_ENTRY": directory + "data_loader.py",
		},
	}
	for _, name := range []string{"nnWorker", "dataloader", "embeddingWorker", "embeddingParameterServer"} {
		job[name] = role("rest", 1, "100m", "128Mi")
	}
	maps.Copy(job, roles)
	return job
}

func role(pool string, replicas int, cpu, memory string) object {
	return object{"nodePool": pool, "replicas": replicas, "resources": object{"limits": object{"cpu": cpu, "memory": memory}}}
}

func gpuRole(pool string, replicas int, cpu, memory string, gpus int) object {
	return object{"nodePool": pool, "replicas": replicas,
		"resources": object{"limits": object{"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus}}}
}

// stackText writes the stack file, and returns its configuration.
func stackText(t testing.TB, project string, stack madeUp) object {
	t.Helper()
	installer, nats, machineTypes := stack.installer, stack.nats, stack.machineTypes
	if machineTypes == nil {
		machineTypes = object{}
	}
	if installer == "" {
		installer = "managed"
	}
	if nats == nil {
		nats = object{"size": 1, "resources": object{"limits": object{"cpu": "100m", "memory": "512Mi"}}}
	}
	configuration := object{
		"persia:project": "my-project",
		"persia:cluster": object{"name": "madeup", "region": "us-central1", "zones": []string{"us-central1-a"},
			"deletionProtection": false},
		"persia:machineTypes": machineTypes,
		"persia:nodePools":    append([]object{{"name": "rest", "machineType": "n2-standard-8", "nodes": 1}}, stack.pools...),
		"persia:nvidiaDriver": object{"installer": installer},
		"persia:storage":      []object{},
		"persia:nats":         nats,
		"persia:operator":     object{"image": "persia/training:0.1.dev251"},
		"persia:jobs":         append([]object{}, stack.jobs...),
	}
	writeConfiguration(t, project, "madeup", configuration)
	text, err := os.ReadFile(filepath.Join(repository, "Pulumi.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(project, "Pulumi.yaml"), text, 0o600))
	return configuration
}

// writeConfiguration writes the file of a stack.
func writeConfiguration(t testing.TB, project, stack string, configuration object) {
	t.Helper()
	text, err := yaml.Marshal(object{"config": configuration})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(project, "Pulumi."+stack+".yaml"), text, 0o600))
}

// load reads a configuration as the program does.
func load(configuration object) (*config.Stack, error) {
	return config.Load(input.Values(configuration).Get, os.DirFS(repository))
}
