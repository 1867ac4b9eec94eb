package persia

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/kube"
	"persia/workload/queue"
)

// scriptFiles are the files that every replica starts with: launch.py, the modules that it imports, and the script
// that starts the roles of releases without persia-launcher.
//
//go:embed launch.py entry.py settings.py coordinator.py machine.py events.py roster.py record.py ledger.py checkpoints.py server.py link.py checks.py gateway.py processes.py roles.sh
var scriptFiles embed.FS

const (
	launchDirectory = config.LaunchDirectory
	launchFile      = "launch.py"
	// EntryFile runs the script of an nn-worker or a dataloader whose pod PERSIA's operator makes.
	EntryFile = launchDirectory + "/entry.py"
	rolesFile = "roles.sh"
	// podState keeps the state of a replica for as long as its pod lives.
	podState = config.StateDirectory
	// coordinatorPort is the port of the coordinator, on the first nn-worker. PERSIA's own servers listen on the next
	// two.
	coordinatorPort = 8886
)

// scripts returns the scripts that containers start with, by file name.
func scripts() map[string]string {
	entries, err := scriptFiles.ReadDir(".")
	if err != nil {
		// They are part of the program.
		panic(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := scriptFiles.ReadFile(entry.Name())
		if err != nil {
			panic(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

// launchCommand runs a command through the script.
func launchCommand(job config.Job) []string {
	python := "python3"
	if job.Script != nil {
		python = job.Script.Python
	}
	return []string{python, path.Join(launchDirectory, launchFile)}
}

// startCommand returns the command that the start script runs.
func startCommand(job config.Job, role role) []string {
	if job.Script != nil {
		return []string{"/bin/bash", path.Join(launchDirectory, rolesFile), role.Older}
	}
	return append([]string{"persia-launcher"}, role.args...)
}

// launchName changes with the scripts, so that a changed script reaches only pods that start later. The ConfigMap has
// this name in Pulumi, too: until the end of an update, old and new scripts are both in the cluster and in the state,
// whichever of them the next update asks for.
func launchName() string {
	all, texts := scripts(), strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts.WriteString(all[name])
	}
	return "persia-scripts-" + kube.Hash(texts.String())
}

func launchConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: kube.Meta(NamespaceName, launchName(), kube.Labels("launch", launchName())),
		Immutable:  new(true),
		Data:       scripts(),
	}
}

// Scripts returns the volume with the start scripts, and its mount.
func Scripts() (corev1.Volume, corev1.VolumeMount) {
	const name = "launch"
	return kube.ConfigMapVolume(name, launchName()),
		corev1.VolumeMount{Name: name, MountPath: launchDirectory, ReadOnly: true}
}

// launchVolumes returns the volumes with the scripts and with the state of a replica, and their mounts.
func launchVolumes() ([]corev1.Volume, []corev1.VolumeMount) {
	scripts, mount := Scripts()
	state := corev1.Volume{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	return []corev1.Volume{scripts, state},
		[]corev1.VolumeMount{mount, {Name: state.Name, MountPath: podState}}
}

// coordinatorAddress returns the address of nn-worker 0, which does not depend on its node.
func coordinatorAddress(args JobArgs) string {
	return fmt.Sprintf("%s:%d", masterHost(args.Job), coordinatorPort)
}

// masterHost returns the host name of the first nn-worker.
func masterHost(job config.Job) string {
	service, set := kube.LabelName(job.Name, nnWorker), kube.LabelName(job.Name, nnWorker)
	if job.Engine == config.EngineJobSet {
		service, set = job.Name, queue.JobOf(job.Name, nnWorker)
	}
	return set + "-0." + service + "." + NamespaceName + ".svc"
}

// Labels of a pod that Kubernetes sets: its index, since 1.28, and the revision of its template, which changes with
// the job.
func indexLabel(job config.Job) string {
	if job.Engine == config.EngineJobSet {
		return batchv1.JobCompletionIndexAnnotation
	}
	return appsv1.PodIndexLabel
}

func revisionLabel(job config.Job) string {
	if job.Engine == config.EngineJobSet {
		return batchv1.ControllerUidLabel
	}
	return appsv1.ControllerRevisionHashLabelKey
}

// launchEnv returns the variables that configure the script.
func launchEnv(args JobArgs, role role) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "PERSIA_ROLE", Value: role.Name},
		{Name: "PERSIA_COORDINATOR", Value: coordinatorAddress(args)},
		{Name: "PERSIA_RUN", Value: args.Job.RunID},
		tokenEnv(args.Job),
		kube.FieldEnv("PERSIA_POD_UID", "metadata.uid"),
		labelEnv("PERSIA_REVISION", revisionLabel(args.Job)),
		{Name: config.EnvState, Value: role.config.StateDirectory()},
		{Name: "PERSIA_IDLE_FILE", Value: path.Join(podState, "idle")},
		{Name: "PERSIA_SCRATCH", Value: strings.Join(scratch(args, role), ":")},
	}
	if args.Job.Engine == config.EngineJobSet {
		env = append(env, corev1.EnvVar{Name: "PERSIA_ONCE", Value: "1"})
	}
	if role.Name == nnWorker {
		env = append(env,
			corev1.EnvVar{Name: "PERSIA_JOB", Value: args.Stack + "/" + args.Job.Name},
			corev1.EnvVar{Name: "PERSIA_REPLICAS", Value: AllReplicas(args.Job)},
			corev1.EnvVar{Name: "PERSIA_PROGRESS_FILE", Value: path.Join(podState, "progress")})
	}
	env = append(env, GPUs(role.config)...)
	if root := role.config.CheckpointRoot(); root != "" {
		env = append(env, corev1.EnvVar{Name: config.EnvCheckpoints, Value: root})
	}
	if args.Job.EnableMetrics {
		env = append(env, corev1.EnvVar{
			Name:  "PERSIA_REPLICA_METRICS",
			Value: MetricsPath(args.Job, role.Kind),
		})
	}
	return env
}

