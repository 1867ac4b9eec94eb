package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	"persia/capacity"
	"persia/config/input"
)

// NATS are the settings of NATS, which carries PERSIA's messages. Each job has its
// own NATS cluster with these settings. A job's own nats overrides them.
type NATS struct {
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
	Users []NATSUser `json:"users,omitempty"`
	TLS   TLS        `json:"tls,omitempty"`
	// OperatorScope is where the NATS operator manages NatsClusters: in the namespace nats-io only, or
	// in the cluster, that is in all namespaces, whose Secrets it can then read.
	OperatorScope OperatorScope `json:"operatorScope,omitempty" default:"namespace" enum:"namespace,cluster"`
}

// NATSUser is a user that may connect to NATS.
type NATSUser struct {
	// Name consists of letters, digits, dots, hyphens, and underscores.
	Name string `json:"name"`
	// Password is set with `pulumi config set --secret`. It consists of letters, digits,
	// and -._~, because it is part of a URL.
	Password input.Secret `json:"password"`
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
	Key input.Secret `json:"key"`
}

// OperatorScope determines which NatsClusters the NATS operator manages.
type OperatorScope string

// The scopes of the NATS operator.
const (
	// ScopeNamespace is the namespace nats-io only.
	ScopeNamespace OperatorScope = "namespace"
	// ScopeCluster is all namespaces, whose Secrets the operator can then read, for NatsClusters
	// that do not belong to the stack.
	ScopeCluster OperatorScope = "cluster"
)

