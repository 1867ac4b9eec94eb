package config

import (
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"persia/config/volume"
)

// PEDL is Determined AI's platform for deep learning, beside the PERSIA jobs: a
// master with its database, and an agent on each node that has the label
// determined.ai/pedl-agent=present. Left out, or {}, there is none.
type PEDL struct {
	// MasterImage is the image of the master. Default determinedai/pedl-master.
	MasterImage string `json:"masterImage,omitempty"`
	// AgentImage is the image of the agents. Default determinedai/pedl-agent.
	AgentImage  string      `json:"agentImage,omitempty"`
	Agent       PEDLAgent   `json:"agent,omitempty"`
	TrialRunner TrialRunner `json:"trialRunner,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent or Never, for master and agents.
	// Default IfNotPresent.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" values:"Always,IfNotPresent,Never"`
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
	Registry    PEDLRegistry        `json:"registry"`
	Service     PEDLService         `json:"service,omitempty"`
	Ingress     PEDLIngress         `json:"ingress,omitempty"`
	Postgres    PEDLPostgreSQL      `json:"postgresql"`
	// SupportCheck asks whether nodes can run PEDL. Default: nobody asks.
	SupportCheck *PEDLSupportCheck `json:"supportCheck,omitempty"`
}

// PEDLAgent is the agent that runs on each node with the label
// determined.ai/pedl-agent=present, and starts containers by the node's Docker.
type PEDLAgent struct {
	// NodePools are pools of the stack that host agents, on all of their nodes: they
	// get the label and the taint determined.ai/pedl-agent=present. Default none:
	// then nodes are labelled by `kubectl label nodes`.
	NodePools []string `json:"nodePools,omitempty"`
	// EnableCPUScheduling lets agents run trials on CPUs. Default false.
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
	// network. Default default.
	Network string `json:"network,omitempty"`
	// UID is the user that trials run as. Default: the image's.
	UID *int `json:"uid,omitempty"`
	// GID is the group that trials run as. Default: the image's.
	GID *int `json:"gid,omitempty"`
}

// PEDLRegistry is where the images of master and agents come from.
type PEDLRegistry struct {
	// Server is the registry's URL. Default https://index.docker.io/v1/.
	Server string `json:"server,omitempty"`
	// User is the name of the account. Default determinedaicustomer.
	User string `json:"user,omitempty"`
	// Password is that of the account, given by `pulumi config set --secret`.
	Password Secret `json:"password"`
	// Email is the address of the account. Default hello@determined.ai.
	Email string `json:"email,omitempty"`
}

