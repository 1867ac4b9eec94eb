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
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

const (
	// PEDLNamespace is the namespace of the master and of its database.
	PEDLNamespace = "pedl"
	// PEDLVolume is the name of the database's volume, and of its claim.
	PEDLVolume = "pedl-postgresql"
)

// PEDLAgentTaint keeps other pods off nodes with agents, which expect to have their nodes to
// themselves. It is also the label by which agents select nodes.
var PEDLAgentTaint = corev1.Taint{Key: "determined.ai/pedl-agent", Value: "present", Effect: corev1.TaintEffectNoSchedule}

// PEDL is PEDL, Determined AI's deep learning platform, which runs alongside the
// PERSIA jobs: a master with its database, and an agent on each node with the label
// determined.ai/pedl-agent=present. If you omit it or write {}, PEDL is not installed.
type PEDL struct {
	// MasterImage is the image of the master.
	MasterImage string `json:"masterImage,omitempty" default:"determinedai/pedl-master"`
	// AgentImage is the image of the agents.
	AgentImage  string      `json:"agentImage,omitempty" default:"determinedai/pedl-agent"`
	Agent       PEDLAgent   `json:"agent,omitempty"`
	TrialRunner TrialRunner `json:"trialRunner,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent, or Never, for the master and the agents.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" default:"IfNotPresent" enum:"Always,IfNotPresent,Never"`
	// Resources are the requests and limits of the master. Each has a default: limits
	// {cpu: 8, memory: 16Gi}, requests {cpu: 4, memory: 8Gi}, but no request exceeds a
	// limit that you set.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodePool is the node pool on which the master and its database run. Default: the
	// system pool.
	NodePool string `json:"nodePool,omitempty"`
	// NodeSelector are additional labels that the master's node must have. Default none.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" form:"labels"`
	// Tolerations are taints that the master tolerates, in addition to its pool's. Default
	// none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	Registry    PEDLRegistry        `json:"registry"`
	Service     PEDLService         `json:"service,omitempty"`
	Ingress     PEDLIngress         `json:"ingress,omitempty"`
	Postgres    PostgreSQL          `json:"postgresql"`
	// SupportCheck checks whether a node can run PEDL. Default: no check.
	SupportCheck *SupportCheck `json:"supportCheck,omitempty"`
}

