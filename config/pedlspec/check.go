package pedlspec

import (
	"math"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/decode"
	"persia/config/pod"
	"persia/gcp"
)

// Check checks PEDL. The path is of the platform. It does not check whether the pods fit the
// nodes of their pools.
func (f *Platform) Check(p *check.Problems, path *field.Path, context Context) {
	const example = "determinedai/pedl-master:0.9.0"
	pod.Image(p, path.Child("masterImage"), f.MasterImage, example)
	pod.Image(p, path.Child("agentImage"), f.AgentImage, example)
	pod.NoGPUs(p, path.Child("resources"), "the master of PEDL", f.Resources)
	checkNodeSelector(p, path.Child("nodeSelector"), f.NodeSelector)
	pod.Tolerations(p, path.Child("tolerations"), f.Tolerations)
	checkRegistry(p, path.Child("registry"), f.Registry)
	checkService(p, path.Child("service"), f.Service, context)
	checkIngress(p, path.Child("ingress"), f.Ingress)
	f.Postgres.check(p, path.Child("postgresql"), f.NodePool, context)
	f.Agent.check(p, path.Child("agent"), context)
	checkTrialRunner(p, path.Child("trialRunner"), f.TrialRunner)
}

func (a *Agent) check(p *check.Problems, path *field.Path, context Context) {
	pod.Env(p, path.Child("env"), a.Env)
	pod.Tolerations(p, path.Child("tolerations"), a.Tolerations)
	pod.Resources(p, path.Child("resources"), "an agent of PEDL", a.Resources)
	pools := path.Child("nodePools")
	if len(a.NodePools) > 0 && context.Storage.Existing {
		p.Forbidden(pools, "the stack does not change the node pools of an existing cluster; remove it, and label the nodes with kubectl label nodes -l %s=POOL %s=%s", gcp.LabelNodePool, AgentTaint.Key, AgentTaint.Value)
	}
	check.Once(p, pools, a.NodePools, "write each node pool once")
}

func checkNodeSelector(p *check.Problems, path *field.Path, labels map[string]string) {
	check.Labels(p, path, labels)
	if pool, ok := labels[gcp.LabelNodePool]; ok {
		p.Invalid(path.Key(gcp.LabelNodePool), pool, "is set by nodePool; remove it, and set nodePool instead")
	}
}

func checkRegistry(p *check.Problems, path *field.Path, r Registry) {
	if u, err := url.Parse(r.Server); err != nil || strings.ContainsFunc(r.Server, unicode.IsSpace) || u.User != nil {
		p.Invalid(path.Child("server"), field.OmitValueType{}, "must be a registry without credentials, like https://index.docker.io/v1/ or registry.example.com; write the user in user")
	}
	if strings.Contains(r.User, ":") {
		p.Invalid(path.Child("user"), r.User, "must be the user name without a colon; write the password in password")
	}
	checkCredential(p, path.Child("password"), r.Password)
}

// checkCredential checks a required secret of any form.
func checkCredential(p *check.Problems, path *field.Path, secret decode.Secret) {
	switch {
	case secret == "":
		p.Required(path, "write it with pulumi config set --secret --path '%s'", path)
	case strings.ContainsFunc(string(secret), unicode.IsControl):
		p.Invalid(path, field.OmitValueType{}, "must be a single line; set it again without the line break")
	}
}

// networkForm matches the names of Docker networks.
var networkForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:-]*$`)

func checkTrialRunner(p *check.Problems, path *field.Path, t TrialRunner) {
	if !networkForm.MatchString(t.Network) {
		p.Invalid(path.Child("network"), t.Network, "must be a network of Docker: default, bridge, host or a name")
	}
	for _, id := range []struct {
		field string
		value *int
	}{{"uid", t.UID}, {"gid", t.GID}} {
		if id.value != nil {
			check.Range(p, path.Child(id.field), *id.value, 0, math.MaxInt32, "; omit it to use the image's")
		}
	}
}
