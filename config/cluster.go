package config

import (
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// Cluster is the GKE cluster and its network. The stack creates them, or, with Existing,
// uses an existing cluster.
type Cluster struct {
	// Name is the name of the cluster, and the prefix of the names of its network, router,
	// and node service account.
	Name string `json:"name"`
	// Existing describes an existing cluster to use. The stack then changes nothing in Google Cloud,
	// and of the other fields only Name and Replace apply.
	Existing *ExistingCluster `json:"existing,omitempty"`
	// Region is a Google Cloud region, like us-central1. GKE spreads the replicas of
	// the control plane over its zones.
	Region string `json:"region"`
	// Zones are zones of the region, like us-central1-a, for the system pool and for
	// pools that do not set their own. Default: three that GKE chooses.
	Zones []string `json:"zones,omitempty"`
	// ReleaseChannel is RAPID, REGULAR or STABLE.
	ReleaseChannel string `json:"releaseChannel,omitempty" default:"REGULAR" enum:"RAPID,REGULAR,STABLE"`
	// DeletionProtection prevents Pulumi and GKE from deleting the cluster, and Pulumi from
	// deleting or replacing its node pools.
	DeletionProtection bool `json:"deletionProtection,omitempty" default:"true"`
	// Replace is the name of a cluster that an update may replace although jobs run in it.
	// Default: none.
	Replace     string      `json:"replace,omitempty"`
	Maintenance Maintenance `json:"maintenance,omitempty"`

	// PrivateNodes creates nodes without public addresses, which reach the internet
	// through Cloud NAT. It cannot be changed later.
	PrivateNodes bool `json:"privateNodes,omitempty" default:"true"`
	// PrivateEndpoint removes the public endpoint of the control plane. It requires
	// private nodes, and Pulumi must run inside the network.
	PrivateEndpoint bool `json:"privateEndpoint,omitempty"`
	// AuthorizedNetworks are the networks that may reach the control plane. Default:
	// only the cluster's own network.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	// DataplaneV2 selects GKE's datapath based on eBPF, which enforces network
	// policies. It cannot be changed later.
	DataplaneV2 bool `json:"dataplaneV2,omitempty" default:"true"`
	// DNS is CLOUD_DNS, served by every node, or KUBE_DNS, served by pods.
	DNS string `json:"dns,omitempty" default:"CLOUD_DNS" enum:"CLOUD_DNS,KUBE_DNS"`

	// WorkloadIdentity gives each pod its own identity in Google Cloud. Without it,
	// pods act as their node.
	WorkloadIdentity bool `json:"workloadIdentity,omitempty" default:"true"`
	// NodeRoles are additional IAM roles that nodes get in the project. They always get two, to
	// write logs and metrics and to pull images. Default none.
	NodeRoles []string `json:"nodeRoles,omitempty"`
	// ShieldedNodes lets the control plane verify that a node is a machine of the
	// cluster.
	ShieldedNodes bool `json:"shieldedNodes,omitempty" default:"true"`
	// BinaryAuthorization admits only images that the policy of the project allows.
	BinaryAuthorization bool `json:"binaryAuthorization,omitempty" default:"true"`
	// SecurityPosture is BASIC, which audits workloads, or DISABLED.
	SecurityPosture string     `json:"securityPosture,omitempty" default:"BASIC" enum:"BASIC,DISABLED"`
	Encryption      Encryption `json:"encryption,omitempty"`

	SystemPool SystemPool `json:"systemPool,omitempty"`
	// AutoscalingProfile is OPTIMIZE_UTILIZATION, which removes idle nodes quickly,
	// or BALANCED.
	AutoscalingProfile string `json:"autoscalingProfile,omitempty" default:"OPTIMIZE_UTILIZATION" enum:"OPTIMIZE_UTILIZATION,BALANCED"`
	// ImageStreaming starts containers before their image is fully pulled. It works for Artifact
	// Registry, also through persia:images, on Container-Optimized OS. A change replaces the node
	// pools.
	ImageStreaming bool       `json:"imageStreaming,omitempty" default:"true"`
	CSIDrivers     CSIDrivers `json:"csiDrivers,omitempty"`
	Logging        Logging    `json:"logging,omitempty"`
	Monitoring     Monitoring `json:"monitoring,omitempty"`
	// CostManagement breaks the bill down by namespace and label.
	CostManagement bool   `json:"costManagement,omitempty" default:"true"`
	Backup         Backup `json:"backup,omitempty"`
}

// ExistingCluster says how to reach an existing cluster. Set Kubeconfig, Context, or both.
type ExistingCluster struct {
	// Kubeconfig is the absolute path of a kubeconfig file. Default: the file of
	// the environment variable KUBECONFIG, or ~/.kube/config.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is a context of the kubeconfig. Default: its current one.
	Context string `json:"context,omitempty"`
	// SystemPool is the node pool, one of those in the stack file, for everything
	// except training.
	SystemPool string `json:"systemPool"`
}

// Maintenance is when GKE may work on the cluster.
type Maintenance struct {
	// StartTime is when the daily window of four hours begins, like 03:00, in UTC.
	StartTime  string      `json:"startTime,omitempty" default:"03:00"`
	Exclusions []Exclusion `json:"exclusions,omitempty"`
}

// Exclusion is a period, for example of a long training job, in which GKE upgrades neither
// the minor version of the control plane nor any node.
type Exclusion struct {
	// Name identifies the exclusion.
	Name string `json:"name"`
	// Start is when it begins, in UTC, like 2026-12-01T00:00:00Z.
	Start string `json:"start"`
	// End is when it ends, at most 180 days after Start.
	End string `json:"end"`
}

// Encryption names keys of Cloud KMS, as
// projects/P/locations/L/keyRings/R/cryptoKeys/K. The stack grants GKE the use of these
// keys. Without a key, Google's own keys encrypt.
type Encryption struct {
	// Secrets encrypts the Secrets of the cluster, in addition to the encryption of its
	// entire state. The key must be in the cluster's region.
	Secrets string `json:"secrets,omitempty"`
	// BootDisks encrypts the boot disks of all nodes. The key must be in the cluster's
	// region or global. A change replaces all node pools.
	BootDisks string `json:"bootDisks,omitempty"`
}

// SystemPool is the node pool for everything except training: GKE's own pods, the NATS
// operator, and metrics gateways.
type SystemPool struct {
	// MachineType is a machine type without GPUs.
	MachineType string `json:"machineType,omitempty" default:"e2-standard-4"`
	// Nodes is the number of nodes across all zones: at least 2, or 1 with deletionProtection:
	// false. Default 2, or one per zone if the cluster has more than two.
	Nodes int `json:"nodes,omitempty"`
}

// CSIDrivers are GKE's storage drivers. All are enabled by default.
type CSIDrivers struct {
	// PersistentDisk is the driver for Compute Engine disks. GKE creates every cluster with it: to
	// turn it off, first bring the cluster up with it.
	PersistentDisk bool `json:"persistentDisk,omitempty" default:"true"`
	// Filestore is the driver for managed NFS shares.
	Filestore bool `json:"filestore,omitempty" default:"true"`
	// GCSFuse is the driver for Cloud Storage buckets. gcsFuse volumes require it.
	GCSFuse bool `json:"gcsFuse,omitempty" default:"true"`
}

// On reports whether the driver with a field of the stack file is enabled.
func (d CSIDrivers) On(driver string) bool {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(d)) {
		if input.JSONName(f) == driver {
			return reflect.ValueOf(d).FieldByIndex(f.Index).Bool()
		}
	}
	return false
}

