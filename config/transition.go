package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/config/cluster"
	"persia/config/decode"
	"persia/config/job"
	"persia/config/manifest"
	"persia/config/nodepool"
	"persia/config/pod"
)

// What follows keeps rules compiling that have not moved to packages of their own
// yet.

// Secret is decode's.
type Secret = decode.Secret

// The types of clusters and node pools.
type (
	Cluster           = cluster.Cluster
	ExistingCluster   = cluster.Existing
	Network           = cluster.Network
	AuthorizedNetwork = cluster.AuthorizedNetwork
	Maintenance       = cluster.Maintenance
	Monitoring        = cluster.Monitoring
	Encryption        = cluster.Encryption
	BackupPlan        = cluster.BackupPlan
	MachineType       = nodepool.MachineType
	NodePool          = nodepool.Pool
	GPU               = nodepool.GPU
	GPUSharing        = nodepool.Sharing
	Autoscaling       = nodepool.Autoscaling
	Disk              = nodepool.Disk
	Upgrade           = nodepool.Upgrade
	Taint             = nodepool.Taint
	NVIDIADriver      = nodepool.NVIDIADriver
	Installer         = nodepool.Installer
)

// The installers of the NVIDIA driver.
const (
	InstallerManaged = nodepool.InstallerManaged
	InstallerUbuntu  = nodepool.InstallerUbuntu
	InstallerCOS     = nodepool.InstallerCOS
)

// What a job is made of.
type (
	Job      = job.Job
	Role     = job.Role
	NNWorker = job.NNWorker
	Mount    = job.Mount
	Script   = job.Script
)

// QuantityForm is check's.
const QuantityForm = check.QuantityForm

// OlderNames are manifest's.
func OlderNames() map[string]string { return manifest.OlderNames() }

func (v *validator) invalid(path *field.Path, value any, format string, args ...any) {
	v.Invalid(path, value, format, args...)
}

func (v *validator) required(path *field.Path, format string, args ...any) {
	v.Required(path, format, args...)
}

func (v *validator) forbidden(path *field.Path, format string, args ...any) {
	v.Forbidden(path, format, args...)
}

func (v *validator) duplicate(path *field.Path, value any, format string, args ...any) {
	v.Duplicate(path, value, format, args...)
}

func (v *validator) name(path *field.Path, value string, check func(string) []string) {
	v.Name(path, value, check)
}

func (v *validator) atMost(longest int, path *field.Path, value, why string) {
	v.AtMost(longest, path, value, why)
}

func (v *validator) decoded(key string) bool { return v.Decoded(field.NewPath(key)) }

func oneOf[T ~string](v *validator, path *field.Path, value T, allowed ...T) bool {
	return check.OneOf(v.Problems, path, value, allowed...)
}

func unique[T comparable](values []T, report func(i, first int)) { check.Unique(values, report) }

func nearest(word string, candidates []string) []string { return check.Nearest(word, candidates) }
func or(words []string) string                          { return check.Or(words) }
func and(words []string) string                         { return check.And(words) }

func requests(r corev1.ResourceRequirements) capacity.Resources { return pod.Requests(r) }

func gpusOf(r corev1.ResourceRequirements) int { return pod.GPUs(r) }

func (v *validator) env(path *field.Path, env []corev1.EnvVar) { pod.Env(v.Problems, path, env) }

func (v *validator) resources(path *field.Path, who string, r corev1.ResourceRequirements) {
	pod.Resources(v.Problems, path, who, r)
}

func (v *validator) noGPUs(path *field.Path, who string, r corev1.ResourceRequirements) {
	pod.NoGPUs(v.Problems, path, who, r)
}

func (v *validator) tolerations(path *field.Path, tolerations []corev1.Toleration) {
	pod.Tolerations(v.Problems, path, tolerations)
}

func (v *validator) directory(path *field.Path, directory string) {
	check.Directory(v.Problems, path, directory)
}

func (v *validator) host(path *field.Path, host string) { check.Host(v.Problems, path, host) }

// computedEnv are the variables that the program computes and that would break
// the job with any other value. All others that it sets can be overridden.
var computedEnv = []string{
	"REPLICA_INDEX", "REPLICA_SIZE",
	"NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NPROC_PER_NODE",
}

// roleEnv checks the variables of a job or of a role.
func (v *validator) roleEnv(path *field.Path, env []corev1.EnvVar) {
	pod.Env(v.Problems, path, env)
	for i, e := range env {
		if slices.Contains(computedEnv, e.Name) {
			v.invalid(path.Index(i).Child("name"), e.Name, "is decided by replicas and nprocPerNode; remove it and set those")
		}
	}
}

// invalidSecret refuses a value without printing it.
func (v *validator) invalidSecret(path *field.Path, format string, args ...any) {
	v.invalid(path, field.OmitValueType{}, format, args...)
}
