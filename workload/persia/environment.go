package persia

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/config/input"
	"persia/gcp"
	"persia/kube"
)

// environment returns the environment of a replica: the variables of the program, of the job, and of the role, where
// the later ones win. The variables of the start script come last, and the program refuses a stack file that sets one
// of them. Scratch has the directories for temporary files.
func environment(args JobArgs, names names, role role, scratch []string) []corev1.EnvVar {
	job := args.Job
	env := []corev1.EnvVar{
		{Name: "PERSIA_GLOBAL_CONFIG", Value: job.PersiaEnv.GlobalConfig},
		{Name: "PERSIA_EMBEDDING_CONFIG", Value: job.PersiaEnv.EmbeddingConfig},
		{Name: "LOG_LEVEL", Value: job.LogLevel},
		{Name: "RUST_BACKTRACE", Value: "full"},
		args.Broker.Env(config.EnvNATS),
		// The name of older releases.
		args.Broker.Env(config.EnvOlderNATS),
		labelEnv("REPLICA_INDEX", names.index),
		{Name: "REPLICA_SIZE", Value: strconv.Itoa(role.Replicas)},
	}
	if job.EnableMetrics {
		gateway := fmt.Sprintf("%s:%d", names.gatewayService, metricsGatewayPort)
		env = append(env, corev1.EnvVar{Name: "PERSIA_METRICS_GATEWAY_ADDR", Value: gateway})
	}
	switch role.Name {
	case nnWorker:
		env = append(env, nnWorkerEnv(job, names)...)
	case config.KindDataloader.Name:
		env = append(env, corev1.EnvVar{Name: "PERSIA_DATALOADER_ENTRY", Value: job.PersiaEnv.DataloaderEntry})
	}
	if script := job.Script; script != nil { // the paths of programs of older releases
		env = append(env,
			corev1.EnvVar{Name: "PERSIA_PYTHON", Value: script.Python},
			corev1.EnvVar{Name: "PERSIA_RUNTIME", Value: script.Runtime},
			corev1.EnvVar{Name: "PERSIA_PORT", Value: strconv.Itoa(script.Port)})
	}
	return lastWins(slices.Concat(env, job.Env, role.Env, launchEnv(args, names, role, scratch)))
}

// nnWorkerEnv returns the variables through which the processes of torch.distributed find each other.
func nnWorkerEnv(job config.Job, names names) []corev1.EnvVar {
	worker, port := job.NNWorker, strconv.Itoa(config.MasterPort)
	return []corev1.EnvVar{
		{Name: "PERSIA_NN_WORKER_ENTRY", Value: job.PersiaEnv.NNWorkerEntry},
		{Name: "NPROC_PER_NODE", Value: strconv.Itoa(worker.NprocPerNode)},
		labelEnv("NODE_RANK", names.index),
		{Name: "WORLD_SIZE", Value: strconv.Itoa(worker.NprocPerNode * worker.Replicas)},
		{Name: "MASTER_ADDR", Value: names.master},
		{Name: "MASTER_PORT", Value: port},
		// persia-launcher does not pass these two on to torch.distributed, which then takes its defaults from here
		// since PyTorch 1.9.
		{Name: "PET_MASTER_ADDR", Value: names.master},
		{Name: "PET_MASTER_PORT", Value: port},
		{Name: "NCCL_DEBUG", Value: "INFO"},
	}
}

// launchEnv returns the variables that configure the start script.
func launchEnv(args JobArgs, names names, role role, scratch []string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "PERSIA_ROLE", Value: role.Name},
		{Name: "PERSIA_COORDINATOR", Value: names.coordinator},
		{Name: "PERSIA_RUN", Value: args.Job.RunID},
		tokenEnv(names.token),
		kube.FieldEnv("PERSIA_POD_UID", "metadata.uid"),
		labelEnv("PERSIA_REVISION", names.revision),
		{Name: config.EnvState, Value: role.StateDirectory()},
		{Name: "PERSIA_IDLE_FILE", Value: path.Join(podState, "idle")},
		{Name: "PERSIA_SCRATCH", Value: strings.Join(scratch, ":")},
	}
	if args.Job.Engine == config.EngineJobSet {
		env = append(env, corev1.EnvVar{Name: "PERSIA_ONCE", Value: "1"})
	}
	if role.Name == nnWorker {
		env = append(env,
			corev1.EnvVar{Name: "PERSIA_JOB", Value: args.Stack + "/" + names.job},
			corev1.EnvVar{Name: "PERSIA_REPLICAS", Value: allReplicas(args.Job)},
			corev1.EnvVar{Name: "PERSIA_PROGRESS_FILE", Value: path.Join(podState, "progress")})
	}
	if args.Job.Partial() {
		env = append(env, corev1.EnvVar{Name: "PERSIA_RECOVERY", Value: "partial"})
		if role.Server {
			env = append(env, corev1.EnvVar{Name: "PERSIA_SERVER", Value: fmt.Sprintf("127.0.0.1:%d", role.Port)})
		}
	}
	if args.Job.Checks {
		env = append(env, kube.FieldEnv("PERSIA_NODE", "spec.nodeName"))
	}
	env = append(env, gpuEnv(*role.Role)...)
	if root := role.CheckpointRoot(); root != "" {
		env = append(env, corev1.EnvVar{Name: config.EnvCheckpoints, Value: root})
	}
	return append(env, metricsEnv(args.Job, role.Kind)...)
}

// tokenEnv returns the variable with the token of a Secret.
func tokenEnv(secret string) corev1.EnvVar {
	return corev1.EnvVar{Name: "PERSIA_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "token",
	}}}
}

// labelEnv returns a variable with a label of the pod.
func labelEnv(name, label string) corev1.EnvVar {
	return kube.FieldEnv(name, "metadata.labels['"+label+"']")
}

// gpuEnv returns the variable with the number of GPUs that a replica requests, if any.
func gpuEnv(role config.Role) []corev1.EnvVar {
	gpus := role.Resources.Limits[gcp.GPUResource]
	if gpus.IsZero() {
		return nil
	}
	return []corev1.EnvVar{{Name: "PERSIA_GPUS", Value: gpus.String()}}
}

// metricsEnv returns the variable with the path to which a replica pushes the metrics of its script, if any. The
// Pushgateway takes the labels of a metric from it.
func metricsEnv(job config.Job, kind config.Kind) []corev1.EnvVar {
	if !job.EnableMetrics {
		return nil
	}
	to := path.Join("/metrics/job", job.Name, "run", job.RunID, "role", kind.Name, "replica", "$(REPLICA_INDEX)", "of", "$(REPLICA_SIZE)")
	return []corev1.EnvVar{{Name: "PERSIA_REPLICA_METRICS", Value: to}}
}

// allReplicas returns the number of replicas of each role, for a script.
func allReplicas(job config.Job) string {
	return strings.Join(input.Words(inDataFlow(job), func(r config.NamedRole) string { return fmt.Sprintf("%s=%d", r.Name, r.Replicas) }), ",")
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