// scratch returns the directories for temporary files that end with a pod: all but mounts of other volumes.
func scratch(args JobArgs, role role) []string {
	volumes, mounts := podVolumes(args, role)
	return slices.DeleteFunc([]string{config.SharedMemory, "/tmp"}, func(directory string) bool {
		return slices.ContainsFunc(mounts, func(mount corev1.VolumeMount) bool {
			return path.Clean(mount.MountPath) == directory && !slices.ContainsFunc(volumes, func(volume corev1.Volume) bool {
				return volume.Name == mount.Name && volume.EmptyDir != nil
			})
		})
	})
}

// GPUs returns the variable with the number of GPUs that a replica requests, if any.
func GPUs(role config.Role) []corev1.EnvVar {
	gpus := role.Resources.Limits[gcp.GPUResource]
	if gpus.IsZero() {
		return nil
	}
	return []corev1.EnvVar{{Name: "PERSIA_GPUS", Value: gpus.String()}}
}

// MetricsPath returns the path to which a replica pushes the metrics of its script. The Pushgateway takes the labels
// of a metric from it.
func MetricsPath(job config.Job, kind config.Kind) string {
	return path.Join("/metrics/job", job.Name, "run", job.RunID, "role", kind.Name, "replica", "$(REPLICA_INDEX)", "of", "$(REPLICA_SIZE)")
}

// AllReplicas returns the number of replicas of each role, for a script.
func AllReplicas(job config.Job) string {
	var counts []string
	for _, role := range roles(job) {
		counts = append(counts, fmt.Sprintf("%s=%d", role.Name, role.config.Replicas))
	}
	return strings.Join(counts, ",")
}

// scriptEnv returns the variables with the paths of programs for the script of older releases.
func scriptEnv(job config.Job) []corev1.EnvVar {
	if job.Script == nil {
		return nil
	}
	return []corev1.EnvVar{
		{Name: "PERSIA_PYTHON", Value: job.Script.Python},
		{Name: "PERSIA_RUNTIME", Value: job.Script.Runtime},
		{Name: "PERSIA_PORT", Value: strconv.Itoa(job.Script.Port)},
	}
}