// PEDLService is the service of the master.
type PEDLService struct {
	// Type is `ClusterIP`, `NodePort` or `LoadBalancer`. Default `ClusterIP`.
	Type corev1.ServiceType `json:"type,omitempty" values:"ClusterIP,NodePort,LoadBalancer"`
	// Port is where the master is reached. Default 8080.
	Port int `json:"port,omitempty"`
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

// PEDLIngress leads HTTP from outside of the cluster to the master.
type PEDLIngress struct {
	// Enabled makes an Ingress. Default false.
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

// PEDLPostgreSQL is the database of the master: the stack's own, or one that is
// there.
type PEDLPostgreSQL struct {
	Image PostgreSQLImage `json:"image,omitempty"`
	// Resources are what the database asks for and may use. Each amount has a
	// default: limits {cpu: 8, memory: 32G}, requests {cpu: 4, memory: 16G}, but
	// never more than a limit that is given.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Password is that of the admin user, postgres, given by
	// `pulumi config set --secret`. It is required where External is not given.
	Password Secret `json:"postgresqlPassword,omitempty"`
	// Database is the name of the database that is created. Default pedl.
	Database string `json:"postgresqlDatabase,omitempty"`
	// InitdbArgs are arguments of initdb, which makes the database once. Default
	// none.
	InitdbArgs string `json:"postgresqlInitdbArgs,omitempty"`
	// SchedulerName is the scheduler of the database's pod. Default: the cluster's
	// own.
	SchedulerName string `json:"schedulerName,omitempty"`
	// ExtendedConfig are settings of PostgreSQL in camel case, like maxConnections
	// for max_connections. Default {maxConnections: 2000, sharedBuffers: 512MB}, each
	// by itself.
	ExtendedConfig map[string]PostgreSQLValue `json:"postgresqlExtendedConfig,omitempty"`
	Persistence    PostgreSQLPersistence      `json:"persistence,omitempty"`
	Service        PostgreSQLService          `json:"service,omitempty"`
	// External is a database that is there already. Nothing else is said of
	// PostgreSQL then.
	External *ExternalPostgreSQL `json:"external,omitempty"`
}

// PostgreSQLImage is the image of PostgreSQL, Bitnami's or one that is made like it.
type PostgreSQLImage struct {
	// Registry is the image's registry. Default docker.io.
	Registry string `json:"registry,omitempty"`
	// Repository is the image's repository. Default bitnami/postgresql.
	Repository string `json:"repository,omitempty"`
	// Tag is the image's tag. Default 10.8.0.
	Tag string `json:"tag,omitempty"`
	// PullPolicy is Always, IfNotPresent or Never. Default IfNotPresent.
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty" values:"Always,IfNotPresent,Never"`
	// PullSecrets are Secrets of the namespace pedl with the credentials of the
	// registry. Default none.
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets,omitempty"`
}

// PostgreSQLValue is the value of a setting of PostgreSQL: a text, a number, or
// true or false.
type PostgreSQLValue string

// UnmarshalJSON takes numbers and booleans as they are written.
func (v *PostgreSQLValue) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case string:
		*v = PostgreSQLValue(value)
	case float64, bool:
		*v = PostgreSQLValue(text)
	default:
		return errors.New("must be a text, a number, or true or false")
	}
	return nil
}

// PostgreSQLPersistence is where the database's data is: on a volume of the stack,
// like those of persia:storage, with one source; on a volume of StorageClass; or on
// that of ExistingClaim. Without any of them the stack creates a Persistent Disk
// called CLUSTER-pedl-postgresql, which outlives it; on an existing cluster one must
// be given.
type PostgreSQLPersistence struct {
	// Enabled keeps the data. Without it the data goes with the pod. Default true.
	Enabled *bool `json:"enabled,omitempty"`
	// ExistingClaim is a PersistentVolumeClaim of the namespace pedl.
	ExistingClaim string `json:"existingClaim,omitempty"`
	// StorageClass makes the volume, and decides what becomes of it.
	StorageClass string `json:"storageClass,omitempty"`
	// AccessMode is ReadWriteOnce, or ReadWriteMany for what is no disk. Default
	// ReadWriteOnce.
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty" values:"ReadWriteOnce,ReadWriteMany"`
	// Annotations are annotations of the volume and of its claim. Default none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Size is the volume's size. It can grow where it is the stack's own. Default
	// 100Gi.
	Size string `json:"size,omitempty"`
	// SubPath is the directory of the volume that is mounted. Default: its root.
	SubPath string `json:"subPath,omitempty"`
	// MountPath is where the volume is mounted, and the data in its directory data.
	// Default /bitnami/postgresql.
	MountPath string `json:"mountPath,omitempty"`

	volume.Sources `json:",inline"`
}

// PostgreSQLService is the service of the database.
type PostgreSQLService struct {
	// ExternalIPs are addresses outside of the cluster that lead to the database.
	// Default none: then nobody but the master reaches it.
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// Port is where the database is reached. Default 5432.
	Port int `json:"port,omitempty"`
}

// ExternalPostgreSQL is a database that is there already.
type ExternalPostgreSQL struct {
	// Host is its address or its name.
	Host string `json:"host"`
	// Port is its port. Default 5432.
	Port int `json:"port,omitempty"`
	// User is the user that the master connects as. Default postgres.
	User string `json:"user,omitempty"`
	// Database is the name of the database. Default pedl.
	Database string `json:"database,omitempty"`
	// Password is the user's, given by `pulumi config set --secret`.
	Password Secret `json:"password"`
}

// PEDLSupportCheck runs nvidia-smi once, in a container that it has the Docker of a
// node start. The result is an output of the stack.
type PEDLSupportCheck struct {
	// NodePool is the GPU pool of the node that is checked.
	NodePool string `json:"nodePool"`
}
