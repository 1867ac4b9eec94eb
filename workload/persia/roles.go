package persia

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

// nnWorker is the name of the role that trains the dense part, and whose first replica coordinates the others.
var nnWorker = config.KindNNWorker.Name

// role is one of the four roles of a job.
type role struct {
	config.Kind
	// args are the arguments of persia-launcher. $(NAME) comes from the environment.
	args []string
	// port is where the role listens, or 0.
	port int32
	// env is the role's own environment.
	env    []corev1.EnvVar
	config config.Role
}

// roles returns the four roles of a job in the order of their data flow: nn-workers, first in a stack file, come
// last.
func roles(job config.Job) []role {
	var roles []role
	kinds := config.Kinds()
	for _, kind := range slices.Concat(kinds[1:], kinds[:1]) {
		role := role{Kind: kind, config: *kind.Of(&job), port: int32(kind.Port)}
		switch {
		case kind.Server:
			role.args = []string{
				"--embedding-config", "$(PERSIA_EMBEDDING_CONFIG)", "--global-config", "$(PERSIA_GLOBAL_CONFIG)",
				"--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)",
			}
			if job.Script != nil {
				role.port = int32(job.Script.Port)
			}
		case kind.Name == nnWorker:
			role.args = []string{"$(PERSIA_NN_WORKER_ENTRY)",
				"--nproc-per-node", "$(NPROC_PER_NODE)", "--nnodes", "$(REPLICA_SIZE)", "--node-rank", "$(REPLICA_INDEX)"}
			role.env = nnWorkerEnv(job)
		default:
			role.args = []string{"$(PERSIA_DATALOADER_ENTRY)", "--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)"}
			role.env = []corev1.EnvVar{{Name: "PERSIA_DATALOADER_ENTRY", Value: job.PersiaEnv.DataloaderEntry}}
		}
		role.args = append([]string{kind.Command}, role.args...)
		roles = append(roles, role)
	}
	return roles
}

// nnWorkerEnv returns the variables through which the processes of torch.distributed find each other.
func nnWorkerEnv(job config.Job) []corev1.EnvVar {
	worker, port := job.NNWorker, strconv.Itoa(config.MasterPort)
	master := masterHost(job)
	return []corev1.EnvVar{
		{Name: "PERSIA_NN_WORKER_ENTRY", Value: job.PersiaEnv.NNWorkerEntry},
		{Name: "NPROC_PER_NODE", Value: strconv.Itoa(worker.NprocPerNode)},
		labelEnv("NODE_RANK", indexLabel(job)),
		{Name: "WORLD_SIZE", Value: strconv.Itoa(worker.NprocPerNode * worker.Replicas)},
		{Name: "MASTER_ADDR", Value: master},
		{Name: "MASTER_PORT", Value: port},
		// persia-launcher does not pass these two on to torch.distributed, which then takes its defaults from here
		// since PyTorch 1.9.
		{Name: "PET_MASTER_ADDR", Value: master},
		{Name: "PET_MASTER_PORT", Value: port},
		{Name: "NCCL_DEBUG", Value: "INFO"},
	}
}

// environment returns the environment of a replica: the variables of the program, of the job, and of the role, where
// the later ones win. The variables of the start script come last, and the program refuses a stack file that sets one
// of them.
func environment(args JobArgs, role role) []corev1.EnvVar {
	job := args.Job
	env := []corev1.EnvVar{
		{Name: "PERSIA_GLOBAL_CONFIG", Value: job.PersiaEnv.GlobalConfig},
		{Name: "PERSIA_EMBEDDING_CONFIG", Value: job.PersiaEnv.EmbeddingConfig},
		{Name: "LOG_LEVEL", Value: job.LogLevel},
		{Name: "RUST_BACKTRACE", Value: "full"},
		args.Broker.Env(config.EnvNATS),
		// The name of older releases.
		args.Broker.Env(config.EnvOlderNATS),
		labelEnv("REPLICA_INDEX", indexLabel(job)),
		{Name: "REPLICA_SIZE", Value: strconv.Itoa(role.config.Replicas)},
	}
	if job.EnableMetrics {
		env = append(env, corev1.EnvVar{Name: "PERSIA_METRICS_GATEWAY_ADDR", Value: metricsGatewayAddress(job.Name)})
	}
	return lastWins(slices.Concat(env, role.env, scriptEnv(job), job.Env, role.config.Env, launchEnv(args, role)))
}

// lastWins keeps the last entry of each name, where its first one stood: a list with a name twice is refused by
// server-side apply.
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

// labelEnv returns a variable with a label of the pod.
func labelEnv(name, label string) corev1.EnvVar {
	return kube.FieldEnv(name, "metadata.labels['"+label+"']")
}
