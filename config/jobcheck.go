package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
)

func (c *jobChecker) job(path *field.Path, j *Job) {
	c.checkName(path.Child("name"), j)
	checkEnv(c.Problems, path.Child("env"), j.Env)
	c.checkMounts(path, j, j.Mounts, nil, nil)
	checkVolumes(c.Problems, path.Child("volumes"), j.Volumes)
	for _, r := range j.Roles() {
		at := path.Child(r.Field)
		if r.Image != "" {
			checkImage(c.Problems, at.Child("image"), r.Image, ImagePERSIACPU.Reference())
		}
		checkEnv(c.Problems, at.Child("env"), r.Env)
		c.checkMounts(at, j, r.Mounts, j.Mounts, r.VolumeMounts)
		pool, _ := c.stack.Pool(r.NodePool)
		for i, volume := range j.Volumes {
			for _, pool := range pool.Listed() {
				if volume.HostPath != nil && r.mountsVolume(volume.Name) {
					checkWritable(c.Problems, path.Child("volumes").Index(i).Child("hostPath", "path"), volume.HostPath.Path, pool)
				}
			}
		}
	}
	if gpus := GPUs(j.NNWorker.Resources); gpus > 0 && j.NNWorker.NprocPerNode > gpus {
		c.Invalid(path.Child("nnWorker", "nprocPerNode"), j.NNWorker.NprocPerNode,
			"must be at most %d, the number of GPUs that a replica requests; omit it for one process per GPU", gpus)
	}
	c.warnOfCheckpoints(j)
	c.checkRecovery(j)
	c.warnOfVariables(j)
	if j.Engine == EngineOperator {
		c.operator(j)
	}
}

// checkName checks the name of a job. The longest names of its objects are labels of pods: Kubernetes
// appends a hyphen and up to ten characters to the name of a StatefulSet in controller-revision-hash, and a
// JobSet two indexes and six characters to the name of a role.
func (c *jobChecker) checkName(path *field.Path, j *Job) {
	input.Form(c.Problems, path, "name", j.Name)
	longest, why := validation.DNS1123LabelMaxLength, ""
	for _, role := range j.Roles() {
		more := len("-0123456789")
		if j.Engine == EngineJobSet {
			more = len("-0-") + len(strconv.Itoa(role.Replicas-1)) + len("-abcde")
		}
		if most := validation.DNS1123LabelMaxLength - len("-"+role.Name) - more; most < longest {
			longest, why = most, fmt.Sprintf("so that NAME-%s, and the %d characters that a pod label adds to it, have at most %d",
				role.Name, more, validation.DNS1123LabelMaxLength)
		}
	}
	c.AtMost(longest, path, j.Name, why)
}

// computedEnv are the variables that the program computes, and with which another value would break the job, by the
// fields that determine them. A stack file can override the other variables that the program sets.
var computedEnv = map[string][]string{
	"replicas and nprocPerNode": {
		"REPLICA_INDEX", "REPLICA_SIZE", "NODE_RANK", "WORLD_SIZE", "NPROC_PER_NODE",
		"MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT",
		"PERSIA_ROLE", "PERSIA_COORDINATOR", "PERSIA_POD_UID", "PERSIA_REVISION", "PERSIA_STATE_DIR", "PERSIA_IDLE_FILE",
		"PERSIA_PROGRESS_FILE", "PERSIA_REPLICAS", "PERSIA_REPLICA_METRICS", "PERSIA_NODE_RANK", "PERSIA_NODES",
	},
	"runId":     {"PERSIA_RUN"},
	"name":      {"PERSIA_JOB", "PERSIA_TOKEN"},
	"engine":    {"PERSIA_ONCE"},
	"checks":    {"PERSIA_NODE"},
	"mounts":    {"PERSIA_CKPT_ROOT", "PERSIA_SCRATCH"},
	"recovery":  {"PERSIA_RECOVERY", "PERSIA_SERVER", "PERSIA_DENSE_DIR", "PERSIA_KEEP_EMBEDDINGS"},
	"resources": {"PERSIA_GPUS"},
	"script":    {"PERSIA_PYTHON", "PERSIA_RUNTIME", "PERSIA_PORT"},
	"persiaEnv": {"PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG", "PERSIA_NN_WORKER_ENTRY", "PERSIA_DATALOADER_ENTRY", "PERSIA_SCRIPT"},
}

