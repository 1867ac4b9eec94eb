package persia

import (
	"cmp"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