// Logging selects the logs that GKE writes to Cloud Logging.
type Logging struct {
	// Components are the parts of GKE whose logs Cloud Logging keeps. Default: all of
	// SYSTEM_COMPONENTS, which the others require; WORKLOADS, the pods of the stack; APISERVER,
	// SCHEDULER and CONTROLLER_MANAGER; [] disables all.
	Components []string `json:"components,omitempty" default:"SYSTEM_COMPONENTS,WORKLOADS,APISERVER,SCHEDULER,CONTROLLER_MANAGER" enum:"SYSTEM_COMPONENTS,WORKLOADS,APISERVER,SCHEDULER,CONTROLLER_MANAGER"`
}

// Monitoring selects the metrics that GKE writes to Cloud Monitoring.
type Monitoring struct {
	// Components are the parts of GKE whose metrics Cloud Monitoring keeps. Default: all of
	// SYSTEM_COMPONENTS, which the others require, STORAGE, HPA, POD, DAEMONSET, DEPLOYMENT,
	// STATEFULSET, CADVISOR, KUBELET and DCGM (GPUs); [] disables all.
	Components []string `json:"components,omitempty" default:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM" enum:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM"`
	// ManagedPrometheus collects the metrics that pods export.
	ManagedPrometheus bool `json:"managedPrometheus,omitempty" default:"true"`
}