// leastNumbers are the variables that the start script of replicas parses as numbers, and the least of each
// (workload/persia/settings.py). It exits at any other value, except 0 where that is the least.
var leastNumbers = map[string]int{
	"PERSIA_ATTEMPTS": 1, "PERSIA_CKPT_KEEP": 1, "PERSIA_LOST_SECONDS": 30, "PERSIA_STUCK_SECONDS": 0,
	"PERSIA_BACKOFF_SECONDS": 1, "PERSIA_BEAT_SECONDS": 1, "PERSIA_END_SECONDS": 1, "PERSIA_GPU_SECONDS": 1, "PERSIA_HANG_SECONDS": 1,
	"PERSIA_LOOK_SECONDS": 1, "PERSIA_MEMORY_SECONDS": 1, "PERSIA_NATS_SECONDS": 1, "PERSIA_REPORT_SECONDS": 1, "PERSIA_STOP_SECONDS": 1,
}

const mostNumber = 1_000_000_000

var seconds, wholeNumber = regexp.MustCompile(`^\d+(\.\d+)?$`), regexp.MustCompile(`^\d+$`)

// checkNumber checks a variable that the start script parses as a number.
func checkNumber(p *input.Problems, at *field.Path, name, value string) {
	least, known := leastNumbers[name]
	form, what := seconds, "a number of seconds without a unit,"
	if !strings.HasSuffix(name, "_SECONDS") {
		form, what = wholeNumber, "a whole number"
	}
	if !known || least == 0 && value == "0" {
		return
	} else if least == 0 {
		least, what = 1, "0 or "+what
	}
	if number, _ := strconv.ParseFloat(value, 64); !form.MatchString(value) || number < float64(least) || number > mostNumber {
		p.Invalid(at, value, "must be %s from %d to %d; remove it for the default", what, least, mostNumber)
	}
}

// checkEnv checks the variables of a job or of a role.
func checkEnv(p *input.Problems, path *field.Path, env []corev1.EnvVar) {
	checkEnvVars(p, path, env)
	for i, e := range env {
		for field, names := range computedEnv {
			if slices.Contains(names, e.Name) {
				p.Invalid(path.Index(i).Child("name"), e.Name, "is set by %s; remove the variable, and set those instead", field)
			}
		}
		if e.ValueFrom == nil && !strings.Contains(e.Value, "$(") { // otherwise Kubernetes fills it in
			checkNumber(p, path.Index(i).Child("value"), e.Name, e.Value)
		}
	}
}

// checkJobs checks the jobs, and that each role fits a node of its pool.
func (s *Stack) checkJobs(p *input.Problems) {
	c, uses := &jobChecker{p, s}, s.poolUses()
	for i := range s.Jobs {
		j := &s.Jobs[i]
		c.job(j.At(), j)
		for _, role := range j.Roles() {
			at, poolAt := j.At().Child(role.Field, "resources"), j.At().Child(role.Field, "nodePool")
			if !p.Given(poolAt) && j.NodePool != "" {
				poolAt = j.At().Child("nodePool")
			}
			s.checkAssignment(p, at, poolAt, role.Field, role.NodePool, role.Resources, s.rolePools(), takesQueued(j, role.Kind))
			if isList(role.NodePool) {
				s.checkPoolList(p, poolAt, j, role, uses)
			}
		}
	}
	input.Unique(p, field.NewPath(jobsKey), "name", input.Words(s.Jobs, func(j Job) string { return j.Name }))
	c.sameCheckpoints(s.Jobs)
}

// MountsHostPaths reports whether a job has hostPath volumes.
func (s *Stack) MountsHostPaths() bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool {
		return slices.ContainsFunc(j.Volumes, func(volume corev1.Volume) bool { return volume.HostPath != nil })
	})
}

