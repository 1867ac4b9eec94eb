package nats

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config/decode"
)

// Settings is the NATS cluster that carries PERSIA's messages. Each job has one of its
// own with these settings, or with what its own nats has instead of them.
type Settings struct {
	// Name is the NatsCluster's name and so that of its client service.
	Name string `json:"name,omitempty" default:"persia-nats-service"`
	// Size is the number of servers.
	Size int `json:"size,omitempty" default:"1"`
	// Version is the release of nats-server, and the tag of Image.
	Version string `json:"version,omitempty" default:"2.10.22"`
	// Image is the image of nats-server without a tag.
	Image string `json:"image,omitempty" default:"nats"`
	// MaxPayload is the largest message in bytes. Default 52428800, which PERSIA
	// needs; nats-server accepts at most 67108864.
	MaxPayload int `json:"maxPayload,omitempty" default:"52428800"`
	// MaxPending is how many bytes a server keeps for a client that is slow to read
	// them, before it cuts the client off. Default four times MaxPayload.
	MaxPending int `json:"maxPending,omitempty"`
	// MaxConnections is how many clients a server takes.
	MaxConnections int `json:"maxConnections,omitempty" default:"65536"`
	// WriteDeadline is how long a server waits for a client to take what it sends, from
	// 1s to 5m.
	WriteDeadline string `json:"writeDeadline,omitempty" default:"10s"`
	// Resources are what one server asks for and may use, cpu and memory at least.
	// Default: 500m of cpu and 1Gi of memory.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodePool is the pool of the servers. Default: the system pool.
	NodePool string `json:"nodePool,omitempty"`
	// AntiAffinity puts each server on a node of its own.
	AntiAffinity bool `json:"antiAffinity,omitempty"`
	// Spread puts servers on different zones and nodes where there is a choice.
	Spread bool `json:"spread,omitempty" default:"true"`
	// Metrics adds an exporter for Prometheus to each server, on port 7777.
	Metrics bool `json:"metrics,omitempty"`
	// ConfigReload adds a container to each server that lets it take changed limits,
	// users and certificates while it runs. Without it, such a change replaces all
	// servers at once.
	ConfigReload bool `json:"configReload,omitempty" default:"true"`
	// Users are those who may connect: the roles of jobs as the first of them, and only
	// if their images can, as credentials of the job's nats says. Default none: then
	// everybody may whom the network policy lets in.
	Users []User `json:"users,omitempty"`
	TLS   TLS    `json:"tls,omitempty"`
	// OperatorScope is whose NatsClusters the NATS operator looks after.
	OperatorScope Scope `json:"operatorScope,omitempty" default:"namespace" enum:"namespace,cluster"`
}

// User is who may connect to NATS.
type User struct {
	// Name is made of letters, digits, dots, hyphens and underscores.
	Name string `json:"name"`
	// Password is given by `pulumi config set --secret`. It is made of letters,
	// digits and -._~, since it stands in a URL.
	Password decode.Secret `json:"password"`
}

// TLS encrypts what goes to and between the servers. Neither is by default.
type TLS struct {
	// Clients is the certificate that a server shows to clients, of the name
	// NAME.nats-io.svc, or *.nats-io.svc for all jobs. Clients must then use TLS.
	Clients *Certificate `json:"clients,omitempty"`
	// Routes is the certificate that servers show to each other, of the name
	// *.NAME-mgmt.nats-io.svc of each job's NATS, for servers and for clients.
	Routes *Certificate `json:"routes,omitempty"`
}

// Certificate is a certificate with its key, each as the text of a PEM file.
type Certificate struct {
	// CA is the certificate of who has signed Certificate.
	CA string `json:"ca" secret:"allowed"`
	// Certificate is the certificate itself, followed by those between it and CA.
	Certificate string `json:"certificate" secret:"allowed"`
	// Key is the private key, given by `pulumi config set --secret`.
	Key decode.Secret `json:"key"`
}

// Scope is whose NatsClusters the NATS operator looks after.
type Scope string

// The scopes of the NATS operator.
const (
	// ScopeNamespace is the namespace nats-io, where the operator needs no right
	// beyond.
	ScopeNamespace Scope = "namespace"
	// ScopeCluster is all namespaces, for other NatsClusters beside the stack's. The
	// operator then reads the Secrets of all namespaces.
	ScopeCluster Scope = "cluster"
)

// Overrides is the NATS of one job. PERSIA's subjects carry no name of a job, so that
// jobs that share a NATS would train on each other's data: each job has its own, which
// nobody else reaches. What is left out here is as in persia:nats.
type Overrides struct {
	// Name is the NatsCluster's name and so that of its client service. Default: the
	// name in persia:nats for the first job of the stack, and JOB-nats for each other.
	Name string `json:"name,omitempty"`
	// Size is the number of servers.
	Size int `json:"size,omitempty"`
	// NodePool is the pool of the servers.
	NodePool string `json:"nodePool,omitempty"`
	// Resources are what one server asks for and may use, cpu and memory at least.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// MaxPayload is the largest message in bytes.
	MaxPayload int `json:"maxPayload,omitempty"`
	// MaxPending is how many bytes a server keeps for a client that is slow to read
	// them.
	MaxPending int `json:"maxPending,omitempty"`
	// MaxConnections is how many clients a server takes.
	MaxConnections int `json:"maxConnections,omitempty"`
	// WriteDeadline is how long a server waits for a client to take what it sends.
	WriteDeadline string `json:"writeDeadline,omitempty"`
	// Credentials says that the images of the job have a client that takes a user and
	// a password from the URL of NATS. The released ones do not. Default false: then
	// persia:nats has no users.
	Credentials bool `json:"credentials,omitempty"`
}

// defaultCPU and defaultMemory are for one server. It holds two clients that are slow.
var defaultCPU, defaultMemory = resource.MustParse("500m"), resource.MustParse("1Gi")

// Resolve fills in what depends on other settings. systemPool is the pool of whatever
// names none.
func (s *Settings) Resolve(systemPool string) {
	if s.MaxPending == 0 {
		s.MaxPending = pendingMessages * s.MaxPayload
	}
	if s.NodePool == "" {
		s.NodePool = systemPool
	}
	if s.Resources.Limits == nil && s.Resources.Requests == nil {
		s.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: defaultCPU, corev1.ResourceMemory: defaultMemory}
	}
}
