package config

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

func (v *validator) pedl() {
	path, p := field.NewPath(pedlKey), v.stack.PEDL
	v.image(path.Child("masterImage"), p.MasterImage)
	v.image(path.Child("agentImage"), p.AgentImage)
	v.pullPolicy(path.Child("imagePullPolicy"), p.ImagePullPolicy)
	v.assignment(path, "the master of PEDL", p.NodePool, p.Resources, append(v.stack.poolNames(), v.stack.SystemPoolName()))
	v.noGPUs(path.Child("resources"), "the master of PEDL", p.Resources)
	v.nodeSelector(path.Child("nodeSelector"), p.NodeSelector)
	v.tolerations(path.Child("tolerations"), p.Tolerations)
	v.registry(path.Child("registry"), p.Registry)
	v.pedlService(path.Child("service"), p.Service)
	v.ingress(path.Child("ingress"), p.Ingress)
	v.postgreSQL(path.Child("postgresql"), p.Postgres)
	v.agents(path, p)
	v.trialRunner(path.Child("trialRunner"), p.TrialRunner)
	if p.SupportCheck != nil {
		v.supportCheck(path.Child("supportCheck", "nodePool"), p.SupportCheck.NodePool)
	}
	v.wholeNodes()
}

func (v *validator) image(path *field.Path, image string) {
	if image == "" || strings.ContainsFunc(image, unicode.IsSpace) {
		v.invalid(path, image, "must be an image reference without spaces, like determinedai/pedl-master:0.9.0")
	}
}

func (v *validator) pullPolicy(path *field.Path, policy corev1.PullPolicy) {
	oneOf(v, path, policy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func (v *validator) nodeSelector(path *field.Path, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := path.Key(key)
		for _, message := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])...) {
			v.invalid(at, labels[key], "%s", message)
		}
		if key == gcp.LabelNodePool {
			v.invalid(at, labels[key], "is decided by nodePool; remove it and write that")
		}
	}
}

func (v *validator) registry(path *field.Path, r PEDLRegistry) {
	if u, err := url.Parse(r.Server); err != nil || strings.ContainsFunc(r.Server, unicode.IsSpace) || u.User != nil {
		v.invalid(path.Child("server"), field.OmitValueType{}, "must be a registry without credentials, like https://index.docker.io/v1/ or registry.example.com; write the user in user")
	}
	if strings.Contains(r.User, ":") {
		v.invalid(path.Child("user"), r.User, "must be the name alone, without a colon; write the password in password")
	}
	v.credential(path.Child("password"), r.Password)
}

// credential checks a secret that is needed, and of which nothing else is known.
func (v *validator) credential(path *field.Path, secret Secret) {
	switch {
	case secret == "":
		v.required(path, "write it with pulumi config set --secret --path '%s'", path)
	case strings.ContainsFunc(string(secret), unicode.IsControl):
		v.invalidSecret(path, "must be one line; write it anew, without the end of the line")
	}
}

func (v *validator) port(path *field.Path, port int) {
	for _, message := range validation.IsValidPortNum(port) {
		v.invalid(path, port, "%s; leave it out for the default", message)
	}
}

func (v *validator) addresses(path *field.Path, addresses []string) {
	for i, address := range addresses {
		v.address(path.Index(i), address)
	}
	unique(addresses, func(i, _ int) { v.duplicate(path.Index(i), addresses[i], "write each address once") })
}

func (v *validator) address(path *field.Path, address string) {
	if net.ParseIP(address) == nil {
		v.invalid(path, address, "must be an address like 10.0.0.2")
	}
}

func (v *validator) pedlService(path *field.Path, s PEDLService) {
	oneOf(v, path.Child("type"), s.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	v.port(path.Child("port"), s.Port)
	v.addresses(path.Child("externalIPs"), s.ExternalIPs)
	v.annotations(path.Child("annotations"), s.Annotations)
	switch at := path.Child("nodePort"); {
	case s.NodePort == 0:
	case s.Type == corev1.ServiceTypeClusterIP:
		v.invalid(at, s.NodePort, "is for the types NodePort and LoadBalancer, and type is %s; remove one of the two", s.Type)
	case s.NodePort < 30000 || s.NodePort > 32767:
		v.invalid(at, s.NodePort, "must be from 30000 to 32767; leave it out, and Kubernetes chooses one")
	}
	if s.ClusterIP != "" {
		v.address(path.Child("clusterIP"), s.ClusterIP)
	}
	v.loadBalancer(path, s)
}

func (v *validator) loadBalancer(path *field.Path, s PEDLService) {
	ip, ranges := path.Child("loadBalancerIP"), path.Child("loadBalancerSourceRanges")
	if s.Type != corev1.ServiceTypeLoadBalancer {
		const other = "is for the type LoadBalancer, and type is %s; remove one of the two"
		if s.LoadBalancerIP != "" {
			v.invalid(ip, s.LoadBalancerIP, other, s.Type)
		}
		if len(s.LoadBalancerSourceRanges) > 0 {
			v.invalid(ranges, s.LoadBalancerSourceRanges, other, s.Type)
		}
		return
	}
	if s.LoadBalancerIP != "" {
		v.address(ip, s.LoadBalancerIP)
	}
	for i, text := range s.LoadBalancerSourceRanges {
		if _, err := netip.ParsePrefix(text); err != nil {
			v.invalid(ranges.Index(i), text, "must be a network in CIDR notation, like 203.0.113.0/24")
		}
	}
}

func (v *validator) annotations(path *field.Path, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		for _, message := range validation.IsQualifiedName(strings.ToLower(key)) {
			v.invalid(path.Key(key), key, "%s", message)
		}
	}
}

