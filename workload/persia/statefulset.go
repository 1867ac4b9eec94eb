package persia

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

// statefulSet is the one builder of every role.
func statefulSet(args JobArgs, role role) *appsv1.StatefulSet {
	replicas := int32(role.config.Replicas)
	labels, selector := roleLabels(args, role)
	return &appsv1.StatefulSet{
		ObjectMeta: kube.Meta(args.Namespace, objectName(args.Job, role), labels),
		Spec: appsv1.StatefulSetSpec{
			ServiceName: objectName(args.Job, role),
			Replicas:    &replicas,
			Selector:    &metav1.LabelSelector{MatchLabels: selector},
			// In order, hundreds of replicas with minutes of image pull each
			// would take hours, and no replica needs another to start.
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      labels,
					Annotations: mountedBy(args, role).PodAnnotations,
				},
				Spec: podSpec(args, role),
			},
		},
	}
}

func headlessService(args JobArgs, role role) *corev1.Service {
	labels, selector := roleLabels(args, role)
	service := &corev1.Service{
		ObjectMeta: kube.Meta(args.Namespace, objectName(args.Job, role), labels),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  selector,
			// Replicas look for each other before they are ready.
			PublishNotReadyAddresses: true,
		},
	}
	if role.port != 0 {
		service.Spec.Ports = []corev1.ServicePort{{Name: "persia", Port: role.port}}
	}
	return service
}

// JobLabel is upstream's: its tools find the pods of a job by it.
const JobLabel = "persia_job"

// roleLabels are those of a role's objects and pods, and the part of them that
// selects its pods.
func roleLabels(args JobArgs, role role) (labels, selector map[string]string) {
	labels = kube.Labels(role.name, objectName(args.Job, role))
	selector = map[string]string{
		JobLabel:                    args.Job.Name,
		"app.kubernetes.io/name":    role.name,
		"app.kubernetes.io/part-of": "persia",
	}
	maps.Copy(labels, selector)
	return labels, selector
}

// mountedBy is what the pods of a role mount.
func mountedBy(args JobArgs, role role) Mounted {
	return args.Mounted(args.Job.MountsOf(role.config))
}

func podSpec(args JobArgs, role role) corev1.PodSpec {
	no := false
	volumes, mounts := podVolumes(mountedBy(args, role).Claims, role)
	launchVolumes, launchMounts := launchVolumes(args)
	volumes, mounts = append(volumes, launchVolumes...), append(mounts, launchMounts...)
	container := corev1.Container{
		Name:            role.name,
		Image:           role.config.Image,
		ImagePullPolicy: args.Job.ImagePullPolicy,
		Command:         launchCommand(),
		Args:            append([]string{"persia-launcher"}, role.args...),
		Env:             lastWins(append(environment(args.Job, args.Broker, role), launchEnv(args, role))),
		Resources:       role.config.Resources,
		VolumeMounts:    mounts,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no},
	}
	if container.Image == "" {
		container.Image = role.image
	}
	if role.port != 0 {
		container.Ports = []corev1.ContainerPort{{Name: "persia", ContainerPort: role.port}}
	}
	pod := corev1.PodSpec{
		ServiceAccountName: args.ServiceAccount,
		PriorityClassName:  role.priority.Name,
		// One environment variable a service, of which a stack has dozens, is
		// nothing that a training reads.
		EnableServiceLinks: &no,
		SecurityContext: &corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers:                   []corev1.Container{container},
		Volumes:                      volumes,
		AutomountServiceAccountToken: &no,
	}
	args.Placement(role.config.NodePool).Apply(&pod)
	return pod
}

// podVolumes are the claims, and for a role that wants it shared memory.
func podVolumes(claims []Claim, role role) ([]corev1.Volume, []corev1.VolumeMount) {
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	for i, claim := range claims {
		// A claim that is mounted twice is one volume of the pod.
		of := slices.IndexFunc(claims, func(c Claim) bool { return c.Name == claim.Name })
		name := "claim-" + strconv.Itoa(of)
		if of == i {
			volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
					ClaimName: claim.Name,
					ReadOnly:  !slices.ContainsFunc(claims, func(c Claim) bool { return c.Name == claim.Name && !c.ReadOnly }),
				},
			}})
		}
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: claim.MountPath, ReadOnly: claim.ReadOnly})
	}
	if role.sharedMemory {
		const name = "shared-memory"
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: "/dev/shm"})
	}
	return volumes, mounts
}