// PEDLAgent is the agent that runs on each node with the label
// determined.ai/pedl-agent=present. It starts containers through the node's Docker.
type PEDLAgent struct {
	// NodePools are the node pools that host agents. All of their nodes get the label and
	// the taint determined.ai/pedl-agent=present. Default none: then label nodes with
	// `kubectl label nodes`.
	NodePools []string `json:"nodePools,omitempty" unique:"true"`
	// EnableCPUScheduling allows agents to run trials on CPUs.
	EnableCPUScheduling bool `json:"enableCPUScheduling,omitempty"`
	// Env are environment variables of the agents, which take precedence over those that
	// the program sets. Default none.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Resources are the requests and limits of an agent, without its trials. Each has a
	// default: limits {cpu: 1, memory: 2Gi}, requests {cpu: 100m, memory: 256Mi}, but no
	// request exceeds a limit that you set.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Tolerations are taints that the agents tolerate, in addition to
	// determined.ai/pedl-agent=present and the taints of `nodePools`. Default
	// nvidia.com/gpu=present:NoSchedule; write [] for none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// TrialRunner is the container of a trial, which an agent starts.
type TrialRunner struct {
	// Network is the Docker network mode: default, bridge, host, or the name of a
	// network.
	Network string `json:"network,omitempty" default:"default"`
	// UID is the user that trials run as. Default: the user of the image.
	UID *int `json:"uid,omitempty" min:"0" max:"2147483647"`
	// GID is the group that trials run as. Default: the group of the image.
	GID *int `json:"gid,omitempty" min:"0" max:"2147483647"`
}

// PEDLRegistry is the registry from which the images of the master and the agents are pulled.
type PEDLRegistry struct {
	// Server is the URL of the registry.
	Server string `json:"server,omitempty" default:"https://index.docker.io/v1/"`
	// User is the name of the account.
	User string `json:"user,omitempty" default:"determinedaicustomer"`
	// Password is the password of the account, set with `pulumi config set --secret`.
	Password input.Secret `json:"password"`
	// Email is the email address of the account.
	Email string `json:"email,omitempty" default:"hello@determined.ai"`
}

// PEDLService is the Service of the master.
type PEDLService struct {
	// Type is `ClusterIP`, `NodePort`, or `LoadBalancer`.
	Type corev1.ServiceType `json:"type,omitempty" default:"ClusterIP" enum:"ClusterIP,NodePort,LoadBalancer"`
	// Port is the port of the master.
	Port int `json:"port,omitempty" default:"8080" max:"65535"`
	// ExternalIPs are addresses outside the cluster that lead to the Service, which only
	// an existing cluster may have. Default none.
	ExternalIPs []string `json:"externalIPs,omitempty" unique:"true"`
	// NodePort is the port on each node, from 30000 to 32767, for the types `NodePort`
	// and `LoadBalancer`. Default: Kubernetes chooses one.
	NodePort int `json:"nodePort,omitempty" min:"30000" max:"32767"`
	// ClusterIP is the address of the Service in the cluster. Default: Kubernetes chooses
	// one.
	ClusterIP string `json:"clusterIP,omitempty"`
	// LoadBalancerIP is the address of the load balancer, for the type `LoadBalancer`.
	// Default: Google Cloud chooses one.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty"`
	// LoadBalancerSourceRanges are the networks, in CIDR notation, that the load balancer admits.
	// Required for the type `LoadBalancer`, unless an annotation makes it internal.
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// Annotations are annotations of the Service. Default none.
	Annotations map[string]string `json:"annotations,omitempty" form:"annotations"`
}

// PEDLIngress routes HTTP requests from outside the cluster to the master.
type PEDLIngress struct {
	// Enabled creates an Ingress.
	Enabled bool `json:"enabled,omitempty"`
	// Annotations are annotations of the Ingress, for example its class. Default none.
	Annotations map[string]string `json:"annotations,omitempty" form:"annotations"`
	// Hosts are the host names that lead to the master. Default: all.
	Hosts []string `json:"hosts,omitempty" unique:"true"`
	// TLS are the certificates of the hosts, in Secrets in the namespace pedl. Default
	// none.
	TLS []networkingv1.IngressTLS `json:"tls,omitempty"`
}

// SupportCheck runs nvidia-smi once, in a container that it starts through the Docker of
// a node. The result is an output of the stack.
type SupportCheck struct {
	// NodePool is the GPU node pool to check.
	NodePool string `json:"nodePool"`
}

// Resolve fills in defaults that depend on other fields and on the rest of the stack file.
func (f *PEDL) Resolve(stack *Stack) {
	if f.NodePool == "" {
		f.NodePool = stack.SystemPoolName()
	}
	defaultResources(&f.Resources, masterResources)
	defaultResources(&f.Agent.Resources, agentResources)
	if f.Agent.Tolerations == nil {
		f.Agent.Tolerations = []corev1.Toleration{{Key: gcp.TaintGPU, Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	}
	f.Postgres.resolve(f.NodePool, stack)
}

// resolve leaves an external database as it is.
func (d *PostgreSQL) resolve(nodePool string, stack *Stack) {
	if d.External != nil {
		return
	}
	defaultResources(&d.Resources, databaseResources)
	if d.ExtendedConfig == nil {
		d.ExtendedConfig = map[string]SettingValue{}
	}
	for name, value := range map[string]SettingValue{"maxConnections": "2000", "sharedBuffers": "512MB"} {
		if _, written := d.ExtendedConfig[name]; !written {
			d.ExtendedConfig[name] = value
		}
	}
	d.Persistence.resolve(nodePool, stack)
}

func (d *Persistence) resolve(nodePool string, stack *Stack) {
	if !d.Enabled || d.ExistingClaim != "" || d.StorageClass != "" {
		return
	}
	if d.Source() == nil && !stack.existing() {
		d.PersistentDisk = &PersistentDisk{Disk: stack.Cluster.Name + "-" + PEDLVolume, Create: &CreateDisk{}}
		input.Defaults(d.PersistentDisk)
		input.Defaults(d.PersistentDisk.Create)
	}
	if disk := d.PersistentDisk; disk != nil && disk.Create != nil && len(disk.Zones) == 0 {
		// The pod must run in the zone of its disk.
		if pool, ok := stack.Pool(nodePool); ok && len(pool.Zones) > 0 {
			disk.Zones = pool.Zones[:1:1]
		}
	}
	v := d.volume()
	v.Resolve(stack)
}

// The default resources of PEDL's pods.
var (
	masterResources   = amountsOf("8", "16Gi", "4", "8Gi")
	agentResources    = amountsOf("1", "2Gi", "100m", "256Mi")
	databaseResources = amountsOf("8", "32G", "4", "16G")
)

func amountsOf(limitCPU, limitMemory, requestCPU, requestMemory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{"cpu": resource.MustParse(limitCPU), "memory": resource.MustParse(limitMemory)},
		Requests: corev1.ResourceList{"cpu": resource.MustParse(requestCPU), "memory": resource.MustParse(requestMemory)},
	}
}

// defaultResources fills in each missing amount. A default request never exceeds a limit that
// the user wrote, and a default limit is never below a request.
func defaultResources(r *corev1.ResourceRequirements, defaults corev1.ResourceRequirements) {
	r.Limits, r.Requests = orEmpty(r.Limits), orEmpty(r.Requests)
	for name, limit := range defaults.Limits {
		request, requested := r.Requests[name]
		if _, written := r.Limits[name]; !written {
			r.Limits[name] = limit
			if requested && request.Cmp(limit) > 0 {
				r.Limits[name] = request
			}
		}
		limit = r.Limits[name]
		// Check reports limits that are not positive.
		if !requested && limit.Sign() > 0 {
			r.Requests[name] = defaults.Requests[name]
			if limit.Cmp(defaults.Requests[name]) < 0 {
				r.Requests[name] = limit
			}
		}
	}
}

func orEmpty(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return corev1.ResourceList{}
	}
	return list
}

// labelAgentPools gives the pools of PEDL's agents the label that agents select nodes by,
// and the taint that keeps other pods off. It leaves existing pools alone.
func (s *Stack) labelAgentPools() {
	if s.PEDL == nil || s.Cluster.Existing != nil {
		return
	}
	taint := Taint{Key: PEDLAgentTaint.Key, Value: PEDLAgentTaint.Value, Effect: PEDLAgentTaint.Effect}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		if !slices.Contains(s.PEDL.Agent.NodePools, pool.Name) {
			continue
		}
		if pool.Labels == nil {
			pool.Labels = map[string]string{}
		}
		if _, written := pool.Labels[taint.Key]; !written {
			pool.Labels[taint.Key] = taint.Value
		}
		if !slices.Contains(pool.Taints, taint) {
			pool.Taints = append(pool.Taints, taint)
		}
	}
}

