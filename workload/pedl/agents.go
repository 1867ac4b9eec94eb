package pedl

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

// masterAddressKey is a variable of the agents, and the key of the ConfigMap that it comes from.
const masterAddressKey = "PEDL_MASTER_HOST"

//go:embed agents.yaml
var agentsManifest string

// NewAgents registers the DaemonSet of the agents on all nodes that have the label, after needs.
func NewAgents(r *kube.Registrar, name string, args Args, masterIP pulumi.Input, needs []pulumi.CustomResource) {
	of := kube.ByKind(agentsManifest, struct {
		Args
		Env            []corev1.EnvVar
		AllTolerations []corev1.Toleration
	}{args, agentEnv(args.PEDL), agentTolerations(args)})
	objects := r.Component("persia:pedl:Agents", name)
	policy := objects.Add(name, of["NetworkPolicy"], needs)
	address := objects.AddWith(name, of["ConfigMap"], kube.Later{"data." + masterAddressKey: masterIP}, kube.Needs(policy))
	objects.AddWith(name, of["DaemonSet"], restartedBy(address), kube.Needs(address))
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
			LocalObjectReference: corev1.LocalObjectReference{Name: "pedl-agent"}, Key: masterAddressKey,
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