// Backup is Backup for GKE.
type Backup struct {
	// Agent runs what backups need inside the cluster.
	Agent bool `json:"agent,omitempty" default:"true"`
	// Plan makes backups. Default none. The plan and its backups outlive the stack. If you remove
	// the plan here, delete it by hand.
	Plan *BackupPlan `json:"plan,omitempty"`
}

// BackupPlan backs up all namespaces, with their volumes and Secrets.
type BackupPlan struct {
	// Schedule says when to make backups, in cron notation and UTC, like `0 4 * * *`.
	Schedule string `json:"schedule"`
	// RetainDays is how long a backup is kept.
	RetainDays int `json:"retainDays,omitempty" default:"7"`
}

// LeastSystemNodes returns the minimum number of nodes of the system pool: 1 in a cluster
// that may be deleted, and 2 in others.
func (c *Cluster) LeastSystemNodes() int {
	if !c.DeletionProtection {
		return 1
	}
	return 2
}

// addresses counts the addresses that all pools need when each is at its maximum.
func (s *Stack) addresses() addressNeeds {
	var needs addressNeeds
	for _, p := range s.Pools() {
		needs.Nodes += p.MostNodes()
		needs.PodAddresses += p.MostNodes() * capacity.PodAddresses(p.MaxPodsPerNode)
	}
	return needs
}

func (s *Stack) checkExistingCluster(p *input.Problems) {
	at, c := field.NewPath(clusterKey), s.Cluster
	p.Name(at.Child("name"), c.Name, validation.IsDNS1035Label)
	input.OnlyFields(p, at, c, "of an existing cluster", "name", "existing", "replace")
	existing := at.Child("existing")
	if c.Existing.Kubeconfig == "" && c.Existing.Context == "" {
		p.Required(existing.Child("context"), "write a context of your kubeconfig, as `kubectl config get-contexts` lists them, or kubeconfig with the path of one")
	}
	if k := c.Existing.Kubeconfig; k != "" && !path.IsAbs(k) {
		p.Invalid(existing.Child("kubeconfig"), k, "must be the absolute path of a kubeconfig file, because Pulumi runs programs in other directories")
	}
	s.checkPool(p, existing.Child("systemPool"), c.Existing.SystemPool, s.poolNames(), false)
	if s.Project != "" {
		p.Invalid(field.NewPath(projectKey), s.Project, "is not used, because the stack creates nothing in Google Cloud on an existing cluster; remove it")
	}
	for i, pool := range s.NodePools {
		input.OnlyFields(p, field.NewPath(nodePoolsKey).Index(i), pool, "of an existing pool",
			"name", "machineType", "nodes", "autoscaling", "spareNodes", "spot", "gpu", "maxPodsPerNode", "taints")
	}
}

// checkSystemPool checks the system pool of a cluster that the stack creates.
func (s *Stack) checkSystemPool(p *input.Problems) {
	path, pool := field.NewPath(clusterKey, "systemPool"), s.Cluster.SystemPool
	machineType := path.Child("machineType")
	switch m, ok := s.MachineTypes.Check(p, machineType, pool.MachineType); {
	case ok && m.GPUs > 0:
		p.Invalid(machineType, m.Type, "has GPUs, which nothing in the system pool uses; write a type without GPUs, like e2-standard-4")
	case ok && m.Arm():
		s.checkArm(p, machineType, m.Type, "the cluster's services", m.Type)
	case ok && !slices.Contains(m.BootDisks(), gcp.PDBalanced):
		p.Invalid(machineType, m.Type, "does not support pd-balanced, the boot disk type of the system pool; write a type that does, like e2-standard-4")
	}
	if least := s.Cluster.LeastSystemNodes(); pool.Nodes < least {
		p.Invalid(path.Child("nodes"), pool.Nodes, "must be at least %d, so that the cluster's own services survive the loss of a node; only a cluster with deletionProtection: false can have 1", least)
		return
	}
	checkSpread(p, path.Child("nodes"), pool.Nodes, s.systemPool().ZoneCount())
}

