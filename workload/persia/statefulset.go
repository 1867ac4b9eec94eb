package persia

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

// statefulSet returns the StatefulSet of a role.
func statefulSet(args JobArgs, role role) *appsv1.StatefulSet {
	labels, selector := roleLabels(args, role)
	meta := kube.Meta(NamespaceName, objectName(args.Job, role), labels)
	meta.Annotations = args.Job.Contract().Annotation()
	return &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			ServiceName: objectName(args.Job, role),
			Replicas:    new(int32(replicasOf(args.Job, role.config))),
			Selector:    &metav1.LabelSelector{MatchLabels: selector},
			// In order, hundreds of replicas with minutes of image pull each would take hours, and no replica needs
			// another to start.
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Template:            podTemplate(args, role),
		},
	}
}

// podTemplate returns the template of the pods of a role.
func podTemplate(args JobArgs, role role) corev1.PodTemplateSpec {
	labels, _ := roleLabels(args, role)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: podAnnotations(args, role)},
		Spec:       podSpec(args, role),
	}
}

// replicasOf returns the current number of replicas of a role.
func replicasOf(job config.Job, role config.Role) int {
	if job.Suspend {
		return 0
	}
	return role.Replicas
}

// podAnnotations returns the annotations that the drivers of the volumes need, and one that keeps the autoscaler from
// removing the node: a moved training starts again at its last checkpoint.
func podAnnotations(args JobArgs, role role) map[string]string {
	annotations := map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
	maps.Copy(annotations, args.PodAnnotations[role.Name])
	return annotations
}

func headlessService(args JobArgs, role role) *corev1.Service {
	labels, selector := roleLabels(args, role)
	service := &corev1.Service{
		ObjectMeta: kube.Meta(NamespaceName, objectName(args.Job, role), labels),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  selector,
			// Replicas look for each other before they are ready.
			PublishNotReadyAddresses: true,
		},
	}
	if role.port != 0 {
		service.Spec.Ports = []corev1.ServicePort{kube.ServicePort("persia", role.port)}
	}
	return service
}

// PodsOf selects the pods of a job, whichever engine creates them. Without a job, it selects the pods of all jobs of
// the stack.
func PodsOf(job string) metav1.LabelSelector {
	if job == "" {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: config.JobLabel, Operator: metav1.LabelSelectorOpExists,
		}}}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{config.JobLabel: job}}
}

// roleLabels returns the labels of a role's objects and pods, and the ones that select its pods.
func roleLabels(args JobArgs, role role) (labels, selector map[string]string) {
	labels = kube.Labels(role.Name, objectName(args.Job, role))
	selector = map[string]string{
		config.JobLabel:             args.Job.Name,
		"app.kubernetes.io/name":    role.Name,
		"app.kubernetes.io/part-of": "persia",
	}
	maps.Copy(labels, selector)
	return labels, selector
}

func podSpec(args JobArgs, role role) corev1.PodSpec {
	volumes, mounts := podVolumes(args, role)
	pod := corev1.PodSpec{
		ServiceAccountName:           args.ServiceAccount,
		AutomountServiceAccountToken: new(false),
		ImagePullSecrets:             args.Job.ImagePullSecrets,
		PriorityClassName:            role.Priority.Name,
		TopologySpreadConstraints:    spread(args, role),
		// A stack has dozens of Services, and training scripts read none of the variables that Kubernetes would set
		// for them.
		EnableServiceLinks: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers:                    []corev1.Container{container(args, role, mounts)},
		Volumes:                       volumes,
		TerminationGracePeriodSeconds: new(int64(role.config.TerminationGracePeriodSeconds)),
	}
	args.Placements[role.config.NodePool].Apply(&pod)
	return pod
}

func container(args JobArgs, role role, mounts []corev1.VolumeMount) corev1.Container {
	container := corev1.Container{
		Name:            role.Name,
		Image:           args.Images.PulledWith(args.Job.ImagePullSecrets, cmp.Or(role.config.Image, role.DefaultImage)),
		ImagePullPolicy: args.Job.ImagePullPolicy,
		Command:         launchCommand(args.Job),
		Args:            startCommand(args.Job, role),
		Env:             environment(args, role),
		Resources:       role.config.Resources,
		VolumeMounts:    mounts,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
	}
	if role.port != 0 {
		container.Ports = []corev1.ContainerPort{{Name: "persia", ContainerPort: role.port}}
	}
	if role.Server {
		container.ReadinessProbe = readiness(role)
	}
	return container
}

// readiness returns the probe of a server, which succeeds when the server accepts connections or waits for its next
// attempt: an attempt starts only when all replicas of a changed job are replaced, and Kubernetes replaces the next
// one only when the last is ready. There is no liveness probe, because a restart would lose the embeddings in memory.
func readiness(role role) *corev1.Probe {
	check := fmt.Sprintf(`[[ -e $PERSIA_IDLE_FILE ]] || exec 3<>/dev/tcp/127.0.0.1/%d`, role.port)
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/bash", "-c", check}}},
		PeriodSeconds:  10,
		TimeoutSeconds: 5,
	}
}

// spread keeps the replicas of a role on as many nodes as there is room for, so that a node that is lost takes few of
// them with it.
func spread(args JobArgs, role role) []corev1.TopologySpreadConstraint {
	_, selector := roleLabels(args, role)
	return []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: selector},
	}}
}

// podVolumes returns all volumes of a role's pods, and the mounts of its container.
func podVolumes(args JobArgs, role role) ([]corev1.Volume, []corev1.VolumeMount) {
	mounted := args.Job.MountsOf(role.config)
	volumes := claimVolumes(args.Claims, mounted)
	mounts := claimMounts(args.Claims, mounted, volumes)
	for _, volume := range args.Job.Volumes {
		if slices.ContainsFunc(role.config.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume.Name }) {
			if volume.Image != nil {
				volume.Image = volume.Image.DeepCopy()
				volume.Image.Reference = args.Images.PulledWith(args.Job.ImagePullSecrets, volume.Image.Reference)
			}
			volumes = append(volumes, volume)
		}
	}
	mounts = append(mounts, role.config.VolumeMounts...)
	if with := withSharedMemory(mounts); role.SharedMemory && len(with) > len(mounts) {
		volumes, mounts = append(volumes, sharedMemory), with
	}
	launchVolumes, launchMounts := launchVolumes()
	return append(volumes, launchVolumes...), append(mounts, launchMounts...)
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