func (s *Stack) warnOfJobs(p *input.Problems) {
	s.warnOfSecrets(p)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.Engine == EngineOperator && j.RestartPolicy == corev1.RestartPolicyAlways {
			p.Warn(j.at.Child("restartPolicy"), "pods that have finished start again and train over the existing results, "+
				"so the job never ends and has no completion; write Never")
		}
		for _, role := range j.Roles() { // GKE, "Node upgrade strategies", "Spot VMs"
			at, most, when := j.at.Child(role.Field, "terminationGracePeriodSeconds"), 3600, "GKE waits when it upgrades a node"
			pool, _ := s.Pool(role.NodePool)
			if pool.Spot {
				most, when = 15, "pods get when Google preempts a spot machine, as pool "+pool.Name+" has"
			}
			if grace := role.TerminationGracePeriodSeconds; grace > most && p.Given(at) {
				p.Warn(at, "%d seconds are more than the %d that %s; write at most %d, or choose another pool", grace, most, when, most)
			}
			room := s.nodeRoom(pool).EphemeralBytes
			for k, volume := range j.Volumes {
				scratch := volume.EmptyDir
				onDisk := scratch != nil && scratch.Medium == "" && scratch.SizeLimit != nil && role.mountsVolume(volume.Name)
				if onDisk && scratch.SizeLimit.Value() > room {
					p.Warn(j.at.Child("volumes").Index(k).Child("emptyDir", "sizeLimit"), "is more than the %dGi that a node of the pool %s "+
						"has for pods: Kubernetes places the pods all the same, and evicts them when the disk is full; "+
						"write disk.sizeGb or localSsdCount for the pool", room/capacity.GiB, role.NodePool)
				}
			}
		}
		if pool, _ := s.Pool(j.NNWorker.NodePool); severalCards.MatchString(pool.MachineType) && j.NNWorker.Replicas > 1 {
			p.Warn(j.at.Child("nnWorker", "nodePool"), "a %s has several network cards, and pods get one of them: nn-workers on "+
				"several nodes train at a fraction of the speed that you pay for; write one replica, or choose a2-ultragpu-8g",
				pool.MachineType)
		}
		if pool, _ := s.Pool(j.EmbeddingParameterServer.NodePool); pool.Spot {
			p.Warn(j.at.Child("embeddingParameterServer", "nodePool"), "pool %s has spot machines, and each time Google preempts "+
				"one, the job loses its embeddings since the last checkpoint; choose a pool without spot", pool.Name)
		}
	}
}

// severalCards matches machine types with network cards for GPUs (GKE, "Maximize GPU network bandwidth").
var severalCards = regexp.MustCompile(`^(a3-(high|mega|ultra)gpu-8g|a4x?-.*)$`)

// warnOfSecrets warns of Secrets and ConfigMaps that cannot exist before the first `pulumi up`.
func (s *Stack) warnOfSecrets(p *input.Problems) {
	warn := func(at *field.Path, kind, name string, optional *bool) {
		if name != "" && (optional == nil || !*optional) {
			p.WarnFirst(at, "the %s %s must be in the namespace persia, which the first `pulumi up` creates, and pods wait for it; "+
				"create it with kubectl while `pulumi up` waits for them", kind, name)
		}
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for k, secret := range j.ImagePullSecrets {
			warn(j.at.Child("imagePullSecrets").Index(k), "Secret", secret.Name, nil)
		}
		for _, e := range j.variables() {
			if from := e.ValueFrom; from != nil && from.SecretKeyRef != nil {
				warn(e.at, "Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Optional)
			} else if from != nil && from.ConfigMapKeyRef != nil {
				warn(e.at, "ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
			}
		}
		for k, volume := range j.Volumes {
			if volume.Secret != nil {
				warn(j.at.Child("volumes").Index(k), "Secret", volume.Secret.SecretName, volume.Secret.Optional)
			} else if volume.ConfigMap != nil {
				warn(j.at.Child("volumes").Index(k), "ConfigMap", volume.ConfigMap.Name, volume.ConfigMap.Optional)
			}
		}
	}
}