// warnOfExposure warns when a stack file turns off what keeps pods apart.
func (s *Stack) warnOfExposure(p *input.Problems) {
	cluster := field.NewPath(clusterKey)
	if s.Cluster.Existing == nil && !s.Cluster.DataplaneV2 {
		p.Warn(cluster.Child("dataplaneV2"), "without it, GKE does not enforce network policies, and every pod in the cluster can reach NATS, the metrics gateways, and PEDL; remove it")
	}
	if s.Cluster.Existing == nil && !s.Cluster.WorkloadIdentity {
		p.Warn(cluster.Child("workloadIdentity"), "without it, every pod can get the token of its node's service account from the metadata server, with the permissions of nodes")
	}
}

// longestClusterName leaves room for the node identity, the service account NAME-nodes, which has at
// most 30 characters (IAM, "Create service accounts"). GKE itself allows 40.
const longestClusterName = 30 - len("-nodes")

var roleForm = regexp.MustCompile(`^(roles/[a-z][a-zA-Z0-9.]*|(projects|organizations)/[^/]+/roles/[a-zA-Z0-9_.]+)$`)

// Check checks a resolved cluster that the stack creates.
func (c *Cluster) Check(p *input.Problems, path *field.Path, needs addressNeeds) {
	p.Name(path.Child("name"), c.Name, validation.IsDNS1035Label)
	p.AtMost(longestClusterName, path.Child("name"), c.Name, "so that the node identity NAME-nodes has at most 30")
	if c.Name == "default" {
		p.Invalid(path.Child("name"), c.Name, "is also the name of the cluster's network, and every project already has a network with that name; choose another")
	}
	input.Region(p, path.Child("region"), c.Region)
	input.Zones(p, path.Child("zones"), c.Region, c.Zones)
	checkMaintenance(p, path.Child("maintenance"), c.Maintenance)
	checkPublicNodes(p, path, c)
	checkNodeRoles(p, path.Child("nodeRoles"), c.NodeRoles)
	c.checkEncryption(p, path.Child("encryption"))
	checkComponents(p, path.Child("logging", "components"), c.Logging.Components, gcp.LoggingComponents)
	checkComponents(p, path.Child("monitoring", "components"), c.Monitoring.Components, gcp.MonitoringComponents)
	checkBackup(p, path.Child("backup"), c.Backup)
	c.checkAuthorizedNetworks(p, path)
	c.checkNetwork(p, path.Child("network"), needs)
}

// turnedOff reports whether the user turned a setting off. It returns false if the setting could
// not be decoded.
func turnedOff(p *input.Problems, path *field.Path, setting bool) bool {
	return !setting && p.Decoded(path)
}

// checkPublicNodes refuses settings that require private nodes in a cluster without them.
func checkPublicNodes(p *input.Problems, path *field.Path, c *Cluster) {
	if !turnedOff(p, path.Child("privateNodes"), c.PrivateNodes) {
		return
	}
	if c.PrivateEndpoint {
		p.Invalid(path.Child("privateEndpoint"), true, "requires private nodes, because GKE supports a private endpoint only with them; remove it, or remove privateNodes: false")
	}
	if c.Network.ControlPlane != "" {
		p.Forbidden(path.Child("network", "controlPlane"), "privateNodes is false, and without private nodes the control plane has no range in the network; remove %q, or remove privateNodes: false", c.Network.ControlPlane)
	}
}

