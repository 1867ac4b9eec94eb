package pedlspec

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

// AgentTaint keeps other pods off nodes with agents, which expect to have their nodes to
// themselves. It is also the label by which agents select nodes.
var AgentTaint = corev1.Taint{Key: "determined.ai/pedl-agent", Value: "present", Effect: corev1.TaintEffectNoSchedule}

// Platform is PEDL, Determined AI's deep learning platform, which runs alongside the
// PERSIA jobs: a master with its database, and an agent on each node with the label
// determined.ai/pedl-agent=present. If you omit it or write {}, PEDL is not installed.
type Platform struct {
	// MasterImage is the image of the master.
	MasterImage string `json:"masterImage,omitempty" default:"determinedai/pedl-master"`
	// AgentImage is the image of the agents.
	AgentImage  string      `json:"agentImage,omitempty" default:"determinedai/pedl-agent"`
	Agent       Agent       `json:"agent,omitempty"`
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
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations are taints that the master tolerates, in addition to its pool's. Default
	// none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	Registry    Registry            `json:"registry"`
	Service     Service             `json:"service,omitempty"`
	Ingress     Ingress             `json:"ingress,omitempty"`
	Postgres    PostgreSQL          `json:"postgresql"`
	// SupportCheck checks whether a node can run PEDL. Default: no check.
	SupportCheck *SupportCheck `json:"supportCheck,omitempty"`
}

// Agent is the agent that runs on each node with the label
// determined.ai/pedl-agent=present. It starts containers through the node's Docker.
type Agent struct {
	// NodePools are the node pools that host agents. All of their nodes get the label and
	// the taint determined.ai/pedl-agent=present. Default none: then label nodes with
	// `kubectl label nodes`.
	NodePools []string `json:"nodePools,omitempty"`
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
	// determined.ai/pedl-agent=present and the taints of NodePools. Default
	// nvidia.com/gpu=present:NoSchedule; write [] for none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// TrialRunner is the container of a trial, which an agent starts.
type TrialRunner struct {
	// Network is the Docker network mode: default, bridge, host, or the name of a
	// network.
	Network string `json:"network,omitempty" default:"default"`
	// UID is the user that trials run as. Default: the user of the image.
	UID *int `json:"uid,omitempty"`
	// GID is the group that trials run as. Default: the group of the image.
	GID *int `json:"gid,omitempty"`
}

// Registry is the registry from which the images of the master and the agents are pulled.
type Registry struct {
	// Server is the URL of the registry.
	Server string `json:"server,omitempty" default:"https://index.docker.io/v1/"`
	// User is the name of the account.
	User string `json:"user,omitempty" default:"determinedaicustomer"`
	// Password is the password of the account, set with `pulumi config set --secret`.
	Password decode.Secret `json:"password"`
	// Email is the email address of the account.
	Email string `json:"email,omitempty" default:"hello@determined.ai"`
}

// Service is the Service of the master.
type Service struct {
	// Type is `ClusterIP`, `NodePort`, or `LoadBalancer`.
	Type corev1.ServiceType `json:"type,omitempty" default:"ClusterIP" enum:"ClusterIP,NodePort,LoadBalancer"`
	// Port is the port of the master.
	Port int `json:"port,omitempty" default:"8080"`
	// ExternalIPs are addresses outside the cluster that lead to the Service, which only
	// an existing cluster may have. Default none.
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// NodePort is the port on each node, from 30000 to 32767, for the types `NodePort`
	// and `LoadBalancer`. Default: Kubernetes chooses one.
	NodePort int `json:"nodePort,omitempty"`
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
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Ingress routes HTTP requests from outside the cluster to the master.
type Ingress struct {
	// Enabled creates an Ingress.
	Enabled bool `json:"enabled,omitempty"`
	// Annotations are annotations of the Ingress, for example its class. Default none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Hosts are the host names that lead to the master. Default: all.
	Hosts []string `json:"hosts,omitempty"`
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