// hostsAgents reports whether agents run on the nodes of a pool.
func (s *Stack) hostsAgents(pool Pool) bool {
	return s.PEDL != nil && pool.Labels[PEDLAgentTaint.Key] == PEDLAgentTaint.Value
}

// checkPEDL checks PEDL, and that its pods fit the nodes of their pools.
func (s *Stack) checkPEDL(p *input.Problems) {
	path, pedl := field.NewPath(pedlKey), s.PEDL
	if pedl == nil {
		return
	}
	pedl.Check(p, path, s)
	s.checkAssignment(p, path, "the master of PEDL", pedl.NodePool, pedl.Resources, append(s.poolNames(), s.SystemPoolName()), false)
	if pool, ok := s.Pool(pedl.NodePool); ok && pedl.Postgres.External == nil {
		s.checkRoom(p, path.Child("postgresql", "resources"), databaseName, pedl.Postgres.Resources, pool)
	}
	if s.Cluster.Existing == nil {
		s.checkAgentPools(p, path.Child("agent", "nodePools"), pedl.Agent.NodePools)
		s.checkServiceAddress(p, path.Child("service", "clusterIP"), pedl.Service.ClusterIP)
	}
	if pedl.SupportCheck != nil {
		at := path.Child("supportCheck", "nodePool")
		if pool, ok := s.checkPool(p, at, pedl.SupportCheck.NodePool, s.poolNames(), false); ok && pool.GPU == nil {
			p.Invalid(at, pool.Name, "has no GPUs, which the check requires; choose a GPU pool")
		} else if ok {
			s.checkArm(p, at, pool.Name, "the check", pool.MachineType)
		}
	}
	s.checkAgentsAlone(p)
	s.warnOfNodeSelector(p, path.Child("nodeSelector"))
}

