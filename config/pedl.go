package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// Resources are the requests and limits of the master. Each has a default: limits {cpu: 8, memory: 16Gi},
	// requests {cpu: 4, memory: 8Gi}, but no request exceeds a limit that you set.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodePool is the node pool on which the master and its database run. Default: the system pool.
	NodePool string `json:"nodePool,omitempty"`
	// NodeSelector are additional labels that the master's node must have. Default none.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" form:"labels"`
	// Tolerations are taints that the master tolerates, in addition to its pool's. Default none.
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
	// NodePools are the node pools that host agents. All of their nodes get the label and the taint
	// determined.ai/pedl-agent=present. Default none: then label nodes with `kubectl label nodes`.
	NodePools []string `json:"nodePools,omitempty" unique:"true"`
	// EnableCPUScheduling allows agents to run trials on CPUs.
	EnableCPUScheduling bool `json:"enableCPUScheduling,omitempty"`
	// Env are environment variables of the agents, which take precedence over those that
	// the program sets. Default none.
	Env []corev1.EnvVar `json:"env,omitempty" unique:"name"`
	// Resources are the requests and limits of an agent, without its trials. Each has a default: limits {cpu: 1,
	// memory: 2Gi}, requests {cpu: 100m, memory: 256Mi}, but no request exceeds a limit that you set.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Tolerations are taints that the agents tolerate, in addition to determined.ai/pedl-agent=present and the taints
	// of `nodePools`. Default nvidia.com/gpu=present:NoSchedule; write [] for none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// TrialRunner is the container of a trial, which an agent starts.
type TrialRunner struct {
	// Network is the Docker network mode: default, bridge, host, or the name of a network.
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
	ExternalIPs []string `json:"externalIPs,omitempty" unique:"true" form:"address"`
	// NodePort is the port on each node, from 30000 to 32767, for the types `NodePort`
	// and `LoadBalancer`. Default: Kubernetes chooses one.
	NodePort int `json:"nodePort,omitempty" min:"30000" max:"32767"`
	// ClusterIP is the address of the Service in the cluster. Default: Kubernetes chooses one.
	ClusterIP string `json:"clusterIP,omitempty" form:"address"`
	// LoadBalancerIP is the address of the load balancer, for the type `LoadBalancer`.
	// Default: Google Cloud chooses one.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty" form:"address"`
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
	// TLS are the certificates of the hosts, in Secrets in the namespace pedl. Default none.
	TLS []networkingv1.IngressTLS `json:"tls,omitempty"`
}

// SupportCheck runs nvidia-smi once, in a container that it starts through the Docker of
// a node. The result is an output of the stack.
type SupportCheck struct {
	// NodePool is the GPU node pool to check.
	NodePool string `json:"nodePool"`
}

// PostgreSQL is the database of the master: one that the stack runs, or an existing one.
type PostgreSQL struct {
	Image DatabaseImage `json:"image,omitempty"`
	// Resources are the requests and limits. Each has a default: limits {cpu: 8, memory: 32G}, requests
	// {cpu: 4, memory: 16G}, but no request exceeds a limit that you set.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Password is the password of the admin user, postgres, set with `pulumi config set
	// --secret`. Required unless you set `external`.
	Password input.Secret `json:"postgresqlPassword,omitempty"`
	// Database is the name of the database that the stack creates.
	Database string `json:"postgresqlDatabase,omitempty" default:"pedl"`
	// InitdbArgs are arguments of initdb, which creates the database once. Default none.
	InitdbArgs string `json:"postgresqlInitdbArgs,omitempty"`
	// SchedulerName is the scheduler of the database's pod. Default: the cluster's.
	SchedulerName string `json:"schedulerName,omitempty" form:"subdomain"`
	// ExtendedConfig are settings of PostgreSQL in camel case, like maxConnections for max_connections.
	// By default, maxConnections is 2000, and sharedBuffers is 512MB.
	ExtendedConfig map[string]SettingValue `json:"postgresqlExtendedConfig,omitempty"`
	Persistence    Persistence             `json:"persistence,omitempty"`
	Service        DatabaseService         `json:"service,omitempty"`
	// External is an existing database. If you set it, set no other field of postgresql.
	External *ExternalDatabase `json:"external,omitempty"`
}

// DatabaseImage is the image of PostgreSQL: Bitnami's, or one with the same layout.
type DatabaseImage struct {
	// Registry is the registry of the image.
	Registry string `json:"registry,omitempty" default:"docker.io"`
	// Repository is the repository of the image.
	Repository string `json:"repository,omitempty" default:"bitnamilegacy/postgresql"`
	// Tag is the tag of the image.
	Tag string `json:"tag,omitempty" default:"10.23.0-debian-11-r3"`
	// PullPolicy is Always, IfNotPresent, or Never.
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty" default:"IfNotPresent" enum:"Always,IfNotPresent,Never"`
	// PullSecrets are Secrets in the namespace pedl with registry credentials.
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets,omitempty" unique:"name"`
}

