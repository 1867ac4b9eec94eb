package pedl

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"persia/config/decode"
)

const (
	// Namespace is the namespace of the master and of its database.
	Namespace = "pedl"
	// VolumeName is the name of the database's volume, and of its claim.
	VolumeName = "pedl-postgresql"
)

// AgentTaint keeps other pods off nodes that host agents, which presume that they
// have the whole node. It is also a label, by which agents find their nodes.
var AgentTaint = corev1.Taint{Key: "determined.ai/pedl-agent", Value: "present", Effect: corev1.TaintEffectNoSchedule}

// Platform is PEDL, Determined AI's platform for deep learning, which runs alongside
// the PERSIA jobs: a master with its database, and an agent on each node that has the
// label determined.ai/pedl-agent=present. Left out, or {}, PEDL is not installed.
type Platform struct {
	// MasterImage is the image of the master.
	MasterImage string `json:"masterImage,omitempty" default:"determinedai/pedl-master"`
	// AgentImage is the image of the agents.
	AgentImage  string      `json:"agentImage,omitempty" default:"determinedai/pedl-agent"`
	Agent       Agent       `json:"agent,omitempty"`
	TrialRunner TrialRunner `json:"trialRunner,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent or Never, for master and agents.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" default:"IfNotPresent" enum:"Always,IfNotPresent,Never"`
	// Resources are what the master asks for and may use. Each amount has a
	// default: limits {cpu: 8, memory: 16Gi}, requests {cpu: 4, memory: 8Gi}, but
	// never more than a limit that is given.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodePool is the pool of the master and of its database. Default: the system
	// pool.
	NodePool string `json:"nodePool,omitempty"`
	// NodeSelector are labels that the master's node has beside those of its pool.
	// Default none.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations are taints that the master tolerates beside those of its pool.
	// Default none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	Registry    Registry            `json:"registry"`
	Service     Service             `json:"service,omitempty"`
	Ingress     Ingress             `json:"ingress,omitempty"`
	Postgres    PostgreSQL          `json:"postgresql"`
	// SupportCheck asks whether nodes can run PEDL. Default: nobody asks.
	SupportCheck *SupportCheck `json:"supportCheck,omitempty"`
}

// Agent is the agent that runs on each node with the label
// determined.ai/pedl-agent=present, and starts containers by the node's Docker.
type Agent struct {
	// NodePools are pools of the stack that host agents, on all of their nodes: they
	// get the label and the taint determined.ai/pedl-agent=present. Default none:
	// then nodes are labelled by `kubectl label nodes`.
	NodePools []string `json:"nodePools,omitempty"`
	// EnableCPUScheduling lets agents run trials on CPUs.
	EnableCPUScheduling bool `json:"enableCPUScheduling,omitempty"`
	// Env are environment variables of the agents, which win over those that the
	// program sets. Default none.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Resources are what an agent asks for and may use, without its trials. Each
	// amount has a default: limits {cpu: 1, memory: 2Gi}, requests {cpu: 100m,
	// memory: 256Mi}, but never more than a limit that is given.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Tolerations are taints that the agents tolerate beside
	// determined.ai/pedl-agent=present and those of NodePools. Default
	// nvidia.com/gpu=present:NoSchedule; [] is none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// TrialRunner is the container of a trial, which an agent starts.
type TrialRunner struct {
	// Network is the network mode of Docker: default, bridge, host, or the name of a
	// network.
	Network string `json:"network,omitempty" default:"default"`
	// UID is the user that trials run as. Default: the image's.
	UID *int `json:"uid,omitempty"`
	// GID is the group that trials run as. Default: the image's.
	GID *int `json:"gid,omitempty"`
}

// Registry is where the images of master and agents come from.
type Registry struct {
	// Server is the registry's URL.
	Server string `json:"server,omitempty" default:"https://index.docker.io/v1/"`
	// User is the name of the account.
	User string `json:"user,omitempty" default:"determinedaicustomer"`
	// Password is that of the account, given by `pulumi config set --secret`.
	Password decode.Secret `json:"password"`
	// Email is the address of the account.
	Email string `json:"email,omitempty" default:"hello@determined.ai"`
}

// Service is the service of the master.
type Service struct {
	// Type is `ClusterIP`, `NodePort` or `LoadBalancer`.
	Type corev1.ServiceType `json:"type,omitempty" default:"ClusterIP" enum:"ClusterIP,NodePort,LoadBalancer"`
	// Port is where the master is reached.
	Port int `json:"port,omitempty" default:"8080"`
	// ExternalIPs are addresses outside of the cluster that lead to the service.
	// Default none.
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// NodePort is the port of each node, from 30000 to 32767, for the types
	// `NodePort` and `LoadBalancer`. Default: Kubernetes chooses one.
	NodePort int `json:"nodePort,omitempty"`
	// ClusterIP is the service's address in the cluster. Default: Kubernetes
	// chooses one.
	ClusterIP string `json:"clusterIP,omitempty"`
	// LoadBalancerIP is the address of the load balancer, for that type. Default:
	// the cloud chooses one.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty"`
	// LoadBalancerSourceRanges are the networks, in CIDR notation, that the load
	// balancer lets in. Default: all.
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// Annotations are annotations of the service. Default none.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Ingress leads HTTP from outside of the cluster to the master.
type Ingress struct {
	// Enabled makes an Ingress.
	Enabled bool `json:"enabled,omitempty"`
	// Annotations are annotations of the Ingress, of its class for example. Default
	// none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Hosts are the names that lead to the master. Default: all.
	Hosts []string `json:"hosts,omitempty"`
	// TLS are the certificates of the hosts, in Secrets of the namespace pedl.
	// Default none.
	TLS []networkingv1.IngressTLS `json:"tls,omitempty"`
}

// SupportCheck runs nvidia-smi once, in a container that it has the Docker of a
// node start. The result is an output of the stack.
type SupportCheck struct {
	// NodePool is the GPU pool of the node that is checked.
	NodePool string `json:"nodePool"`
}