// warnOfNodeSelector warns of labels that no node of the master's pool has. GKE gives nodes
// more labels, in domains of its own.
func (s *Stack) warnOfNodeSelector(p *input.Problems, path *field.Path) {
	pool, ok := s.Pool(s.PEDL.NodePool)
	if !ok || s.Cluster.Existing != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s.PEDL.NodeSelector)) {
		value, labelled := pool.Labels[key]
		if own := reservedDomain(key) == "" && key != PoolLabel; own && (!labelled || value != s.PEDL.NodeSelector[key]) {
			p.Warn(path.Key(key), "no node of pool %s has the label %s=%s, so the master waits for one; write the label in labels of a pool, or remove it", pool.Name, key, s.PEDL.NodeSelector[key])
		}
	}
}

// checkServiceAddress refuses an address that the cluster cannot give to a Service.
func (s *Stack) checkServiceAddress(p *input.Problems, path *field.Path, written string) {
	address, err := netip.ParseAddr(written)
	services, bad := netip.ParsePrefix(s.Cluster.Network.Services)
	switch {
	case err != nil || bad != nil:
	case !services.Contains(address):
		p.Invalid(path, written, "must be in %s, the range of %s.network.services", services, clusterKey)
	case address == services.Addr() || address == services.Addr().Next():
		p.Invalid(path, written, "is taken: the first address of %s is the range's own, and the second is the Service of the Kubernetes API; write another, or omit it", services)
	}
}

// checkAgentPools refuses pools whose nodes come and go: Kubernetes does not see trials.
func (s *Stack) checkAgentPools(p *input.Problems, path *field.Path, names []string) {
	for i, name := range names {
		pool, ok := s.checkPool(p, path.Index(i), name, s.poolNames(), false)
		if !ok {
			continue
		}
		s.checkArm(p, path.Index(i), name, "PEDL's agents", pool.MachineType)
		if pool.Autoscaling != nil {
			p.Invalid(path.Index(i), name, "has autoscaling, which does not know about PEDL's trials: it adds no nodes for them, and removes nodes that run them; set nodes instead")
		}
		if value := pool.Labels[PEDLAgentTaint.Key]; value != PEDLAgentTaint.Value {
			p.Invalid(path.Index(i), name, "has the label %s=%s, but agents select nodes by %s; remove the label from the pool", PEDLAgentTaint.Key, value, PEDLAgentTaint.Value)
		}
	}
}

// checkAgentsAlone refuses to assign other pods to nodes with agents.
func (s *Stack) checkAgentsAlone(p *input.Problems) {
	const taken = "hosts PEDL agents, which expect to have its nodes to themselves; choose another pool, or remove this one from " + pedlKey + ".agent.nodePools"
	check := func(path *field.Path, name string) {
		if pool, ok := s.Pool(name); ok && s.hostsAgents(pool) {
			p.Invalid(path.Child("nodePool"), name, taken)
		}
	}
	check(field.NewPath(pedlKey), s.PEDL.NodePool)
	check(field.NewPath(natsKey), s.NATS.NodePool)
	for i := range s.Jobs {
		job := &s.Jobs[i]
		check(job.At().Child("nats"), job.NATS.NodePool)
		for _, role := range job.Roles() {
			check(job.At().Child(role.Field), role.NodePool)
		}
	}
}

// PEDLDatabase returns the volume of PEDL's database, and whether it is a volume of the
// stack.
func (s *Stack) PEDLDatabase() (Volume, bool) {
	if s.PEDL == nil {
		return Volume{}, false
	}
	return s.PEDL.Postgres.Volume()
}

