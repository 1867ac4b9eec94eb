package pedl

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

const (
	agentName = "pedl-agent"
	// masterAddressKey is a variable of the agents, and the key that it comes from.
	masterAddressKey = "PEDL_MASTER_HOST"
	dockerSocket     = "/var/run/docker.sock"
)

// NewAgents registers the DaemonSet of the agents on all nodes that have the label, after needs. Trials get the address
// of the master from their agents, because Docker's containers do not know the names of Kubernetes.
func NewAgents(r *kube.Registrar, name string, args Args, masterIP pulumi.Input, needs []pulumi.CustomResource) {
	objects := r.Component("persia:pedl:Agents", name)
	policy := objects.Add(name, agentPolicy(), needs)
	address := objects.AddWith(name, &corev1.ConfigMap{
		ObjectMeta: meta(AgentNamespaceName, agentName, agentName),
	}, kube.Later{"data." + masterAddressKey: masterIP}, kube.Needs(policy))
	objects.AddWith(name, daemonSet(args), restartedBy(address), kube.Needs(address))
}

func daemonSet(args Args) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{
		ObjectMeta: meta(AgentNamespaceName, agentName, agentName),
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: selector(agentName)},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template:       template(agentName, agentName, agentPod(args)),
		},
	}
	// Nodes are labelled by others too, at any time, and one without Docker would hold up every update.
	set.Annotations = map[string]string{"pulumi.com/skipAwait": "true"}
	return set
}

func agentPod(args Args) corev1.PodSpec {
	pod := corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: pullSecretName}},
		NodeSelector:     map[string]string{config.PEDLAgentTaint.Key: config.PEDLAgentTaint.Value},
		Tolerations:      agentTolerations(args),
		Containers: []corev1.Container{{
			Name:            "agent",
			Image:           args.Images.PrivateReference(args.PEDL.AgentImage),
			ImagePullPolicy: args.PEDL.ImagePullPolicy,
			Env:             agentEnv(args.PEDL),
			Resources:       args.PEDL.Agent.Resources,
			SecurityContext: withoutRights(),
		}},
	}
	mountDocker(&pod)
	return pod
}

// mountDocker gives the first container of a pod the node's Docker. A node without it keeps the pod waiting.
func mountDocker(pod *corev1.PodSpec) {
	const volume = "docker-socket"
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: dockerSocket, Type: new(corev1.HostPathSocket)},
	}})
	mounts := &pod.Containers[0].VolumeMounts
	*mounts = append(*mounts, corev1.VolumeMount{Name: volume, MountPath: dockerSocket})
}

// agentTolerations returns tolerations for the taint of the agents' own nodes, for the taints in the
// stack file, and for the taints of the pools, each once.
func agentTolerations(args Args) []corev1.Toleration {
	tolerations := []corev1.Toleration{{
		Key:    config.PEDLAgentTaint.Key,
		Value:  config.PEDLAgentTaint.Value,
		Effect: config.PEDLAgentTaint.Effect,
	}}
	for _, t := range slices.Concat(args.PEDL.Agent.Tolerations, args.Tolerations) {
		if !slices.ContainsFunc(tolerations, func(other corev1.Toleration) bool { return sameToleration(other, t) }) {
			tolerations = append(tolerations, t)
		}
	}
	return tolerations
}

// sameToleration knows that Equal is the operator of a toleration without one.
func sameToleration(a, b corev1.Toleration) bool {
	a.Operator = cmp.Or(a.Operator, corev1.TolerationOpEqual)
	b.Operator = cmp.Or(b.Operator, corev1.TolerationOpEqual)
	return a.MatchToleration(&b)
}

// agentEnv returns the agent's options. Options in the stack file win.
func agentEnv(pedl config.PEDL) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: masterAddressKey, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: agentName}, Key: masterAddressKey,
		}}},
		{Name: "PEDL_MASTER_PORT", Value: strconv.Itoa(pedl.Service.Port)},
		// An agent that starts again is the same one to its master.
		kube.FieldEnv("PEDL_AGENT_ID", "spec.nodeName"),
		{Name: "PEDL_ENABLE_CPU_SCHEDULING", Value: strconv.FormatBool(pedl.Agent.EnableCPUScheduling)},
		{Name: "PEDL_TRIAL_RUNNER_NETWORK", Value: pedl.TrialRunner.Network},
	}
	if uid := pedl.TrialRunner.UID; uid != nil {
		env = append(env, corev1.EnvVar{Name: "PEDL_TRIAL_RUNNER_UID", Value: strconv.Itoa(*uid)})
	}
	if gid := pedl.TrialRunner.GID; gid != nil {
		env = append(env, corev1.EnvVar{Name: "PEDL_TRIAL_RUNNER_GID", Value: strconv.Itoa(*gid)})
	}
	env = slices.DeleteFunc(env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(pedl.Agent.Env, func(own corev1.EnvVar) bool { return own.Name == e.Name })
	})
	return append(env, pedl.Agent.Env...)
}
