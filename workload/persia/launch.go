package persia

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"path"

	corev1 "k8s.io/api/core/v1"

	"persia/kube"
)

// launchScript is what every replica starts with.
//
//go:embed launch.sh
var launchScript string

const (
	launchDirectory = "/opt/persia"
	launchFile      = "launch.sh"
	// podState remembers for as long as the pod lives.
	podState = "/var/lib/persia"
)

// launchCommand runs a command through the script.
func launchCommand() []string {
	return []string{"/bin/bash", path.Join(launchDirectory, launchFile)}
}

// launchName is another one for another script, so that a changed script reaches
// pods that start anew and no others.
func launchName() string {
	sum := sha256.Sum256([]byte(launchScript))
	return "persia-launch-" + hex.EncodeToString(sum[:])[:8]
}

func launchConfigMap() *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: kube.Meta(NamespaceName, launchName(), kube.Labels("launch", launchName())),
		Immutable:  &immutable,
		Data:       map[string]string{launchFile: launchScript},
	}
}

// launchVolumes are the script, and where a replica that has finished is remembered
// if the job has no volume to write to.
func launchVolumes(args JobArgs) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{{Name: "launch", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: launchName()}},
	}}}
	mounts := []corev1.VolumeMount{{Name: "launch", MountPath: launchDirectory, ReadOnly: true}}
	if stateDirectory(args) == podState {
		volumes = append(volumes, corev1.Volume{Name: "state", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: "state", MountPath: podState})
	}
	return volumes, mounts
}

// stateDirectory is on the first volume that the job can write to, which a pod
// finds again wherever it stands.
func stateDirectory(args JobArgs) string {
	for _, claim := range args.Mounted(args.Job.Mounts).Claims {
		if !claim.ReadOnly {
			return path.Join(claim.MountPath, ".persia")
		}
	}
	return podState
}

// launchEnv says where it is remembered that a replica has finished.
func launchEnv(args JobArgs, role role) corev1.EnvVar {
	return corev1.EnvVar{
		Name:  "PERSIA_FINISHED_FILE",
		Value: path.Join(stateDirectory(args), args.Job.Name, args.Job.Run, role.name+"-$(REPLICA_INDEX)"),
	}
}