func (s *Stack) warnOfPEDL(p *input.Problems) {
	if s.PEDL == nil {
		return
	}
	path := field.NewPath(pedlKey)
	s.PEDL.Warn(p, path)
	for _, pool := range s.NodePools {
		if pool.ImageType == "" {
			continue
		}
		const noDocker = "nodes with %s have containerd and no Docker, so that /var/run/docker.sock is missing"
		if slices.Contains(s.PEDL.Agent.NodePools, pool.Name) {
			p.Warn(path.Child("agent", "nodePools"), noDocker+": the agents of pool %s wait until you have installed it", pool.ImageType, pool.Name)
		}
		if check := s.PEDL.SupportCheck; check != nil && check.NodePool == pool.Name {
			p.Warn(path.Child("supportCheck", "nodePool"), noDocker+": the check of pool %s fails unless you have installed it", pool.ImageType, pool.Name)
		}
	}
}

// Check checks PEDL. The path is of the platform. It does not check whether the pods fit the
// nodes of their pools.
func (f *PEDL) Check(p *input.Problems, path *field.Path, stack *Stack) {
	const example = "determinedai/pedl-master:0.9.0"
	checkImage(p, path.Child("masterImage"), f.MasterImage, example)
	checkImage(p, path.Child("agentImage"), f.AgentImage, example)
	checkNoGPUs(p, path.Child("resources"), "the master of PEDL", f.Resources)
	checkNodeSelector(p, path.Child("nodeSelector"), f.NodeSelector)
	checkRegistry(p, path.Child("registry"), f.Registry)
	checkService(p, path.Child("service"), f.Service, stack)
	checkIngress(p, path.Child("ingress"), f.Ingress)
	f.Postgres.check(p, path.Child("postgresql"), f.NodePool, stack)
	f.Agent.check(p, path.Child("agent"), stack)
	checkTrialRunner(p, path.Child("trialRunner"), f.TrialRunner)
}

func (a *PEDLAgent) check(p *input.Problems, path *field.Path, stack *Stack) {
	checkEnvVars(p, path.Child("env"), a.Env)
	checkResources(p, path.Child("resources"), "an agent of PEDL", a.Resources)
	pools := path.Child("nodePools")
	if len(a.NodePools) > 0 && stack.existing() {
		p.Forbidden(pools, "the stack does not change the node pools of an existing cluster; remove it, and label the nodes with kubectl label nodes -l %s=POOL %s=%s", gcp.LabelNodePool, PEDLAgentTaint.Key, PEDLAgentTaint.Value)
	}
}

func checkNodeSelector(p *input.Problems, path *field.Path, labels map[string]string) {
	if pool, ok := labels[gcp.LabelNodePool]; ok {
		p.Invalid(path.Key(gcp.LabelNodePool), pool, "is set by nodePool; remove it, and set nodePool instead")
	}
}

func checkRegistry(p *input.Problems, path *field.Path, r PEDLRegistry) {
	if u, err := url.Parse(r.Server); err != nil || strings.ContainsFunc(r.Server, unicode.IsSpace) || u.User != nil {
		p.Invalid(path.Child("server"), field.OmitValueType{}, "must be a registry without credentials, like https://index.docker.io/v1/ or registry.example.com; write the user in user")
	}
	if strings.Contains(r.User, ":") {
		p.Invalid(path.Child("user"), r.User, "must be the user name without a colon; write the password in password")
	}
	checkCredential(p, path.Child("password"), r.Password)
}

// checkCredential checks a required secret of any form.
func checkCredential(p *input.Problems, path *field.Path, secret input.Secret) {
	switch {
	case secret == "":
		p.Required(path, "write it with pulumi config set --secret --path '%s'", path)
	case strings.ContainsFunc(string(secret), unicode.IsControl):
		p.Invalid(path, field.OmitValueType{}, "must be a single line; set it again without the line break")
	}
}