func (v *validator) ingress(path *field.Path, in PEDLIngress) {
	if !in.Enabled {
		for _, given := range []struct {
			field string
			given bool
		}{{"annotations", len(in.Annotations) > 0}, {"hosts", len(in.Hosts) > 0}, {"tls", len(in.TLS) > 0}} {
			if given.given {
				v.forbidden(path.Child(given.field), "enabled is false; write enabled: true, or remove it")
			}
		}
		return
	}
	v.annotations(path.Child("annotations"), in.Annotations)
	for i, host := range in.Hosts {
		v.ingressHost(path.Child("hosts").Index(i), host)
	}
	unique(in.Hosts, func(i, _ int) { v.duplicate(path.Child("hosts").Index(i), in.Hosts[i], "write each host once") })
	for i, certificate := range in.TLS {
		at := path.Child("tls").Index(i)
		v.name(at.Child("secretName"), certificate.SecretName, validation.IsDNS1123Subdomain)
		for j, host := range certificate.Hosts {
			v.ingressHost(at.Child("hosts").Index(j), host)
		}
	}
}

func (v *validator) ingressHost(path *field.Path, host string) {
	if len(validation.IsDNS1123Subdomain(host)) > 0 && len(validation.IsWildcardDNS1123Subdomain(host)) > 0 {
		v.invalid(path, host, "must be a name like pedl.example.com, in lower case")
	}
}

// networkForm is a name of a network of Docker.
var networkForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:-]*$`)

func (v *validator) trialRunner(path *field.Path, t TrialRunner) {
	if !networkForm.MatchString(t.Network) {
		v.invalid(path.Child("network"), t.Network, "must be a network of Docker: default, bridge, host or a name")
	}
	for _, id := range []struct {
		field string
		value *int
	}{{"uid", t.UID}, {"gid", t.GID}} {
		if id.value != nil && (*id.value < 0 || *id.value > 1<<31-1) {
			v.invalid(path.Child(id.field), *id.value, "must be from 0 to 2147483647; leave it out for the image's own")
		}
	}
}

func (v *validator) agents(path *field.Path, p *PEDL) {
	at := path.Child("agent")
	v.env(at.Child("env"), p.Agent.Env)
	v.tolerations(at.Child("tolerations"), p.Agent.Tolerations)
	v.resources(at.Child("resources"), "an agent of PEDL", p.Agent.Resources)
	pools := at.Child("nodePools")
	if len(p.Agent.NodePools) > 0 && v.stack.Cluster.Existing != nil {
		v.forbidden(pools, "on an existing cluster no node pool is changed; remove it, and label the nodes with kubectl label nodes -l %s=POOL %s=%s", gcp.LabelNodePool, PEDLAgentTaint.Key, PEDLAgentTaint.Value)
		return
	}
	for i, name := range p.Agent.NodePools {
		if pool, ok := v.assignedPool(pools.Index(i), name, v.stack.poolNames()); ok {
			v.agentPool(pools.Index(i), pool)
		}
	}
	unique(p.Agent.NodePools, func(i, _ int) { v.duplicate(pools.Index(i), p.Agent.NodePools[i], "write each node pool once") })
}

// agentPool refuses pools that a trial would not keep: Kubernetes does not see it.
func (v *validator) agentPool(path *field.Path, pool NodePool) {
	if pool.Autoscaling != nil {
		v.invalid(path, pool.Name, "has autoscaling, which sees nothing of PEDL's trials: it adds no node for them, and removes nodes under them; give the pool a number of nodes")
	}
	if value := pool.Labels[PEDLAgentTaint.Key]; value != PEDLAgentTaint.Value {
		v.invalid(path, pool.Name, "has the label %s=%s, and agents look for %s; remove the label from the pool", PEDLAgentTaint.Key, value, PEDLAgentTaint.Value)
	}
}

// hostsAgents reports whether agents run on the nodes of a pool.
func (s *Stack) hostsAgents(pool NodePool) bool {
	return s.PEDL != nil && pool.Labels[PEDLAgentTaint.Key] == PEDLAgentTaint.Value
}

// wholeNodes keeps everything else off nodes with agents.
func (v *validator) wholeNodes() {
	const taken = "hosts agents of PEDL, which presume that they have its nodes for themselves; choose another pool, or take this one out of " + pedlKey + ".agent.nodePools"
	check := func(path *field.Path, name string) {
		if pool, ok := v.stack.pool(name); ok && v.stack.hostsAgents(pool) {
			v.invalid(path.Child("nodePool"), name, taken)
		}
	}
	check(field.NewPath(pedlKey), v.stack.PEDL.NodePool)
	check(field.NewPath(natsKey), v.stack.NATS.NodePool)
	for i := range v.stack.Jobs {
		job := &v.stack.Jobs[i]
		for _, role := range job.Roles() {
			check(job.At().Child(role.Field), role.NodePool)
		}
	}
}

func (v *validator) supportCheck(path *field.Path, name string) {
	if pool, ok := v.assignedPool(path, name, v.stack.poolNames()); ok && pool.GPU == nil {
		v.invalid(path, name, "has no GPUs, and the check asks for them; choose a GPU pool")
	}
}
