package config

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config/input"
	"persia/gcp"
)

// PEDLAgentTaint keeps other pods off nodes with agents, which expect to have their nodes to
// themselves. It is also the label by which agents select nodes.
var PEDLAgentTaint = corev1.Taint{Key: "determined.ai/pedl-agent", Value: "present", Effect: corev1.TaintEffectNoSchedule}

// PEDL is PEDL, Determined AI's platform, with an agent on each node with the label
// determined.ai/pedl-agent=present. If it is {}, PEDL is not installed.
type PEDL struct {
	// MasterImage is the image of the master.
	MasterImage string `json:"masterImage,omitempty" default:"determinedai/pedl-master"`
	// AgentImage is the image of the agents.
	AgentImage  string      `json:"agentImage,omitempty" default:"determinedai/pedl-agent"`
	Agent       PEDLAgent   `json:"agent,omitempty"`
	TrialRunner TrialRunner `json:"trialRunner,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent, or Never.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" default:"IfNotPresent" enum:"Always,IfNotPresent,Never"`
	// Resources are the requests and limits of the master. Default: limits {cpu: 8, memory: 16Gi}, and requests {cpu:
	// 4, memory: 8Gi}.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodePool is the node pool on which the master and its database run. Default: the system pool.
	NodePool string `json:"nodePool,omitempty"`
	// NodeSelector are labels that the master's node must have. Default none.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" form:"labels"`
	// Tolerations are taints that the master tolerates besides its pool's. Default none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	Registry    PEDLRegistry        `json:"registry"`
	Service     PEDLService         `json:"service,omitempty"`
	Ingress     PEDLIngress         `json:"ingress,omitempty"`
	Postgres    PostgreSQL          `json:"postgresql"`
	// SupportCheck checks whether a node can run PEDL.
	SupportCheck *SupportCheck `json:"supportCheck,omitempty"`
}

// PEDLAgent are the settings of the agents.
type PEDLAgent struct {
	// NodePools are the node pools that host agents. Their nodes get the label and taint
	// determined.ai/pedl-agent=present. Default none: then label nodes yourself.
	NodePools []string `json:"nodePools,omitempty" unique:"true"`
	// EnableCPUScheduling allows agents to run trials on CPUs.
	EnableCPUScheduling bool `json:"enableCPUScheduling,omitempty"`
	// Env are environment variables of the agents. Default none.
	Env []corev1.EnvVar `json:"env,omitempty" unique:"name"`
	// Resources are the requests and limits of an agent, without its trials. Default: limits {cpu: 1, memory: 2Gi},
	// and requests {cpu: 100m, memory: 256Mi}.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Tolerations let the agents run on nodes with taints that `nodePools` does not name. Default
	// nvidia.com/gpu=present:NoSchedule; write [] for none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// TrialRunner is the container of a trial.
type TrialRunner struct {
	// Network is the Docker network mode: default, bridge, host, or the name of a network.
	Network string `json:"network,omitempty" default:"default"`
	// UID is the user that trials run as. Default: the image's.
	UID *int `json:"uid,omitempty" min:"0" max:"2147483647"`
	// GID is the group that trials run as. Default: the image's.
	GID *int `json:"gid,omitempty" min:"0" max:"2147483647"`
}

// PEDLRegistry is the registry of both images.
type PEDLRegistry struct {
	// Server is the URL of the registry.
	Server string `json:"server,omitempty" default:"https://index.docker.io/v1/"`
	// User is the name of the account.
	User string `json:"user,omitempty" default:"determinedaicustomer"`
	// Password is a Pulumi secret.
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
	// ExternalIPs are external addresses of the Service, on an existing cluster only. Default none.
	ExternalIPs []string `json:"externalIPs,omitempty" unique:"true" form:"address"`
	// NodePort is the port on each node, from 30000 to 32767.
	NodePort int `json:"nodePort,omitempty" min:"30000" max:"32767"`
	// ClusterIP is the address of the Service in the cluster.
	ClusterIP string `json:"clusterIP,omitempty" form:"address"`
	// LoadBalancerIP is the address of the load balancer.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty" form:"address"`
	// LoadBalancerSourceRanges are the networks, in CIDR notation, that the load balancer admits. Required unless an
	// annotation makes it internal.
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
	// TLS are the certificates of the hosts, in Secrets in the namespace pedl. Default none.
	TLS []networkingv1.IngressTLS `json:"tls,omitempty"`
}

// SupportCheck checks a node. It runs nvidia-smi once, in a Docker container.
type SupportCheck struct {
	// NodePool is the GPU node pool to check.
	NodePool string `json:"nodePool"`
}

// resolve fills in defaults that depend on other fields and on the rest of the stack file.
func (f *PEDL) resolve(site *Site, pools []Pool) {
	f.NodePool = cmp.Or(f.NodePool, site.SystemPoolName())
	defaultResources(&f.Resources, masterResources)
	defaultResources(&f.Agent.Resources, agentResources)
	if f.Agent.Tolerations == nil {
		f.Agent.Tolerations = []corev1.Toleration{{Key: gcp.TaintGPU, Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	}
	pool, _ := poolNamed(pools, f.NodePool)
	f.Postgres.resolve(site, pool)
}

// resolve leaves an external database as it is.
func (d *PostgreSQL) resolve(site *Site, pool Pool) {
	if d.External != nil {
		return
	}
	defaultResources(&d.Resources, databaseResources)
	settings := map[string]SettingValue{"maxConnections": "2000", "sharedBuffers": "512MB"}
	maps.Copy(settings, d.ExtendedConfig)
	d.ExtendedConfig = settings
	d.Persistence.resolve(site, pool)
}

func (d *Persistence) resolve(site *Site, pool Pool) {
	if !d.Enabled || d.ExistingClaim != "" || d.StorageClass != "" {
		return
	}
	if d.Source() == nil && !site.existing() {
		d.PersistentDisk = &PersistentDisk{Disk: site.Cluster.Name + "-" + PEDLVolume, Create: &CreateDisk{}}
		input.Defaults(d.PersistentDisk)
		input.Defaults(d.PersistentDisk.Create)
	}
	if disk := d.PersistentDisk; disk != nil && disk.Create != nil && len(disk.Zones) == 0 && len(pool.Zones) > 0 {
		disk.Zones = pool.Zones[:1:1] // the pod must run in the zone of its disk
	}
	v := d.volume()
	v.resolve(site)
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
	written := *r
	r.Limits, r.Requests = maps.Clone(defaults.Limits), maps.Clone(defaults.Requests)
	maps.Copy(r.Limits, written.Limits)
	maps.Copy(r.Requests, written.Requests)
	for name := range defaults.Limits {
		_, limited := written.Limits[name]
		_, requested := written.Requests[name]
		switch limit, request := r.Limits[name], r.Requests[name]; {
		case request.Cmp(limit) <= 0 || limited && requested: // the rules report the latter
		case limited && limit.Sign() <= 0: // the rules report the limit
			delete(r.Requests, name)
		case limited:
			r.Requests[name] = limit
		default:
			r.Limits[name] = request
		}
	}
}

// hostsAgents reports whether agents run on the nodes of a pool.
func (f *PEDL) hostsAgents(pool Pool) bool {
	return f != nil && pool.Labels[PEDLAgentTaint.Key] == PEDLAgentTaint.Value
}