// networkForm matches the names of Docker networks.
var networkForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:-]*$`)

func checkTrialRunner(p *input.Problems, path *field.Path, t TrialRunner) {
	if !networkForm.MatchString(t.Network) {
		p.Invalid(path.Child("network"), t.Network, "must be a network of Docker: default, bridge, host or a name")
	}
}

// checkExternalIPs checks the external addresses of a Service. GKE refuses all of them in a
// cluster that the stack creates, because a Service could intercept the traffic of another
// one (CVE-2020-8554). The API server refuses addresses that no other machine can reach
// (ValidateNonSpecialIP). The remedy is another way to expose the Service.
func checkExternalIPs(p *input.Problems, path *field.Path, addresses []string, stack *Stack, remedy string) {
	if len(addresses) > 0 && !stack.existing() {
		p.Invalid(path, addresses, "is only for an existing cluster, because GKE refuses external addresses of Services in a cluster that the stack creates; remove it, and %s", remedy)
		return
	}
	for i, address := range addresses {
		checkAddress(p, path.Index(i), address)
		if ip := net.ParseIP(address); ip.IsUnspecified() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() {
			p.Invalid(path.Index(i), address, "must not be an unspecified, loopback, or link-local address; write one that leads to a node")
		}
	}
}

func checkAddress(p *input.Problems, path *field.Path, address string) {
	if net.ParseIP(address) == nil {
		p.Invalid(path, address, "must be an address like 10.0.0.2")
	}
}

func checkService(p *input.Problems, path *field.Path, s PEDLService, stack *Stack) {
	checkExternalIPs(p, path.Child("externalIPs"), s.ExternalIPs, stack, "write type: LoadBalancer, or an ingress")
	if s.NodePort != 0 && s.Type == corev1.ServiceTypeClusterIP {
		p.Invalid(path.Child("nodePort"), s.NodePort, "applies only to the types NodePort and LoadBalancer, but type is %s; remove it, or change type", s.Type)
	}
	if s.ClusterIP != "" {
		checkAddress(p, path.Child("clusterIP"), s.ClusterIP)
	}
	checkLoadBalancer(p, path, s)
}

func checkLoadBalancer(p *input.Problems, path *field.Path, s PEDLService) {
	ip, ranges := path.Child("loadBalancerIP"), path.Child("loadBalancerSourceRanges")
	if s.Type != corev1.ServiceTypeLoadBalancer {
		const other = "applies only to the type LoadBalancer, but type is %s; remove it, or change type"
		if s.LoadBalancerIP != "" {
			p.Invalid(ip, s.LoadBalancerIP, other, s.Type)
		}
		if len(s.LoadBalancerSourceRanges) > 0 {
			p.Invalid(ranges, s.LoadBalancerSourceRanges, other, s.Type)
		}
		return
	}
	if s.LoadBalancerIP != "" {
		checkAddress(p, ip, s.LoadBalancerIP)
		if address := net.ParseIP(s.LoadBalancerIP); address.IsPrivate() && !s.internal() {
			p.Invalid(ip, s.LoadBalancerIP, "is a private address, which only an internal load balancer can have; write a reserved external address, omit it, or give the service the annotation %s: Internal", internalAnnotations[0])
		}
	}
	if len(s.LoadBalancerSourceRanges) == 0 && !s.internal() {
		p.Required(ranges, "write the networks of PEDL's users, like 203.0.113.0/24, because a load balancer admits everyone by default, and anyone who can reach the master can run containers on the nodes of its agents; or give the service the annotation %s: Internal", internalAnnotations[0])
	}
	for i, text := range s.LoadBalancerSourceRanges {
		if _, err := netip.ParsePrefix(text); err != nil {
			p.Invalid(ranges.Index(i), text, "must be a network in CIDR notation, like 203.0.113.0/24")
		}
	}
}

// internalAnnotations make a load balancer of GKE internal: the current annotation, and the
// one of older releases.
var internalAnnotations = []string{"networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type"}

// internal reports whether only the cluster's network can reach the load balancer.
func (s PEDLService) internal() bool {
	return slices.ContainsFunc(internalAnnotations, func(name string) bool { return s.Annotations[name] == "Internal" })
}

func checkIngress(p *input.Problems, path *field.Path, in PEDLIngress) {
	if !in.Enabled {
		for _, given := range []struct {
			field string
			given bool
		}{{"annotations", len(in.Annotations) > 0}, {"hosts", len(in.Hosts) > 0}, {"tls", len(in.TLS) > 0}} {
			if given.given {
				p.Forbidden(path.Child(given.field), "enabled is false; write enabled: true, or remove it")
			}
		}
		return
	}
	for i, host := range in.Hosts {
		if net.ParseIP(host) != nil {
			p.Invalid(path.Child("hosts").Index(i), host, "is an IP address, but an ingress routes by host name; write a name like pedl.example.com, or remove hosts to admit all")
			continue
		}
		checkIngressHost(p, path.Child("hosts").Index(i), host)
	}
	for i, certificate := range in.TLS {
		at := path.Child("tls").Index(i)
		p.Name(at.Child("secretName"), certificate.SecretName, validation.IsDNS1123Subdomain)
		for j, host := range certificate.Hosts {
			checkIngressHost(p, at.Child("hosts").Index(j), host)
		}
	}
}

func checkIngressHost(p *input.Problems, path *field.Path, host string) {
	if len(validation.IsDNS1123Subdomain(host)) > 0 && len(validation.IsWildcardDNS1123Subdomain(host)) > 0 {
		p.Invalid(path, host, "must be a name like pedl.example.com, in lower case")
	}
}

// dockerHubNames are the names of Docker Hub in the references of images.
var dockerHubNames = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// isRemoved reports whether the image is one that Bitnami no longer publishes: since August 2025,
// its repositories have only the tag latest (bitnami/containers, issue 83267).
func (i DatabaseImage) isRemoved() bool {
	return slices.Contains(dockerHubNames, i.Registry) && strings.HasPrefix(i.Repository, "bitnami/") && i.Tag != "latest"
}

// Warn warns of settings of PEDL that the user may not have meant. The path is of the platform.
func (f *PEDL) Warn(p *input.Problems, path *field.Path) {
	for _, image := range []struct{ field, name string }{{"masterImage", f.MasterImage}, {"agentImage", f.AgentImage}} {
		if isLooseImage(image.name) {
			p.Warn(path.Child(image.field), "%s has no tag other than latest, so pods that start later might run another release; add a tag", image.name)
		}
	}
	if f.ImagePullPolicy == corev1.PullNever {
		p.Warn(path.Child("imagePullPolicy"), neverPulled)
	}
	service := path.Child("service")
	if f.Service.Type == corev1.ServiceTypeNodePort {
		p.Warn(service.Child("type"), "opens a port on every node, and anyone who can reach a node can run containers on the nodes of the agents; write ClusterIP, and use kubectl port-forward to reach the master")
	}
	if f.Service.Type != corev1.ServiceTypeClusterIP {
		p.Warn(service.Child("type"), "the master speaks HTTP without encryption, so that passwords can be read on the way; write ClusterIP, and reach it by kubectl port-forward or by an ingress with tls")
	}
	for i, text := range f.Service.LoadBalancerSourceRanges {
		if r, err := netip.ParsePrefix(text); err == nil && r.Bits() < 8 {
			p.Warn(service.Child("loadBalancerSourceRanges").Index(i), "%s admits practically everyone, and anyone who can reach the master can run containers on the nodes of its agents; write the range that its users come from", text)
		}
	}
	if len(f.Service.ExternalIPs) > 0 {
		p.Warn(service.Child("externalIPs"), "anyone who can reach these addresses can run containers on the nodes of the agents; remove it, and use kubectl port-forward to reach the master")
	}
	if f.Ingress.Enabled && len(f.Ingress.TLS) == 0 {
		p.Warn(path.Child("ingress", "tls"), "without a certificate, all traffic is unencrypted, including passwords; add one for the hosts")
	}
	if f.Ingress.Enabled {
		p.Warn(path.Child("ingress", "enabled"), "anyone who can reach the ingress can run containers on the nodes of the agents; restrict access with the annotations of your ingress controller")
	}
	if f.Postgres.External != nil {
		return
	}
	database := path.Child("postgresql")
	if image := f.Postgres.Image; image.isRemoved() {
		p.Warn(database.Child("image"), "%s/%s:%s: Bitnami has removed all tags but latest from this repository; write %s, or an image of your own registry",
			image.Registry, image.Repository, image.Tag, ImagePostgreSQL.Reference())
	}
	if !f.Postgres.Persistence.Enabled {
		p.Warn(database.Child("persistence", "enabled"), "the database is lost when its pod is deleted")
	}
	if class := f.Postgres.Persistence.StorageClass; class != "" {
		p.Warn(database.Child("persistence", "storageClass"), "the storage class %s determines what happens to the database when its claim is deleted. `pulumi destroy` keeps the claim, but deleting the cluster deletes it", class)
	}
	if len(f.Postgres.Service.ExternalIPs) > 0 {
		p.Warn(database.Child("service", "externalIPs"), "anyone who can reach these addresses can reach the database")
	}
}
