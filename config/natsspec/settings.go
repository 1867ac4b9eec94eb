package natsspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config/decode"
)

// Settings are the settings of NATS, which carries PERSIA's messages. Each job has its
// own NATS cluster with these settings. A job's own nats overrides them.
type Settings struct {
	// Name is the name of the NatsCluster and of the Service that clients connect to.
	Name string `json:"name,omitempty" default:"persia-nats-service"`
	// Size is the number of servers.
	Size int `json:"size,omitempty" default:"1"`
	// Version is the version of nats-server, which is also the tag of Image.
	Version string `json:"version,omitempty" default:"2.10.22"`
	// Image is the image of nats-server, without a tag.
	Image string `json:"image,omitempty" default:"nats"`
	// MaxPayload is the size of the largest message in bytes. Default 52428800, which
	// PERSIA needs; nats-server accepts at most 67108864.
	MaxPayload int `json:"maxPayload,omitempty" default:"52428800"`
	// MaxPending is the number of bytes that a server buffers for a slow client before it
	// disconnects the client. Default four times MaxPayload.
	MaxPending int `json:"maxPending,omitempty"`
	// MaxConnections is the number of clients that a server accepts.
	MaxConnections int `json:"maxConnections,omitempty" default:"65536"`
	// WriteDeadline is how long a server waits for a client to read data. Default 10s; from 1s
	// to 5m.
	WriteDeadline string `json:"writeDeadline,omitempty" default:"10s"`
	// Resources are the requests and limits of one server. At least cpu and memory are
	// required. Default: 500m of cpu and 1Gi of memory.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// NodePool is the node pool on which the servers run. Default: the system pool.
	NodePool string `json:"nodePool,omitempty"`
	// AntiAffinity runs each server on a different node.
	AntiAffinity bool `json:"antiAffinity,omitempty"`
	// Spread distributes the servers across zones and nodes where possible.
	Spread bool `json:"spread,omitempty" default:"true"`
	// Metrics adds a Prometheus exporter to each server, on port 7777.
	Metrics bool `json:"metrics,omitempty"`
	// ConfigReload adds a container to each server that applies changed limits, users, and
	// certificates without a restart.
	ConfigReload bool `json:"configReload,omitempty" default:"true"`
	// Users are the users that may connect. The roles of a job connect as the first one, which
	// its nats.credentials must allow.
	Users []User `json:"users,omitempty"`
	TLS   TLS    `json:"tls,omitempty"`
	// OperatorScope determines which NatsClusters the NATS operator manages.
	OperatorScope Scope `json:"operatorScope,omitempty" default:"namespace" enum:"namespace,cluster"`
}

// User is a user that may connect to NATS.
type User struct {
	// Name consists of letters, digits, dots, hyphens, and underscores.
	Name string `json:"name"`
	// Password is set with `pulumi config set --secret`. It consists of letters, digits,
	// and -._~, because it is part of a URL.
	Password decode.Secret `json:"password"`
}

// TLS encrypts the connections of clients, and connections between servers. By default, neither is
// encrypted.
type TLS struct {
	// Clients is the certificate for clients, which must then use TLS. Its name is
	// NAME.nats-io.svc, or *.nats-io.svc to cover all jobs.
	Clients *Certificate `json:"clients,omitempty"`
	// Routes is the certificate that servers present to each other, as servers and as
	// clients. Its name is *.NAME-mgmt.nats-io.svc.
	Routes *Certificate `json:"routes,omitempty"`
}

// Certificate is a certificate and its key. Each value is the text of a PEM file.
type Certificate struct {
	// CA is the certificate of the authority that signed Certificate.
	CA string `json:"ca" secret:"allowed"`
	// Certificate is the certificate, followed by the intermediate certificates between
	// it and CA.
	Certificate string `json:"certificate" secret:"allowed"`
	// Key is the private key, set with `pulumi config set --secret`.
	Key decode.Secret `json:"key"`
}

// Scope determines which NatsClusters the NATS operator manages.
type Scope string

// The scopes of the NATS operator.
const (
	// ScopeNamespace is the namespace nats-io only.
	ScopeNamespace Scope = "namespace"
	// ScopeCluster is all namespaces, whose Secrets the operator can then read, for NatsClusters
	// that do not belong to the stack.
	ScopeCluster Scope = "cluster"
)

// Overrides are the settings of one job's NATS. Each job has its own NATS cluster, with the
// settings of persia:nats and these overrides.
type Overrides struct {
	// Name is the name of the NatsCluster and of the Service for clients. Default: the name in
	// persia:nats for the first job, and JOB-nats for the others.
	Name string `json:"name,omitempty"`
	// Size is the number of servers.
	Size int `json:"size,omitempty"`
	// NodePool is the node pool on which the servers run.
	NodePool string `json:"nodePool,omitempty"`
	// Resources are the requests and limits of one server. At least cpu and memory are
	// required.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// MaxPayload is the size of the largest message in bytes.
	MaxPayload int `json:"maxPayload,omitempty"`
	// MaxPending is the number of bytes that a server buffers for a slow client before it
	// disconnects the client.
	MaxPending int `json:"maxPending,omitempty"`
	// MaxConnections is the number of clients that a server accepts.
	MaxConnections int `json:"maxConnections,omitempty"`
	// WriteDeadline is how long a server waits for a client to read data.
	WriteDeadline string `json:"writeDeadline,omitempty"`
	// Credentials states that the NATS client in the job's images accepts a user and a password in
	// the URL, which the released client does not. Default false: then persia:nats must not have
	// users.
	Credentials bool `json:"credentials,omitempty"`
}

// defaultCPU and defaultMemory are for one server, with memory for two slow clients.
var defaultCPU, defaultMemory = resource.MustParse("500m"), resource.MustParse("1Gi")

// Resolve fills in defaults that depend on other settings and on the name of the system pool.
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
