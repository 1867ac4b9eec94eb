package operator

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	jobconfig "persia/config/job"
	"persia/gcp"
	"persia/workload/persia"
	v1 "persia/workload/persia/operator/api/v1"
)

// sharedMemory is what the processes of a replica exchange data through. The operator
// mounts none.
const sharedMemory = "shared-memory"

// jobSpec is a training in the operator's words. One that is stopped has no pods.
func jobSpec(args JobArgs) v1.PersiaJobSpec {
	job := args.Job
	metrics := job.EnableMetrics && !job.Suspend
	claims := claimsOf(args)
	nnWorker := v1.NNWorker{
		Role:         roleSpec(args, claims, jobconfig.KindNNWorker),
		NprocPerNode: int32(job.NNWorker.NprocPerNode),
	}
	nnWorker.Env = append(driverEnv(job), nnWorker.Env...)
	dataloader := roleSpec(args, claims, jobconfig.KindDataloader)
	for _, mounts := range []*[]corev1.VolumeMount{&nnWorker.VolumeMounts, &dataloader.VolumeMounts} {
		*mounts = append(*mounts, corev1.VolumeMount{Name: sharedMemory, MountPath: jobconfig.SharedMemory})
	}
	embeddingWorker := roleSpec(args, claims, jobconfig.KindEmbeddingWorker)
	parameterServer := roleSpec(args, claims, jobconfig.KindEmbeddingParameterServer)
	return v1.PersiaJobSpec{
		PersiaEnv:     v1.PersiaEnv(job.PersiaEnv),
		EnableMetrics: &metrics,
		Volumes:       volumes(job, claims),
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

// libraryPath is where programs look for shared libraries.
const libraryPath = "LD_LIBRARY_PATH"

// driverEnv lets trainers that ask for GPUs find the driver, which GKE mounts at
// /usr/local/nvidia, unless the job sets the variable for all roles. The variable is
// whole, because Kubernetes cannot add to what an image sets: the first two folders are
// those of upstream's Dockerfile.
func driverEnv(job jobconfig.Job) []corev1.EnvVar {
	gpus := job.NNWorker.Resources.Limits[gcp.GPUResource]
	if gpus.IsZero() || slices.ContainsFunc(job.Env, func(v corev1.EnvVar) bool { return v.Name == libraryPath }) {
		return nil
	}
	return []corev1.EnvVar{{
		Name:  libraryPath,
		Value: "/opt/conda/lib/python3.8/site-packages/torch/lib:/opt/conda/lib:/usr/local/nvidia/lib64",
	}}
}

func roleSpec(args JobArgs, claims []persia.Claim, kind jobconfig.Kind) v1.Role {
	role := *kind.Of(&args.Job)
	replicas := role.Replicas
	if args.Job.Suspend {
		replicas = 0
	}
	return v1.Role{
		Replicas:     int32(replicas),
		Resources:    &role.Resources,
		VolumeMounts: append(claimMounts(args, claims, role), role.VolumeMounts...),
		Env:          role.Env,
		Image:        image(args, role.Image, kind.DefaultImage),
	}
}

// image is what nodes pull the image of a role by. It is empty where the operator's own
// default is the same.
func image(args JobArgs, written, unwritten string) string {
	image := cmp.Or(written, unwritten)
	if pulled := args.Images.Reference(image); pulled != image {
		return pulled
	}
	return written
}

// claimsOf are the claims that some role mounts, each once. One that is written to
// anywhere is written to.
func claimsOf(args JobArgs) []persia.Claim {
	var claims []persia.Claim
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

func indexOf(claims []persia.Claim, name string) int {
	return slices.IndexFunc(claims, func(claim persia.Claim) bool { return claim.Name == name })
}

// volumes are all that some role mounts: the operator has one list for the job.
func volumes(job jobconfig.Job, claims []persia.Claim) []corev1.Volume {
	var volumes []corev1.Volume
	for i, claim := range claims {
		volumes = append(volumes, corev1.Volume{Name: claimVolume(i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name, ReadOnly: claim.ReadOnly},
		}})
	}
	volumes = append(volumes, corev1.Volume{Name: sharedMemory, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
	}})
	return append(volumes, job.Volumes...)
}

func claimVolume(i int) string { return "claim-" + strconv.Itoa(i) }

func claimMounts(args JobArgs, claims []persia.Claim, role jobconfig.Role) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, claim := range args.Claims(args.Job.MountsOf(role)) {
		mounts = append(mounts, corev1.VolumeMount{
			Name: claimVolume(indexOf(claims, claim.Name)), MountPath: claim.MountPath, ReadOnly: claim.ReadOnly,
		})
	}
	return mounts
}
