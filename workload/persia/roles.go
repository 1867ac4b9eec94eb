package persia

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

// Upstream's runtime images (k8s/src/crd.rs in PersiaML/PERSIA). Upstream has
// published no other tag: a stack that must be repeatable names a digest.
const (
	cudaImage = "persiaml/persia-cuda-runtime:latest"
	cpuImage  = "persiaml/persia-cpu-runtime:latest"
)

// masterPort is where the processes of torch.distributed meet.
const masterPort = 23456

// trainer is the name of the role that trains the dense part, and whose first replica
// coordinates the others.
const trainer = "nn-worker"

// role is one of the four parts of a training.
type role struct {
	// name ends the names of the role's objects, as upstream's pods are named.
	name string
	// older is the role's name in the script of older releases.
	older string
	// args are those of persia-launcher. $(NAME) is the environment's.
	args  []string
	image string
	// port is where the role listens, or 0.
	port int32
	// serves says that the role is ready when it listens.
	serves bool
	// env is the role's own environment.
	env []corev1.EnvVar
	// sharedMemory mounts memory at /dev/shm, through which the processes of a role
	// exchange data: those of NCCL, and the workers of PyTorch's DataLoader. Kubernetes
	// gives a container 64 MiB there.
	sharedMemory bool
	priority     config.Priority
	config       config.Role
}

// roles are the four parts of job, in the order that their data flows.
func roles(job config.Job, namespace string) []role {
	embeddingArgs := []string{
		"--embedding-config", "$(PERSIA_EMBEDDING_CONFIG)",
		"--global-config", "$(PERSIA_GLOBAL_CONFIG)",
		"--replica-index", "$(REPLICA_INDEX)",
		"--replica-size", "$(REPLICA_SIZE)",
	}
	return []role{
		{
			name:         "dataloader",
			older:        "datacompose",
			args:         []string{"data-loader", "$(PERSIA_DATALOADER_ENTRY)", "--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)"},
			image:        cpuImage,
			env:          []corev1.EnvVar{{Name: "PERSIA_DATALOADER_ENTRY", Value: job.PersiaEnv.DataloaderEntry}},
			sharedMemory: true,
			priority:     config.PriorityDataloader,
			config:       job.Dataloader,
		},
		{
			name:     "embedding-worker",
			older:    "middleware",
			args:     append([]string{"embedding-worker"}, embeddingArgs...),
			image:    cpuImage,
			port:     serverPort(job, 8887),
			serves:   true,
			priority: config.PriorityEmbeddingWorker,
			config:   job.EmbeddingWorker,
		},
		{
			name:     "embedding-ps",
			older:    "embserver",
			args:     append([]string{"embedding-parameter-server"}, embeddingArgs...),
			image:    cpuImage,
			port:     serverPort(job, 8888),
			serves:   true,
			priority: config.PriorityEmbeddingParameterServer,
			config:   job.EmbeddingParameterServer,
		},
		nnWorker(job, namespace),
	}
}

func nnWorker(job config.Job, namespace string) role {
	worker := job.NNWorker
	service := kube.LabelName(job.Name, trainer)
	// Replica 0 has this name wherever its pod stands.
	master := service + "-0." + service + "." + namespace + ".svc"
	return role{
		name:  trainer,
		older: "trainer",
		args: []string{"nn-worker", "$(PERSIA_NN_WORKER_ENTRY)",
			"--nproc-per-node", "$(NPROC_PER_NODE)", "--nnodes", "$(REPLICA_SIZE)", "--node-rank", "$(REPLICA_INDEX)"},
		image: cudaImage,
		port:  masterPort,
		env: []corev1.EnvVar{
			{Name: "PERSIA_NN_WORKER_ENTRY", Value: job.PersiaEnv.NNWorkerEntry},
			{Name: "NPROC_PER_NODE", Value: strconv.Itoa(worker.NprocPerNode)},
			podIndexEnv("NODE_RANK"),
			{Name: "WORLD_SIZE", Value: strconv.Itoa(worker.NprocPerNode * worker.Replicas)},
			{Name: "MASTER_ADDR", Value: master},
			{Name: "MASTER_PORT", Value: strconv.Itoa(masterPort)},
			// persia-launcher does not pass these two on to torch.distributed, which
			// then takes its defaults from here since PyTorch 1.9.
			{Name: "PET_MASTER_ADDR", Value: master},
			{Name: "PET_MASTER_PORT", Value: strconv.Itoa(masterPort)},
			{Name: "NCCL_DEBUG", Value: "INFO"},
		},
		sharedMemory: true,
		priority:     config.PriorityNNWorker,
		config:       worker.Role,
	}
}

// environment is that of a replica: the program's, then the job's, then the role's
// own, the later winning, but for where the replica notes that it has finished.
func environment(args JobArgs, role role) []corev1.EnvVar {
	job := args.Job
	env := []corev1.EnvVar{
		{Name: "PERSIA_GLOBAL_CONFIG", Value: job.PersiaEnv.GlobalConfig},
		{Name: "PERSIA_EMBEDDING_CONFIG", Value: job.PersiaEnv.EmbeddingConfig},
		{Name: "LOG_LEVEL", Value: job.LogLevel},
		{Name: "RUST_BACKTRACE", Value: "full"},
		args.Broker.Env("PERSIA_NATS_URL"),
		// The name of older releases.
		args.Broker.Env("PERSIA_NATS_IP"),
		podIndexEnv("REPLICA_INDEX"),
		{Name: "REPLICA_SIZE", Value: strconv.Itoa(role.config.Replicas)},
	}
	if *job.EnableMetrics {
		env = append(env, corev1.EnvVar{Name: "PERSIA_METRICS_GATEWAY_ADDR", Value: metricsGatewayAddress(job.Name)})
	}
	return lastWins(slices.Concat(env, role.env, scriptEnv(job), job.Env, role.config.Env, launchEnv(args, role)))
}

// serverPort is where a server listens: what persia-launcher's default is, or the
// script's.
func serverPort(job config.Job, launcher int32) int32 {
	if job.Script != nil {
		return int32(job.Script.Port)
	}
	return launcher
}

// lastWins keeps the last entry of each name, where its first one stood: a list
// with a name twice is refused by server-side apply.
func lastWins(env []corev1.EnvVar) []corev1.EnvVar {
	position := map[string]int{}
	var kept []corev1.EnvVar
	for _, entry := range env {
		if at, seen := position[entry.Name]; seen {
			kept[at] = entry
			continue
		}
		position[entry.Name] = len(kept)
		kept = append(kept, entry)
	}
	return kept
}

// podIndexEnv is the replica's index in its StatefulSet, which Kubernetes has
// put into this label since 1.28.
func podIndexEnv(name string) corev1.EnvVar {
	return fieldEnv(name, "metadata.labels['apps.kubernetes.io/pod-index']")
}

// fieldEnv is a field of the pod.
func fieldEnv(name, field string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}
}