func checkNodeRoles(p *input.Problems, path *field.Path, roles []string) {
	for i, role := range roles {
		checkNodeRole(p, path.Index(i), role)
	}
	input.Unique(roles, func(role string) string { return role }, func(i, first int, role string) {
		p.Duplicate(path.Index(i), role, "is already in nodeRoles[%d]; write each role once", first)
	})
}

func checkNodeRole(p *input.Problems, path *field.Path, role string) {
	switch role {
	case "":
		p.Required(path, "write a role, like roles/storage.objectViewer")
	case "roles/owner", "roles/editor":
		p.Invalid(path, role, "allows anyone who breaks out of a pod to change everything in the project; write only the roles that the nodes need, like roles/storage.objectViewer")
	case gcp.RoleDefaultNode, gcp.RoleImageReader:
		p.Invalid(path, role, "is a role that every node already has; remove it")
	default:
		switch {
		case administers(role):
			p.Invalid(path, role, "allows anyone who breaks out of a pod to administer that service in the whole project; write only the roles that the nodes need, like roles/storage.objectViewer")
		case !roleForm.MatchString(role):
			p.Invalid(path, role, "must be a role, like roles/storage.objectViewer, or a custom role, as projects/P/roles/R or organizations/N/roles/R")
		}
	}
}

// administers reports whether a predefined role is an administrator's, or can impersonate
// service accounts (IAM, "Roles and permissions").
func administers(role string) bool {
	name, predefined := strings.CutPrefix(role, "roles/")
	_, title, _ := strings.Cut(name, ".")
	return predefined && (strings.HasSuffix(strings.ToLower(title), "admin") || strings.HasPrefix(name, "iam."))
}

// checkEncryption checks keys and their locations: the control plane accepts keys of its own
// region (GKE, "Encrypt secrets at the application layer"), and Compute Engine keys of the
// disk's region and global ones.
func (c *Cluster) checkEncryption(p *input.Problems, path *field.Path) {
	e := c.Encryption
	input.KMSKey(p, path.Child("secrets"), e.Secrets, "GKE", c.Region, c.Region)
	input.KMSKey(p, path.Child("bootDisks"), e.BootDisks, "Compute Engine", c.Region, c.Region, "global")
}

// checkComponents checks the observed parts of GKE. GKE requires the first known component
// with any other.
func checkComponents(p *input.Problems, path *field.Path, components, known []string) {
	valid := p.Decoded(path)
	for _, component := range components {
		valid = valid && slices.Contains(known, component)
	}
	input.Once(p, path, components, "write each component once")
	if system := known[0]; valid && len(components) > 0 && !slices.Contains(components, system) {
		p.Required(path, "write %s too, which GKE requires with any other component, or [] for none", system)
	}
}

func checkBackup(p *input.Problems, path *field.Path, b Backup) {
	if b.Plan == nil {
		return
	}
	if agent := path.Child("agent"); turnedOff(p, agent, b.Agent) {
		p.Invalid(agent, false, "must be true, because the agent makes the backups of plan; remove it, or remove plan")
	}
	checkBackupPlan(p, path.Child("plan"), *b.Plan)
}

// mostBackups is the number of backups of a plan that Backup for GKE keeps at most (Backup
// for GKE API, RetentionPolicy).
const mostBackups = 360

// leastInterval is the interval of backups below which the program warns.
const leastInterval = time.Hour

func checkBackupPlan(p *input.Problems, path *field.Path, plan BackupPlan) {
	schedule, retainDays := path.Child("schedule"), path.Child("retainDays")
	interval, ok := parseSchedule(p, schedule, plan.Schedule)
	if ok && interval < leastInterval {
		p.Warn(schedule, "%s makes backups %d minutes apart, each of all volumes; write 0 4 * * * for one every day at 04:00", plan.Schedule, int(interval.Minutes()))
	}
	switch most := int(mostBackups * interval.Hours() / 24); {
	case !input.Range(p, retainDays, plan.RetainDays, 1, 365, ""), !ok:
	case most < 1:
		p.Invalid(schedule, plan.Schedule, "makes backups %d minutes apart, but Backup for GKE keeps only %d backups of a plan, less than a day's; write a schedule with fewer backups", int(interval.Minutes()), mostBackups)
	case plan.RetainDays > most:
		p.Invalid(retainDays, plan.RetainDays, "must be at most %d, because Backup for GKE keeps %d backups of a plan, and schedule makes one every %d minutes; write that, or a schedule with fewer backups", most, mostBackups, int(interval.Minutes()))
	}
}

