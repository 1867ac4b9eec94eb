package persia

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
)

// podTemplate returns the template of the pods of a role. It has the annotations that the drivers of the volumes need,
// and one that keeps the autoscaler from removing the node: a moved training starts again at its last checkpoint.
func podTemplate(args JobArgs, names names, role role) corev1.PodTemplateSpec {
	annotations := map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
	maps.Copy(annotations, args.PodAnnotations[role.Name])
	volumes, mounts := podVolumes(args, role)
	pod := corev1.PodSpec{
		ServiceAccountName:           args.ServiceAccount,
		AutomountServiceAccountToken: new(false),
		ImagePullSecrets:             args.Job.ImagePullSecrets,
		PriorityClassName:            role.Priority.Name,
		// The replicas are on as many nodes as there is room for, so that a node that is lost takes few of them with it.
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew:           1,
			TopologyKey:       corev1.LabelHostname,
			WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:     &metav1.LabelSelector{MatchLabels: role.selector},
		}},
		// A stack has dozens of Services, and training scripts read none of the variables that Kubernetes would set
		// for them.
		EnableServiceLinks: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:            role.Name,
			Image:           args.Images.PulledWith(args.Job.ImagePullSecrets, cmp.Or(role.Image, role.DefaultImage)),
			ImagePullPolicy: args.Job.ImagePullPolicy,
			Command:         launchCommand(args.Job.Script),
			Args:            startCommand(args.Job.Script, role.Kind),
			Env:             environment(args, names, role, scratch(volumes, mounts)),
			Resources:       role.Resources,
			VolumeMounts:    mounts,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
		}},
		Volumes:                       volumes,
		TerminationGracePeriodSeconds: new(int64(role.TerminationGracePeriodSeconds)),
	}
	if role.Port != 0 {
		pod.Containers[0].Ports = []corev1.ContainerPort{{Name: "persia", ContainerPort: int32(role.Port)}}
	}
	if role.Server {
		pod.Containers[0].ReadinessProbe = readiness(role.Port)
	}
	args.Placements[role.NodePool].Apply(&pod)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: role.labels, Annotations: annotations}, Spec: pod}
}

// readiness returns the probe of a server, which succeeds when the server accepts connections or waits for its next
// attempt: an attempt starts only when all replicas of a changed job are replaced, and Kubernetes replaces the next
// one only when the last is ready. There is no liveness probe, because a restart would lose the embeddings in memory.
func readiness(port int) *corev1.Probe {
	check := fmt.Sprintf(`[[ -e $PERSIA_IDLE_FILE ]] || exec 3<>/dev/tcp/127.0.0.1/%d`, port)
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/bash", "-c", check}}},
		PeriodSeconds:  10,
		TimeoutSeconds: 5,
	}
}

// podVolumes returns all volumes of a role's pods, and the mounts of its container.
func podVolumes(args JobArgs, role role) ([]corev1.Volume, []corev1.VolumeMount) {
	mounted := args.Job.MountsOf(*role.Role)
	volumes := claimVolumes(args.Claims, mounted)
	mounts := claimMounts(args.Claims, mounted, volumes)
	for _, volume := range args.Job.Volumes {
		if slices.ContainsFunc(role.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume.Name }) {
			if volume.Image != nil {
				volume.Image = volume.Image.DeepCopy()
				volume.Image.Reference = args.Images.PulledWith(args.Job.ImagePullSecrets, volume.Image.Reference)
			}
			volumes = append(volumes, volume)
		}
	}
	mounts = append(mounts, role.VolumeMounts...)
	if with := withSharedMemory(mounts); role.SharedMemory && len(with) > len(mounts) {
		volumes, mounts = append(volumes, sharedMemory), with
	}
	scripts, scriptsMount := scriptsVolume()
	state := corev1.Volume{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	return append(volumes, scripts, state), append(mounts, scriptsMount, corev1.VolumeMount{Name: state.Name, MountPath: podState})
}

// claimVolumes returns a volume for each claim that is mounted, which is read-only if all of its mounts are.
func claimVolumes(claims map[string]string, mounts []config.Mount) []corev1.Volume {
	var volumes []corev1.Volume
	for _, mount := range mounts {
		i := ofClaim(volumes, claims[mount.Volume])
		if i < 0 {
			volumes = append(volumes, corev1.Volume{Name: "claim-" + strconv.Itoa(len(volumes)), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claims[mount.Volume], ReadOnly: mount.ReadOnly},
			}})
		} else if !mount.ReadOnly {
			volumes[i].PersistentVolumeClaim.ReadOnly = false
		}
	}
	return volumes
}

// claimMounts returns how a container mounts volumes from [claimVolumes].
func claimMounts(claims map[string]string, mounts []config.Mount, volumes []corev1.Volume) []corev1.VolumeMount {
	var mounted []corev1.VolumeMount
	for _, mount := range mounts {
		name := volumes[ofClaim(volumes, claims[mount.Volume])].Name
		mounted = append(mounted, corev1.VolumeMount{Name: name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly})
	}
	return mounted
}

func ofClaim(volumes []corev1.Volume, claim string) int {
	return slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim.ClaimName == claim })
}

// sharedMemory is the volume through which the processes of a replica exchange data.
var sharedMemory = corev1.Volume{Name: "shared-memory", VolumeSource: corev1.VolumeSource{
	EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
}}

// withSharedMemory adds a mount of [sharedMemory], unless the container has another volume there.
func withSharedMemory(mounts []corev1.VolumeMount) []corev1.VolumeMount {
	if slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == config.SharedMemory }) {
		return mounts
	}
	return append(mounts, corev1.VolumeMount{Name: sharedMemory.Name, MountPath: config.SharedMemory})
}

// scratch returns the directories for temporary files that end with a pod: all but mounts of other volumes.
func scratch(volumes []corev1.Volume, mounts []corev1.VolumeMount) []string {
	return slices.DeleteFunc([]string{config.SharedMemory, "/tmp"}, func(directory string) bool {
		return slices.ContainsFunc(mounts, func(mount corev1.VolumeMount) bool {
			return path.Clean(mount.MountPath) == directory && !slices.ContainsFunc(volumes, func(volume corev1.Volume) bool {
				return volume.Name == mount.Name && volume.EmptyDir != nil
			})
		})
	})
}
