package persia

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

// launchScript is what every replica starts with.
//
//go:embed launch.sh
var launchScript string

// rolesScript starts the roles of releases of PERSIA without persia-launcher.
//
//go:embed roles.sh
var rolesScript string

const (
	launchDirectory = "/opt/persia"
	launchFile      = "launch.sh"
	rolesFile       = "roles.sh"
	// podState remembers for as long as the pod lives.
	podState = "/var/lib/persia"
)

// scripts are those that containers start with, by the names of their files.
func scripts() map[string]string {
	return map[string]string{launchFile: launchScript, rolesFile: rolesScript}
}

// launchCommand runs a command through the script.
func launchCommand() []string {
	return []string{"/bin/bash", path.Join(launchDirectory, launchFile)}
}

// startCommand is the command that the script runs.
func startCommand(job config.Job, role role) []string {
	if job.Script != nil {
		return []string{"/bin/bash", path.Join(launchDirectory, rolesFile), role.older}
	}
	return append([]string{"persia-launcher"}, role.args...)
}

// launchName is another one for other scripts, so that a changed script reaches
// pods that start anew and no others.
func launchName() string {
	all := scripts()
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sum.Write([]byte(all[name]))
	}
	return "persia-launch-" + hex.EncodeToString(sum.Sum(nil))[:8]
}

func launchConfigMap() *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: kube.Meta(NamespaceName, launchName(), kube.Labels("launch", launchName())),
		Immutable:  &immutable,
		Data:       scripts(),
	}
}

// launchVolumes are the scripts, and where a replica that has finished is remembered
// if its role has no volume for that.
func launchVolumes(args JobArgs, role role) ([]corev1.Volume, []corev1.VolumeMount) {
	const scripts, state = "launch", "state"
	volumes := []corev1.Volume{{Name: scripts, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: launchName()}},
	}}}
	mounts := []corev1.VolumeMount{{Name: scripts, MountPath: launchDirectory, ReadOnly: true}}
	if stateDirectory(args, role) == podState {
		volumes = append(volumes, corev1.Volume{Name: state, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: state, MountPath: podState})
	}
	return volumes, mounts
}

// stateDirectory is on the first volume that a role can write to and that a pod finds
// again wherever it stands.
func stateDirectory(args JobArgs, role role) string {
	for _, claim := range args.Claims(args.Job.MountsOf(role.config)) {
		if !claim.ReadOnly {
			return path.Join(claim.MountPath, ".persia")
		}
	}
	for _, mount := range role.config.VolumeMounts {
		if !mount.ReadOnly && slices.ContainsFunc(args.Job.Volumes, func(v corev1.Volume) bool {
			return v.Name == mount.Name && outlivesPod(v.VolumeSource)
		}) {
			return path.Join(mount.MountPath, ".persia")
		}
	}
	return podState
}

// outlivesPod reports whether a volume is a claim or a share, of which another pod has
// the same. Of directories of nodes nobody knows.
func outlivesPod(source corev1.VolumeSource) bool {
	claim := source.PersistentVolumeClaim
	return claim != nil && !claim.ReadOnly || source.NFS != nil && !source.NFS.ReadOnly
}

// launchEnv says where a replica remembers, and where it reports, that it has
// finished.
func launchEnv(args JobArgs, role role) []corev1.EnvVar {
	env := []corev1.EnvVar{{
		Name:  "PERSIA_FINISHED_FILE",
		Value: path.Join(stateDirectory(args, role), args.Job.Name, args.Job.RunID, role.name+"-$(REPLICA_INDEX)"),
	}}
	if *args.Job.EnableMetrics {
		env = append(env, corev1.EnvVar{
			Name: "PERSIA_FINISHED_METRIC",
			// The Pushgateway takes the labels of a metric from the path.
			Value: path.Join("/metrics/job", args.Job.Name, "run", args.Job.RunID, "role", role.name, "replica", "$(REPLICA_INDEX)", "of", "$(REPLICA_SIZE)"),
		})
	}
	return env
}

// scriptEnv says to the script of older releases where their programs are.
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