// NATSOverrides are the settings of one job's NATS. Each job has its own NATS cluster, with the
// settings of persia:nats and these overrides.
type NATSOverrides struct {
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
func (s *NATS) Resolve(systemPool string) {
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

const (
	// NATSNamespace is the namespace of the NATS operator and of the servers.
	NATSNamespace = "nats-io"
	// NATSPort is the port of servers for clients.
	NATSPort = 4222
	// NATSOperatorName is the name of the operator's objects in the namespace.
	NATSOperatorName = "nats-operator"
)

// NATSCluster is a NATS cluster that the stack runs.
type NATSCluster struct {
	NATS
	// Job is the only job that uses the cluster. It is empty in a stack without jobs, whose
	// cluster is for other clients.
	Job string

	at      *field.Path
	own     NATSOverrides
	clients int
}

// Clusters returns the NATS cluster of each job, in their order, or one cluster if there are
// no jobs. PERSIA's subjects do not contain the name of the job, so two jobs that shared a
// NATS would train on each other's data. The cluster of the first job has the name in the
// settings, which PERSIA has published.
func (s NATS) Clusters(jobs []Job) []NATSCluster {
	if len(jobs) == 0 {
		return []NATSCluster{{NATS: s}}
	}
	clusters := make([]NATSCluster, len(jobs))
	for i := range jobs {
		job, name := &jobs[i], s.Name
		if i > 0 {
			name = job.Name + "-nats"
		}
		clusters[i] = NATSCluster{
			NATS:    s.with(job.NATS, name),
			Job:     job.Name,
			at:      job.at.Child("nats"),
			own:     job.NATS,
			clients: job.Processes(),
		}
	}
	return clusters
}

// with returns the settings with the overrides of a job, and a default name.
func (s NATS) with(o NATSOverrides, name string) NATS {
	s.Name = cmp.Or(o.Name, name)
	s.Size = cmp.Or(o.Size, s.Size)
	s.NodePool = cmp.Or(o.NodePool, s.NodePool)
	if o.Resources.Limits != nil || o.Resources.Requests != nil {
		s.Resources = o.Resources
	}
	if o.MaxPayload != 0 && s.MaxPending == pendingMessages*s.MaxPayload {
		s.MaxPending = pendingMessages * o.MaxPayload
	}
	s.MaxPayload = cmp.Or(o.MaxPayload, s.MaxPayload)
	s.MaxPending = cmp.Or(o.MaxPending, s.MaxPending)
	s.MaxConnections = cmp.Or(o.MaxConnections, s.MaxConnections)
	s.WriteDeadline = cmp.Or(o.WriteDeadline, s.WriteDeadline)
	return s
}

// IsOwn reports whether the job overrides settings.
func (c *NATSCluster) IsOwn() bool {
	o := c.own
	return o.Name != "" || o.Size != 0 || o.NodePool != "" || o.Resources.Limits != nil || o.Resources.Requests != nil ||
		o.MaxPayload != 0 || o.MaxPending != 0 || o.MaxConnections != 0 || o.WriteDeadline != ""
}

// At returns the path of the job's overrides.
func (c *NATSCluster) At() *field.Path { return c.at }

// pathOf returns the path of a setting: below the job's overrides if own, or else below the
// settings.
func (c *NATSCluster) pathOf(settings *field.Path, name string, own bool) *field.Path {
	if own {
		return c.at.Child(name)
	}
	return settings.Child(name)
}

// NamePath returns the path of the name.
func (c *NATSCluster) NamePath(settings *field.Path) *field.Path {
	return c.pathOf(settings, "name", c.own.Name != "")
}

// PoolPath returns the path of the node pool.
func (c *NATSCluster) PoolPath(settings *field.Path) *field.Path {
	return c.pathOf(settings, "nodePool", c.own.NodePool != "")
}

// ResourcesPath returns the path of the resources of a server.
func (c *NATSCluster) ResourcesPath(settings *field.Path) *field.Path {
	return c.pathOf(settings, "resources", c.own.Resources.Limits != nil || c.own.Resources.Requests != nil)
}

// Host returns the DNS name of the Service for clients.
func (s *NATS) Host() string {
	return fmt.Sprintf("%s.%s.svc", s.Name, NATSNamespace)
}

// firstServer returns the DNS name of the first server for other servers.
func (s *NATS) firstServer() string {
	return fmt.Sprintf("%s-1.%s-mgmt.%s.svc", s.Name, s.Name, NATSNamespace)
}

// Requests returns the resource requests of a server's pod.
func (s *NATS) Requests() capacity.Resources {
	r := PodRequests(s.Resources)
	if s.ConfigReload {
		r = r.Plus(capacity.NATSReloader)
	}
	return r
}

// natsAnswers reports whether a URL without credentials leads to the cluster with a name.
func natsAnswers(name, text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "nats" || u.User != nil || u.Port() != "" && u.Port() != strconv.Itoa(NATSPort) {
		return false
	}
	short := name + "." + NATSNamespace
	return slices.Contains([]string{name, short, short + ".svc", short + ".svc.cluster.local"}, u.Hostname())
}

// NATSClusters returns the NATS cluster of each job, in their order, or one cluster if the
// stack has no jobs.
func (s *Stack) NATSClusters() []NATSCluster { return s.NATS.Clusters(s.Jobs) }

func (s *Stack) checkNATS(p *input.Problems) {
	path, clusters := field.NewPath(natsKey), s.NATSClusters()
	checkNATSClusters(p, path, s.NATS, clusters)
	pools := append(s.poolNames(), s.SystemPoolName())
	s.checkAssignment(p, path, "a NATS server", s.NATS.NodePool, s.NATS.Resources, pools, false)
	for _, cluster := range clusters {
		if cluster.IsOwn() {
			s.checkAssignment(p, cluster.At(), "a NATS server", cluster.NodePool, cluster.Resources, pools, false)
		}
	}
}

// natsVariables contain the address of NATS for PERSIA: the current name, and the name in older
// releases.
var natsVariables = []string{"PERSIA_NATS_URL", "PERSIA_NATS_IP"}

// dropNATSVariables removes the address of the job's own NATS from the variables of jobs,
// because the program sets it. Manifests have it, by the published name or the job's own.
func (s *Stack) dropNATSVariables() {
	if len(s.Jobs) == 0 {
		return
	}
	for i, cluster := range s.NATSClusters() {
		job := &s.Jobs[i]
		own := func(e corev1.EnvVar) bool {
			return slices.Contains(natsVariables, e.Name) && e.ValueFrom == nil &&
				(natsAnswers(cluster.Name, e.Value) || natsAnswers(s.NATS.Name, e.Value))
		}
		job.Env = slices.DeleteFunc(job.Env, own)
		for _, role := range job.Roles() {
			role.Env = slices.DeleteFunc(role.Env, own)
		}
	}
}

// longestNATSName leaves room for the names that the NATS operator derives: the Service NAME-mgmt
// and the pods NAME-1, NAME-2 and so on.
const longestNATSName = 50

// oldestVersion is the oldest release of nats-server that the program supports.
var oldestVersion = version.MustParseSemantic("2.2.0")

var versionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// checkNATSClusters checks the settings that all clusters of a stack share, and each cluster. The path is
// of the settings. It does not check whether servers fit the nodes of their pools.
func checkNATSClusters(p *input.Problems, path *field.Path, s NATS, clusters []NATSCluster) {
	checkOwn(p, path, s)
	checkVersion(p, path.Child("version"), s.Version)
	if named, err := reference.ParseNormalizedNamed(s.Image); err != nil || !reference.IsNameOnly(named) {
		p.Invalid(path.Child("image"), s.Image, "must be an image reference without a tag, like nats or registry.example.com/nats; the tag is version")
	}
	checkNATSUsers(p, path.Child("users"), s.Users)
	for _, c := range clusters {
		checkCluster(p, path, c, len(s.Users) > 0)
	}
	input.Unique(clusters, func(c NATSCluster) string { return c.Name }, func(i, first int, name string) {
		p.Duplicate(clusters[i].at.Child("name"), name, "is already used by the NATS of %s; give each job its own", clusters[first].Job)
	})
}

// mostServers is many times the largest published cluster of PERSIA, which has 60 servers.
const mostServers = 1000

// checkOwn checks the settings that a job can override.
func checkOwn(p *input.Problems, path *field.Path, s NATS) {
	if s.Size < 1 {
		p.Invalid(path.Child("size"), s.Size, "must be at least 1; write the number of servers")
	}
	if s.Size > mostServers {
		p.Invalid(path.Child("size"), s.Size, "must be at most %d, because each server of NATS connects to every other; write the number of servers", mostServers)
	}
	checkNoGPUs(p, path.Child("resources"), "a NATS server", s.Resources)
	checkLimits(p, path, s)
}

// checkCluster checks one cluster: the job's overrides, the name, the number of clients, and
// whether the certificates are valid for it.
func checkCluster(p *input.Problems, path *field.Path, c NATSCluster, users bool) {
	name := c.NamePath(path)
	p.Name(name, c.Name, validation.IsDNS1035Label)
	p.AtMost(longestNATSName, name, c.Name, "so that the names of its services and pods fit")
	if c.Name == NATSOperatorName {
		p.Invalid(name, c.Name, "is the name of the NATS operator in the same namespace; choose another name")
	}
	if c.IsOwn() {
		checkOwn(p, c.at, c.NATS)
	}
	if c.Size >= 1 && c.MaxConnections >= 1 && c.MaxConnections < c.clients {
		p.Invalid(c.pathOf(path, "maxConnections", c.own.MaxConnections != 0), c.MaxConnections,
			"the job %s has %d processes, and all of them may come to one server; write at least that many", c.Job, c.clients)
	}
	if users && c.Job != "" && !c.own.Credentials {
		p.Forbidden(path.Child("users"), "would lock out the job %s, because PERSIA's client cannot use credentials in a URL; remove users (the network policy admits no other pods), or write %s: true if the client in the job's images can",
			c.Job, c.at.Child("credentials"))
	}
	checkCertificate(p, path.Child("tls", "clients"), c.TLS.Clients, c.Host())
	checkCertificate(p, path.Child("tls", "routes"), c.TLS.Routes, c.firstServer())
}

func checkVersion(p *input.Problems, path *field.Path, text string) {
	if !versionForm.MatchString(text) {
		p.Invalid(path, text, "must be a version of nats-server as MAJOR.MINOR.PATCH in quotes, like \"2.10.22\"")
		return
	}
	if version.MustParseSemantic(text).LessThan(oldestVersion) {
		p.Invalid(path, text, "must be %s or later; omit it for the default", oldestVersion)
	}
}

const (
	// mostPayload is the largest max_payload that nats-server accepts, in bytes.
	mostPayload = 64 << 20
	// persiaPayload is the size of the largest message of PERSIA, in bytes.
	persiaPayload = 50 << 20
	// pendingMessages is the default of maxPending, in messages of maxPayload. The default
	// of nats-server, 64 MiB, holds only one message of PERSIA, so a server would disconnect
	// a client that is two messages behind.
	pendingMessages = 4
	// serverProcess is the memory of a server without messages.
	serverProcess = 64 * capacity.MiB
)

// checkLimits checks each limit, and if they are valid, checks them against each other.
func checkLimits(p *input.Problems, path *field.Path, s NATS) {
	before := p.Count()
	input.Range(p, path.Child("maxPayload"), s.MaxPayload, 1, mostPayload, " bytes, the limit of nats-server; omit it for 52428800, which PERSIA needs")
	if s.MaxPayload >= 1 && s.MaxPayload < persiaPayload {
		p.Warn(path.Child("maxPayload"), "%d bytes are less than the %d that a message of PERSIA may have, and NATS disconnects a client that sends more; omit it", s.MaxPayload, persiaPayload)
	}
	if s.MaxConnections < 1 {
		p.Invalid(path.Child("maxConnections"), s.MaxConnections, "must be at least 1; omit it for 65536")
	}
	checkWriteDeadline(p, path.Child("writeDeadline"), s.WriteDeadline)
	if p.Count() > before {
		return
	}
	if s.MaxPending < s.MaxPayload {
		p.Invalid(path.Child("maxPending"), s.MaxPending, "must be at least maxPayload, %d, or nats-server does not start; omit it for four messages of that size", s.MaxPayload)
		return
	}
	checkMemory(p, path.Child("resources"), s)
}

func checkWriteDeadline(p *input.Problems, path *field.Path, text string) {
	deadline, err := time.ParseDuration(text)
	if err != nil || deadline < time.Second || deadline > 5*time.Minute {
		p.Invalid(path, text, "must be a time from 1s to 5m, like 10s; for that long, a server keeps up to maxPending bytes for a client")
	}
}

// checkMemory checks that a server has memory for what it buffers for one slow client, for a
// message from a client, and for a message from another server. It cannot know how many slow
// clients there will be.
func checkMemory(p *input.Problems, path *field.Path, s NATS) {
	memory, at, ok := limitAmount(path, s.Resources, corev1.ResourceMemory)
	needed := resource.NewQuantity(serverProcess+int64(s.MaxPending)+2*int64(s.MaxPayload), resource.BinarySI)
	if ok && memory.Sign() > 0 && memory.Cmp(*needed) < 0 {
		p.Invalid(at, memory.String(), "is less than %dMi, which a server with one slow client needs: maxPending, two messages of maxPayload, and 64Mi; increase it, or lower those limits",
			(needed.Value()+capacity.MiB-1)/capacity.MiB)
	}
}

// passwordForm matches passwords that need no escaping in a URL, because not every client
// unescapes them.
var passwordForm = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

func checkNATSUsers(p *input.Problems, path *field.Path, users []NATSUser) {
	for i, user := range users {
		at := path.Index(i)
		p.Name(at.Child("name"), user.Name, validation.IsConfigMapKey) // a key of a Secret
		checkPassword(p, at.Child("password"), user.Password)
	}
	input.UniqueField(p, path, "name", users, func(u NATSUser) string { return u.Name }, "is already used by users[%d]; give each user its own name")
}

func checkPassword(p *input.Problems, path *field.Path, password input.Secret) {
	switch {
	case password == "":
		p.Required(path, "write it with pulumi config set --secret --path '%s'", path)
	case !passwordForm.MatchString(string(password)):
		invalidSecret(p, path, "must consist of letters, digits, and -._~, because it is part of a URL; choose another, for example with `openssl rand -hex 24`")
	}
}

// checkCertificate checks that a server can present a certificate to clients that connect to
// host.
func checkCertificate(p *input.Problems, path *field.Path, c *Certificate, host string) {
	if c == nil {
		return
	}
	before := p.Count()
	for _, part := range []struct{ name, text string }{
		{"ca", c.CA}, {"certificate", c.Certificate}, {"key", string(c.Key)},
	} {
		if part.text == "" {
			p.Required(path.Child(part.name), "write the text of a PEM file, with pulumi config set --secret --path '%s'", path.Child(part.name))
		}
	}
	if p.Count() > before {
		return
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM([]byte(c.CA)) {
		invalidSecret(p, path.Child("ca"), "contains no certificate; write the text of a PEM file")
		return
	}
	pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		invalidSecret(p, path.Child("certificate"), "and key are not a matching pair of PEM texts; set both again")
		return
	}
	certificateFits(p, path.Child("certificate"), pair.Leaf, chain(pair), authorities, host)
	for _, part := range []struct{ name, text string }{{"ca", c.CA}, {"certificate", c.Certificate}} {
		warnOfDates(p, path.Child(part.name), part.text, time.Now())
	}
}

// warnOfDates warns of certificates that have ended, or that begin later.
func warnOfDates(p *input.Problems, path *field.Path, text string, now time.Time) {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
		case certificate.NotAfter.Before(now):
			p.Warn(path, "the certificate of %q ended on %s, and no client accepts it; set a new one", certificate.Subject, day(certificate.NotAfter))
		case certificate.NotBefore.After(now):
			p.Warn(path, "the certificate of %q begins on %s, and no client accepts it before; set one that is valid now", certificate.Subject, day(certificate.NotBefore))
		}
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// certificateFits checks everything but the dates: a stack that is valid today must not be
// refused tomorrow.
func certificateFits(p *input.Problems, path *field.Path, leaf *x509.Certificate, chain, authorities *x509.CertPool, host string) {
	if leaf.VerifyHostname(host) != nil {
		invalidSecret(p, path, "must be valid for %s; create one with that name, or a wildcard for it, among its DNS names", host)
		return
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: authorities, Intermediates: chain, CurrentTime: leaf.NotBefore})
	if err != nil {
		invalidSecret(p, path, "is not signed by ca for server authentication; append the intermediate certificates")
	}
}

// chain returns the certificates that follow the first one.
func chain(pair tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool
}

// invalidSecret refuses a value without printing it.
func invalidSecret(p *input.Problems, path *field.Path, format string, args ...any) {
	p.Invalid(path, field.OmitValueType{}, format, args...)
}