// Reference returns the reference of the image.
func (i DatabaseImage) Reference() string { return i.Registry + "/" + i.Repository + ":" + i.Tag }

// SettingValue is the value of a setting of PostgreSQL: a string, a number, or a boolean.
type SettingValue string

// UnmarshalJSON keeps numbers and booleans as the user wrote them.
func (v *SettingValue) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case string:
		*v = SettingValue(value)
	case float64, bool:
		*v = SettingValue(text)
	default:
		return errors.New("must be a string, a number, or true or false")
	}
	return nil
}

// withoutB takes the B from amounts of the database like 32GB, which PEDL's documentation prints.
func withoutB(pedl map[string]any) {
	for _, list := range []string{"limits", "requests"} {
		found, _, _ := unstructured.NestedFieldNoCopy(pedl, "postgresql", "resources", list)
		amounts, _ := found.(map[string]any)
		for name, amount := range amounts {
			text, ok := strings.CutSuffix(fmt.Sprint(amount), "B")
			if _, err := input.ParseQuantity(text); ok && err == nil {
				amounts[name] = text
			}
		}
	}
}

// Persistence is where the database stores its data: a volume of the stack with one source, as in persia:storage; a
// volume of `storageClass`; or the volume of `existingClaim`. If you set none of these, the stack creates a
// Persistent Disk named CLUSTER-pedl-postgresql. On an existing cluster you must set one.
type Persistence struct {
	// Enabled keeps the data. Without it, the data is lost with the pod.
	Enabled bool `json:"enabled,omitempty" default:"true"`
	// ExistingClaim is a PersistentVolumeClaim in the namespace pedl.
	ExistingClaim string `json:"existingClaim,omitempty" form:"subdomain"`
	// StorageClass creates the volume and determines its reclaim policy.
	StorageClass string `json:"storageClass,omitempty" form:"subdomain"`
	// AccessMode is ReadWriteOnce, or ReadWriteMany for storage that is not a disk.
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty" default:"ReadWriteOnce" enum:"ReadWriteOnce,ReadWriteMany"`
	// Annotations are annotations of the volume and its claim. Default none.
	Annotations map[string]string `json:"annotations,omitempty" form:"annotations"`
	// Size is the size of the volume. You can increase it if the stack creates it.
	Size string `json:"size,omitempty" default:"100Gi"`
	// SubPath is the directory of the volume to mount. Default: its root.
	SubPath string `json:"subPath,omitempty" form:"below"`
	// MountPath is where the volume is mounted. The data is in its directory data.
	MountPath string `json:"mountPath,omitempty" default:"/bitnami/postgresql" form:"directory"`

	Sources `json:",inline"`
}

// DatabaseService is the Service of the database.
type DatabaseService struct {
	// ExternalIPs are addresses outside the cluster that lead to the database, which only
	// an existing cluster may have. Default none: then only the master can reach it.
	ExternalIPs []string `json:"externalIPs,omitempty" unique:"true" form:"address"`
	// Port is the port of the database.
	Port int `json:"port,omitempty" default:"5432" max:"65535"`
}

// ExternalDatabase is an existing database.
type ExternalDatabase struct {
	// Host is the address or host name of the database server.
	Host string `json:"host" form:"host"`
	// Port is the port of the database server.
	Port int `json:"port,omitempty" default:"5432" max:"65535"`
	// User is the user that the master connects as.
	User string `json:"user,omitempty" default:"postgres"`
	// Database is the name of the database.
	Database string `json:"database,omitempty" default:"pedl"`
	// Password is the password of the user, set with `pulumi config set --secret`.
	Password input.Secret `json:"password"`
}

// volume returns the volume of the database in the form of persia:storage.
func (d *Persistence) volume() Volume {
	return Volume{
		Name:          PEDLVolume,
		Claim:         PEDLVolume,
		Size:          d.Size,
		AccessModes:   []corev1.PersistentVolumeAccessMode{d.AccessMode},
		ReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		Sources:       d.Sources,
	}
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
	if d.ExtendedConfig == nil {
		d.ExtendedConfig = map[string]SettingValue{}
	}
	for name, value := range map[string]SettingValue{"maxConnections": "2000", "sharedBuffers": "512MB"} {
		if _, written := d.ExtendedConfig[name]; !written {
			d.ExtendedConfig[name] = value
		}
	}
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
	if disk := d.PersistentDisk; disk != nil && disk.Create != nil && len(disk.Zones) == 0 {
		// The pod must run in the zone of its disk.
		if len(pool.Zones) > 0 {
			disk.Zones = pool.Zones[:1:1]
		}
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
