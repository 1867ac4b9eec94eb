package persia

import (
	"cmp"
	_ "embed"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
	"persia/workload/persia/persiav1"
)

// NewOperatedJob registers the PersiaJob of a training, whose pods PERSIA's own operator makes: a job has only the
// features that this program supports. The operator, which alone can let a job go, is among args.Needs.
//
// The operator ignores changes of a job. So every change replaces the guard, and with it the PersiaJob: Pulumi
// deletes the old job first, and creates the new one when the last pod is gone.
func NewOperatedJob(r *kube.Registrar, name string, args JobArgs) {
	planned := persiaJob(args)
	changes := text(planned.Spec)
	objects := r.Component("persia:operator:Job", name)
	names := namesOf(args.Job)
	needs := kube.Needs(objects.Add(name, jobObjects(args, names)["NetworkPolicy"], args.Needs))
	budget := kube.Manifest(guardManifest, map[string]any{"Job": args.Job.Name, "Pods": pods(planned.Spec)})[0]
	guard := objects.Add(name, budget, needs, kube.WorkloadTimeouts(),
		pulumi.DeleteBeforeReplace(true), pulumi.ReplacementTrigger(pulumi.String(changes)),
		// As it is while its job runs, it would never be ready.
		pulumi.ReplaceOnChanges([]string{"*"}))
	registered := objects.Add(name, planned, append(kube.Needs(guard), needs...), kube.WorkloadTimeouts(),
		pulumi.ReplaceWith([]pulumi.Resource{guard}), pulumi.DeleteBeforeReplace(true), pulumi.ReplaceOnChanges([]string{"spec"}))
	if args.Job.Suspend || args.Job.RestartPolicy == corev1.RestartPolicyAlways {
		return // it never ends
	}
	after, completion := append(kube.Needs(registered), needs...), operatedCompletion(args, names, changes)
	for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"} {
		after = append(after, objects.Add(name+"-completion", completion[kind], needs))
	}
	addCompletion(objects, name, completion["Job"], after)
}

// persiaJob returns a job as the operator's resource. A suspended one has no pods.
func persiaJob(args JobArgs) *persiav1.PersiaJob {
	job := args.Job
	meta := kube.Meta(NamespaceName, job.Name, kube.Labels("persia-job", job.Name))
	meta.Annotations = job.Contract().Annotation()
	var mounts []config.Mount
	for _, role := range job.Roles() {
		mounts = append(mounts, job.MountsOf(*role.Role)...)
	}
	claims := claimVolumes(args.Claims, mounts)
	scripts, _ := scriptsVolume()
	spec := persiav1.PersiaJobSpec{
		PersiaEnv:     persiav1.PersiaEnv(job.PersiaEnv),
		EnableMetrics: new(job.EnableMetrics && !job.Suspend),
		// The operator has one list for the job, and mounts no shared memory.
		Volumes: slices.Concat(claims, []corev1.Volume{scripts, sharedMemory}, job.Volumes),
		// A variable of the job comes after the program's, and wins.
		Env:                      append([]corev1.EnvVar{args.Broker.Env(config.EnvNATS)}, job.Env...),
		LogLevel:                 job.LogLevel,
		EmbeddingParameterServer: new(persiaRole(args, claims, config.KindEmbeddingParameterServer)),
		EmbeddingWorker:          new(persiaRole(args, claims, config.KindEmbeddingWorker)),
		NNWorker: &persiav1.NNWorker{
			Role:         scriptedRole(args, claims, config.KindNNWorker),
			NprocPerNode: int32(job.NNWorker.NprocPerNode),
		},
		Dataloader:      new(scriptedRole(args, claims, config.KindDataloader)),
		RestartPolicy:   job.RestartPolicy,
		ImagePullPolicy: job.ImagePullPolicy,
	}
	kind := metav1.TypeMeta{APIVersion: persiav1.Group + "/" + persiav1.Version, Kind: persiav1.Kind}
	return &persiav1.PersiaJob{TypeMeta: kind, ObjectMeta: meta, Spec: spec}
}

// scriptedRole returns a role that runs a script of the user through a script of the program.
func scriptedRole(args JobArgs, claims []corev1.Volume, kind config.Kind) persiav1.Role {
	job, role := args.Job, persiaRole(args, claims, kind)
	_, scripts := scriptsVolume()
	role.VolumeMounts = withSharedMemory(append(role.VolumeMounts, scripts))
	script, entry := job.PersiaEnv.DataloaderEntry, "PERSIA_DATALOADER_ENTRY"
	if kind.Name == nnWorker {
		script, entry = job.PersiaEnv.NNWorkerEntry, "PERSIA_NN_WORKER_ENTRY"
	}
	// These make persia-launcher run the program's script, and are its settings. The operator puts them after its own
	// variables, so they can refer to them.
	role.Env = slices.Concat(role.Env, []corev1.EnvVar{
		{Name: "PERSIA_ROLE", Value: kind.Name},
		{Name: "PERSIA_SCRIPT", Value: script},
		{Name: entry, Value: entryFile},
	}, gpuEnv(*kind.Of(&job)), metricsEnv(job, kind))
	if kind.Name == nnWorker {
		role.Env = append(role.Env,
			corev1.EnvVar{Name: "PERSIA_NODE_RANK", Value: "$(REPLICA_INDEX)"},
			corev1.EnvVar{Name: "PERSIA_NODES", Value: "$(REPLICA_SIZE)"},
			// torch.distributed.launch shall not wait for other pods.
			corev1.EnvVar{Name: "REPLICA_INDEX", Value: "0"},
			corev1.EnvVar{Name: "REPLICA_SIZE", Value: "1"})
	}
	return role
}

func persiaRole(args JobArgs, claims []corev1.Volume, kind config.Kind) persiav1.Role {
	role := *kind.Of(&args.Job)
	return persiav1.Role{
		Replicas:     running(args.Job, role.Replicas),
		Resources:    &role.Resources,
		VolumeMounts: append(claimMounts(args.Claims, args.Job.MountsOf(role), claims), role.VolumeMounts...),
		Env:          role.Env,
		Image:        operatedImage(args, role.Image, kind.DefaultImage),
	}
}

// operatedImage returns the reference with which nodes pull the image of a role, or "" if it equals the operator's
// own default.
func operatedImage(args JobArgs, written, unwritten string) string {
	image := cmp.Or(written, unwritten)
	if pulled := args.Images.Reference(image); pulled != image {
		return pulled
	}
	return written
}

// guardManifest is a disruption budget.
//
//go:embed guard.yaml
var guardManifest string

// pods returns how many pods the operator creates for a job: one for each replica, and one for the metrics gateway.
func pods(spec persiav1.PersiaJobSpec) int32 {
	count := spec.NNWorker.Replicas + spec.Dataloader.Replicas + spec.EmbeddingWorker.Replicas + spec.EmbeddingParameterServer.Replicas
	if *spec.EnableMetrics {
		count++
	}
	return count
}