// parseSchedule parses a schedule in cron notation, and returns the shortest interval between
// its times.
func parseSchedule(p *input.Problems, path *field.Path, text string) (time.Duration, bool) {
	if text == "" {
		p.Required(path, "write a schedule in cron notation and UTC, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	// The parser also accepts @daily and time zones, which Backup for GKE does not.
	if len(strings.Fields(text)) != 5 {
		p.Invalid(path, text, "must have the five fields of cron: minute, hour, day of the month, month, and day of the week, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		p.Invalid(path, text, "must be in cron notation, like 0 4 * * * for every day at 04:00: %s", err)
		return 0, false
	}
	return shortestInterval(p, path, text, parsed)
}

func shortestInterval(p *input.Problems, path *field.Path, text string, schedule cron.Schedule) (time.Duration, bool) {
	// More than the days of a year, because more frequent schedules repeat sooner.
	const times = 500
	last := schedule.Next(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))
	if last.IsZero() {
		p.Invalid(path, text, "never occurs; write a schedule that does, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	shortest := time.Duration(math.MaxInt64)
	for range times {
		next := schedule.Next(last)
		if next.IsZero() {
			break // the parser finds no other time within years
		}
		shortest, last = min(shortest, next.Sub(last)), next
	}
	return shortest, true
}

var timeOfDayForm = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

func checkMaintenance(p *input.Problems, path *field.Path, m Maintenance) {
	if !timeOfDayForm.MatchString(m.StartTime) {
		p.Invalid(path.Child("startTime"), m.StartTime, "must be a time of day in UTC, with two digits for the hour and two for the minute, like 03:00")
	}
	checkExclusions(p, path.Child("exclusions"), m.Exclusions)
}

// The limits of GKE for exclusions that still allow patches of the control plane (GKE,
// "Maintenance windows and exclusions").
const (
	mostExclusions       = 20
	longestExclusionDays = 180
)

func checkExclusions(p *input.Problems, path *field.Path, exclusions []Exclusion) {
	if len(exclusions) > mostExclusions {
		p.Invalid(path, len(exclusions), "must be at most %d exclusions, the limit of GKE; remove those that have ended", mostExclusions)
	}
	for i, e := range exclusions {
		checkExclusion(p, path.Index(i), e)
	}
	input.UniqueField(p, path, "name", exclusions, func(e Exclusion) string { return e.Name }, "is already used by exclusions[%d]; give each exclusion its own name")
}

func checkExclusion(p *input.Problems, path *field.Path, e Exclusion) {
	p.Name(path.Child("name"), e.Name, validation.IsDNS1123Label)
	start, startOK := parseInstant(p, path.Child("start"), e.Start)
	end, endOK := parseInstant(p, path.Child("end"), e.End)
	switch latest := start.AddDate(0, 0, longestExclusionDays); {
	case !startOK || !endOK:
	case !start.Before(end):
		p.Invalid(path.Child("end"), e.End, "must be after start, which is %s", e.Start)
	case end.After(latest):
		p.Invalid(path.Child("end"), e.End, "must be at most %d days after start, the limit of GKE; write %s or earlier", longestExclusionDays, latest.Format(time.RFC3339))
	}
}

// parseInstant parses a time in UTC and whole seconds, as GKE returns it. With any other
// form, every preview would show a change.
func parseInstant(p *input.Problems, path *field.Path, text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	switch utc := t.UTC().Format(time.RFC3339); {
	case text == "":
		p.Required(path, "write a time like 2026-12-01T00:00:00Z")
	case err != nil:
		p.Invalid(path, text, "must be a time like 2026-12-01T00:00:00Z")
	case text != utc:
		p.Invalid(path, text, "must be in UTC and in whole seconds; write %s", utc)
	default:
		return t, true
	}
	return time.Time{}, false
}
