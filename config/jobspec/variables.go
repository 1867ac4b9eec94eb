package jobspec

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/pod"
)

// envList is a list of variables with its path.
type envList struct {
	at    *field.Path
	list  []corev1.EnvVar
	kinds []Kind // the roles that have them
}

// envs returns the variables of the job and of each role.
func (j *Job) envs() []envList {
	lists := []envList{{j.at.Child("env"), j.Env, Kinds()}}
	for _, role := range j.Roles() {
		lists = append(lists, envList{j.at.Child(role.Field, "env"), role.Env, []Kind{role.Kind}})
	}
	return lists
}

// otherEnv are variables that the program sets and a stack file can override, and variables
// that PERSIA or the start script read.
var otherEnv = []string{
	"LOG_LEVEL", "RUST_BACKTRACE", "NCCL_DEBUG", "PERSIA_NATS_URL", "PERSIA_NATS_IP", metricsGateway,
	checkpointDirectory, "PERSIA_DRIVER_DIR",
}

// checkpointDirectory is the variable with the directory of a job's checkpoints.
const checkpointDirectory = "PERSIA_CKPT_DIR"

// metricsGateway is the variable with the address that a replica pushes its metrics to.
const metricsGateway = "PERSIA_METRICS_GATEWAY_ADDR"

var logLevels = []string{"trace", "debug", "info", "warn", "error"}

// replaced describes the loss when a stack file sets a variable of the image, by variable.
var replaced = map[string]string{
	"PATH":            "python3 and persia-launcher",
	"PYTHONHOME":      "Python's own modules",
	"PYTHONPATH":      "modules that the image adds",
	"LD_PRELOAD":      "libraries that the image loads first",
	"HOME":            "files of the image's user",
	"LD_LIBRARY_PATH": "the libraries of PyTorch",
}

// reference matches references to variables in values and in subPathExpr.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// warnOfVariables warns of variables that break what the image or the job needs, and of
// references to unknown ones.
func (c *checker) warnOfVariables(j *Job) {
	for _, env := range j.envs() {
		for i, e := range env.list {
			c.warnOfVariable(env, env.at.Index(i), e, j)
			if e.Value != "" {
				c.warnOfReferences(env.at.Index(i).Child("value"), e.Value, j, env.kinds)
			}
		}
	}
	for _, role := range j.Roles() {
		for i, m := range role.VolumeMounts {
			at := j.at.Child(role.Field, "volumeMounts").Index(i)
			c.warnOfReferences(at.Child("subPathExpr"), m.SubPathExpr, j, []Kind{role.Kind})
			switch {
			case strings.Contains(m.SubPathExpr, "${"):
				c.Warn(at.Child("subPathExpr"), "%s is a name as it is, because Kubernetes expands only $(NAME); write parentheses", m.SubPathExpr)
			case strings.Contains(m.SubPath, "$("):
				c.Warn(at.Child("subPath"), "%s is a name as it is, because Kubernetes expands variables only in subPathExpr; write that instead", m.SubPath)
			}
		}
	}
}

func (c *checker) warnOfVariable(env envList, at *field.Path, e corev1.EnvVar, j *Job) {
	name := at.Child("name")
	known := slices.Concat(otherEnv, slices.Sorted(maps.Keys(computedEnv)), slices.Sorted(maps.Keys(readEnv)))
	switch near := check.Typo(e.Name, known); {
	case replaced[e.Name] != "":
		c.Warn(name, "%s replaces the value of the image, by which the containers find %s; set it in the image, or write the image's directories too", e.Name, replaced[e.Name])
	case (e.Name == "PERSIA_NATS_URL" || e.Name == "PERSIA_NATS_IP"):
		c.Warn(name, "%s leads the job to another NATS than its own, and two jobs on one NATS train on each other's data; remove it", e.Name)
	case e.Name == metricsGateway && j.EnableMetrics:
		c.Warn(name, "%s sends the metrics elsewhere than to the job's own gateway, so its dashboard stays empty; remove it, or write enableMetrics: false", e.Name)
	case e.Name == "CUDA_VISIBLE_DEVICES" || e.Name == "NVIDIA_VISIBLE_DEVICES":
		gpus, devices := 0, visible(e.Value)
		for _, kind := range env.kinds {
			gpus = max(gpus, pod.GPUs(kind.Of(j).Resources))
		}
		if gpus > 0 && e.ValueFrom == nil && e.Value != "all" && devices != gpus {
			c.Warn(at.Child("value"), "%q hides GPUs of the %d that a replica requests, which are billed; remove it, because a container sees only the GPUs that it requests", e.Value, gpus)
		}
	case e.Name == "LOG_LEVEL" && e.ValueFrom == nil && !slices.Contains(logLevels, e.Value):
		c.Warn(at.Child("value"), "%q is no level of logs; remove it, and write %s in logLevel of the job", e.Value, check.Or(logLevels))
	case strings.HasPrefix(e.Name, "PERSIA_") && len(near) > 0:
		c.Warn(name, "%s is no variable that PERSIA or the program reads; did you mean %s?", e.Name, check.Or(near))
	}
}

// visible returns the number of GPUs in a list of devices, in which -1, none, and void stand for
// no GPU.
func visible(devices string) int {
	count := 0
	for device := range strings.SplitSeq(devices, ",") {
		switch strings.TrimSpace(device) {
		case "", "-1", "none", "void":
			return count // CUDA ignores what follows an invalid device
		}
		count++
	}
	return count
}

// warnOfReferences warns of variables in a text that no role of the kinds has. Kubernetes
// leaves such a reference as it is in a value, and starts no container with it in a
// subPathExpr.
func (c *checker) warnOfReferences(at *field.Path, text string, j *Job, kinds []Kind) {
	for _, match := range reference.FindAllStringSubmatch(text, -1) {
		name := match[1]
		has := func(e corev1.EnvVar) bool { return e.Name == name }
		_, computed := computedEnv[name]
		switch {
		case computed, slices.Contains(otherEnv, name), strings.HasPrefix(name, "KUBERNETES_"), strings.Contains(name, "_SERVICE_"), strings.Contains(name, "_PORT"):
		case slices.ContainsFunc(j.Env, has), strings.Contains(text, "$$("):
		case slices.ContainsFunc(kinds, func(kind Kind) bool { return slices.ContainsFunc(kind.Of(j).Env, has) }):
		default:
			c.Warn(at, "$(%s) refers to a variable that the container does not have; add it to env, or write $$(%s) for the text itself", name, name)
		}
	}
}
