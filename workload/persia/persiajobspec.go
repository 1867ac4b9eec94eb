package persia

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/workload/persia/persiav1"
)

// sharedMemory is the volume through which the processes of a replica exchange data. The operator
// mounts none.
const sharedMemory = "shared-memory"

// persiaJobSpec returns a job as the operator's resource. A suspended one has no pods.
func persiaJobSpec(args JobArgs) persiav1.PersiaJobSpec {
	job := args.Job
	metrics := job.EnableMetrics && !job.Suspend
	claims := operatedClaims(args)
	nnWorker := persiav1.NNWorker{
		Role:         scriptedRole(args, claims, config.KindNNWorker),
		NprocPerNode: int32(job.NNWorker.NprocPerNode),
	}
	dataloader := scriptedRole(args, claims, config.KindDataloader)
	embeddingWorker := persiaRole(args, claims, config.KindEmbeddingWorker)
	parameterServer := persiaRole(args, claims, config.KindEmbeddingParameterServer)
	return persiav1.PersiaJobSpec{
		PersiaEnv:     persiav1.PersiaEnv(job.PersiaEnv),
		EnableMetrics: &metrics,
		Volumes:       operatedVolumes(job, claims),
		// A variable of the job comes after the program's, and wins.
		Env:                      append([]corev1.EnvVar{args.Broker.Env("PERSIA_NATS_URL")}, job.Env...),
		LogLevel:                 job.LogLevel,
		EmbeddingParameterServer: &parameterServer,
		EmbeddingWorker:          &embeddingWorker,
		NNWorker:                 &nnWorker,
		Dataloader:               &dataloader,
		RestartPolicy:            job.RestartPolicy,
		ImagePullPolicy:          job.ImagePullPolicy,
	}
}

// scriptedRole returns a role that runs a script of the user through a script of the program.
func scriptedRole(args JobArgs, claims []Claim, kind config.Kind) persiav1.Role {
	role := persiaRole(args, claims, kind)
	_, scripts := Scripts()
	role.VolumeMounts = append(role.VolumeMounts, scripts)
	if !slices.ContainsFunc(role.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == config.SharedMemory }) {
		role.VolumeMounts = append(role.VolumeMounts, corev1.VolumeMount{Name: sharedMemory, MountPath: config.SharedMemory})
	}
	role.Env = append(role.Env, operatedScriptEnv(args.Job, kind)...)
	return role
}

// operatedScriptEnv returns the variables that make persia-launcher run the program's script, and the
// settings of the script. The operator puts them after its own variables, so they can refer
// to them.
func operatedScriptEnv(job config.Job, kind config.Kind) []corev1.EnvVar {
	script, entry := job.PersiaEnv.DataloaderEntry, "PERSIA_DATALOADER_ENTRY"
	nnWorker := kind.Name == config.KindNNWorker.Name
	if nnWorker {
		script, entry = job.PersiaEnv.NNWorkerEntry, "PERSIA_NN_WORKER_ENTRY"
	}
	env := append([]corev1.EnvVar{
		{Name: "PERSIA_ROLE", Value: kind.Name},
		{Name: "PERSIA_SCRIPT", Value: script},
		{Name: entry, Value: EntryFile},
	}, GPUs(*kind.Of(&job))...)
	if job.EnableMetrics {
		env = append(env, corev1.EnvVar{Name: "PERSIA_REPLICA_METRICS", Value: MetricsPath(job, kind)})
	}
	if nnWorker {
		env = append(env,
			corev1.EnvVar{Name: "PERSIA_NODE_RANK", Value: "$(REPLICA_INDEX)"},
			corev1.EnvVar{Name: "PERSIA_NODES", Value: "$(REPLICA_SIZE)"},
			// torch.distributed.launch shall not wait for other pods.
			corev1.EnvVar{Name: "REPLICA_INDEX", Value: "0"},
			corev1.EnvVar{Name: "REPLICA_SIZE", Value: "1"})
	}
	return env
}

func persiaRole(args JobArgs, claims []Claim, kind config.Kind) persiav1.Role {
	role := *kind.Of(&args.Job)
	return persiav1.Role{
		Replicas:     int32(replicasOf(args.Job, role)),
		Resources:    &role.Resources,
		VolumeMounts: append(claimMounts(args, claims, role), role.VolumeMounts...),
		Env:          role.Env,
		Image:        operatedImage(args, role.Image, kind.DefaultImage),
	}
}

// operatedImage returns the reference with which nodes pull the image of a role, or "" if it equals the
// operator's own default.
func operatedImage(args JobArgs, written, unwritten string) string {
	image := cmp.Or(written, unwritten)
	if pulled := args.Images.Reference(image); pulled != image {
		return pulled
	}
	return written
}

// operatedClaims returns the claims that the roles mount, each once. A claim is read-only if all of them
// mount it so.
func operatedClaims(args JobArgs) []Claim {
	var claims []Claim
	for _, role := range args.Job.Roles() {
		for _, claim := range args.Claims(args.Job.MountsOf(*role.Role)) {
			if i := indexOf(claims, claim.Name); i >= 0 {
				claims[i].ReadOnly = claims[i].ReadOnly && claim.ReadOnly
				continue
			}
			claims = append(claims, claim)
		}
	}
	return claims
}

func indexOf(claims []Claim, name string) int {
	return slices.IndexFunc(claims, func(claim Claim) bool { return claim.Name == name })
}

// operatedVolumes returns all volumes that the roles mount: the operator has one list for the job.
func operatedVolumes(job config.Job, claims []Claim) []corev1.Volume {
	var volumes []corev1.Volume
	for i, claim := range claims {
		volumes = append(volumes, corev1.Volume{Name: claimVolume(i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name, ReadOnly: claim.ReadOnly},
		}})
	}
	scripts, _ := Scripts()
	volumes = append(volumes, scripts, corev1.Volume{Name: sharedMemory, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
	}})
	return append(volumes, job.Volumes...)
}

func claimVolume(i int) string { return "claim-" + strconv.Itoa(i) }

func claimMounts(args JobArgs, claims []Claim, role config.Role) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, claim := range args.Claims(args.Job.MountsOf(role)) {
		mounts = append(mounts, corev1.VolumeMount{
			Name: claimVolume(indexOf(claims, claim.Name)), MountPath: claim.MountPath, ReadOnly: claim.ReadOnly,
		})
	}
	return mounts
}
