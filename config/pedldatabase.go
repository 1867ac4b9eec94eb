package config

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/pod"
	"persia/config/volume"
)

func persistencePath() *field.Path { return field.NewPath(pedlKey, "postgresql", "persistence") }

func (v *validator) postgreSQL(path *field.Path, p PEDLPostgreSQL) {
	if p.External != nil {
		v.onlyFields(path, p, "of an external database", "external")
		v.external(path.Child("external"), *p.External)
		return
	}
	const who = "the database of PEDL"
	v.postgreSQLImage(path.Child("image"), p.Image)
	v.resources(path.Child("resources"), who, p.Resources)
	v.noGPUs(path.Child("resources"), who, p.Resources)
	if pool, ok := v.stack.pool(v.stack.PEDL.NodePool); ok {
		v.fits(path.Child("resources"), who, p.Resources, pool)
	}
	v.credential(path.Child("postgresqlPassword"), p.Password)
	v.databaseName(path.Child("postgresqlDatabase"), p.Database)
	v.oneLine(path.Child("postgresqlInitdbArgs"), p.InitdbArgs)
	if p.SchedulerName != "" {
		v.name(path.Child("schedulerName"), p.SchedulerName, validation.IsDNS1123Subdomain)
	}
	v.extendedConfig(path.Child("postgresqlExtendedConfig"), p.ExtendedConfig)
	v.addresses(path.Child("service", "externalIPs"), p.Service.ExternalIPs)
	v.port(path.Child("service", "port"), p.Service.Port)
	v.persistence(path.Child("persistence"), &p.Persistence)
}

func (v *validator) external(path *field.Path, e ExternalPostgreSQL) {
	v.host(path.Child("host"), e.Host)
	v.port(path.Child("port"), e.Port)
	v.databaseName(path.Child("user"), e.User)
	v.databaseName(path.Child("database"), e.Database)
	v.credential(path.Child("password"), e.Password)
}

func (v *validator) postgreSQLImage(path *field.Path, image PostgreSQLImage) {
	if !registryForm.MatchString(image.Registry) {
		v.invalid(path.Child("registry"), image.Registry, "must be the name of a registry, like docker.io or registry.example.com:5000")
	}
	if !repositoryForm.MatchString(image.Repository) {
		v.invalid(path.Child("repository"), image.Repository, "must be a repository without registry and tag, like bitnami/postgresql; write those in registry and tag")
	}
	if !tagForm.MatchString(image.Tag) {
		v.invalid(path.Child("tag"), image.Tag, "must be a tag in quotes, like \"10.8.0\"")
	}
	v.pullPolicy(path.Child("pullPolicy"), image.PullPolicy)
	v.imagePullSecrets(path.Child("pullSecrets"), image.PullSecrets)
}

var (
	registryForm   = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?$`)
	repositoryForm = regexp.MustCompile(`^[a-z0-9._-]+(/[a-z0-9._-]+)*$`)
	// tagForm is what a tag may be (OCI Distribution Specification, "Pull").
	tagForm = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	// settingForm is the name of a setting in camel case, with the prefix of an
	// extension if it has one.
	settingForm = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*(\.[a-z][a-zA-Z0-9]*)?$`)
)

// longestDatabaseName is PostgreSQL's limit of any name (NAMEDATALEN less one).
const longestDatabaseName = 63

func (v *validator) databaseName(path *field.Path, name string) {
	switch {
	case name == "":
		v.required(path, "write a name")
	case len(name) > longestDatabaseName || strings.ContainsFunc(name, unicode.IsControl):
		v.invalid(path, name, "must have at most %d characters, and be one line", longestDatabaseName)
	}
}

func (v *validator) oneLine(path *field.Path, text string) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		v.invalid(path, text, "must be one line")
	}
}

// ownSettings are those of PostgreSQL that would take it away from its service or
// from its volume.
var ownSettings = map[string]string{
	"port":            "service.port",
	"dataDirectory":   "persistence.mountPath",
	"listenAddresses": "service",
	"configFile":      "image",
}

func (v *validator) extendedConfig(path *field.Path, settings map[string]PostgreSQLValue) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		at := path.Key(name)
		switch decides, own := ownSettings[name]; {
		case own:
			v.invalid(at, string(settings[name]), "is decided by %s; remove it", decides)
		case !settingForm.MatchString(name):
			v.invalid(at, name, "must be a setting of PostgreSQL in camel case, like maxConnections for max_connections")
		}
		v.oneLine(at, string(settings[name]))
	}
}

func (v *validator) persistence(at *field.Path, p *PostgreSQLPersistence) {
	v.directory(at.Child("mountPath"), p.MountPath)
	if path.IsAbs(p.SubPath) || slices.Contains(strings.Split(p.SubPath, "/"), "..") {
		v.invalid(at.Child("subPath"), p.SubPath, "must be a path below the volume's root, without a leading / and without ..")
	}
	v.annotations(at.Child("annotations"), p.Annotations)
	database := p.volume()
	oneOf(v, at.Child("accessMode"), p.AccessMode, corev1.ReadWriteOnce, corev1.ReadWriteMany)
	database.CheckAccessMode(v.Problems, at.Child("accessMode"), p.AccessMode)
	if v.onePlace(at, p) {
		database.CheckSource(v.Problems, at, v.stack.volumePlace())
		v.databaseVolume(at, &database)
	}
}

// onePlace checks that the data is in one place, and reports whether that is a
// volume of the stack.
func (v *validator) onePlace(path *field.Path, p *PostgreSQLPersistence) bool {
	var places []string
	if p.ExistingClaim != "" {
		places = append(places, "existingClaim")
		v.name(path.Child("existingClaim"), p.ExistingClaim, validation.IsDNS1123Subdomain)
	}
	if p.StorageClass != "" {
		places = append(places, "storageClass")
		v.name(path.Child("storageClass"), p.StorageClass, validation.IsDNS1123Subdomain)
	}
	places = append(places, p.Written()...)
	switch {
	case !*p.Enabled && len(places) > 0:
		v.forbidden(path.Child(places[0]), "enabled is false; write enabled: true, or remove it")
	case !*p.Enabled:
	case len(places) == 0:
		v.required(path.Child("storageClass"), "on an existing cluster write where the data is: storageClass, existingClaim, or a source like nfs or persistentDisk")
	case len(places) > 1:
		v.forbidden(path.Child(places[1]), "%s is given already; write exactly one of %s and %s", places[0], places[0], places[1])
	default:
		return p.Source() != nil
	}
	return false
}

// databaseVolume checks that PostgreSQL, one pod on a node of its pool, can have its
// data there.
func (v *validator) databaseVolume(path *field.Path, database *volume.Volume) {
	if database.MountedBySidecar() {
		v.invalid(path.Child("gcsFuse"), database.GCSFuse.Bucket, "is no place for a database, as a bucket has no locks; use persistentDisk")
	}
	for i, other := range v.stack.Storage {
		at := field.NewPath(storageKey).Index(i)
		if other.Name == database.Name {
			v.invalid(at.Child("name"), other.Name, "is the name of the volume of PEDL's database; choose another")
		}
		if identity := database.Identity(); identity != "" && identity == other.Identity() {
			v.duplicate(path, identity, "is the storage of %s; give the database storage of its own", at)
		}
	}
	if pool, ok := v.stack.pool(v.stack.PEDL.NodePool); ok {
		database.CheckUsers(v.Problems, path, volume.Users{Pools: []volume.Pool{v.stack.volumePool(pool)}, OnePod: true})
	}
}

// pedlPods are PEDL's pods that are assigned to a pool. Agents are counted with each
// node.
func (s *Stack) pedlPods(pool string) []capacity.Pods {
	var pods []capacity.Pods
	if s.PEDL == nil {
		return nil
	}
	if s.PEDL.NodePool == pool {
		pods = append(pods, capacity.Pods{Name: "PEDL master", Count: 1, Requests: requests(s.PEDL.Resources)})
		if s.PEDL.Postgres.External == nil {
			pods = append(pods, capacity.Pods{Name: "PEDL database", Count: 1, Requests: requests(s.PEDL.Postgres.Resources)})
		}
	}
	if check := s.PEDL.SupportCheck; check != nil && check.NodePool == pool {
		pods = append(pods, capacity.Pods{Name: "PEDL support check", Count: 1, Requests: capacity.PEDLSupportCheck})
	}
	return pods
}

// pedlWarnings are what a valid stack may not have meant of PEDL.
func (s *Stack) pedlWarnings() []string {
	if s.PEDL == nil {
		return nil
	}
	var warnings []string
	warn := func(path, format string, args ...any) {
		warnings = append(warnings, pedlKey+"."+path+": "+fmt.Sprintf(format, args...))
	}
	p := s.PEDL
	for path, image := range map[string]string{"masterImage": p.MasterImage, "agentImage": p.AgentImage} {
		if pod.IsLoose(image) {
			warn(path, "%s has no tag but latest, and pods that start later may run another release; write one with a tag", image)
		}
	}
	if p.Service.Type == corev1.ServiceTypeLoadBalancer && len(p.Service.LoadBalancerSourceRanges) == 0 {
		warn("service.type", "the load balancer lets everybody in; write loadBalancerSourceRanges")
	}
	for _, pool := range s.NodePools {
		if pool.ImageType == "" {
			continue
		}
		const noDocker = "nodes with %s have containerd and no Docker, so that /var/run/docker.sock is missing"
		if slices.Contains(p.Agent.NodePools, pool.Name) {
			warn("agent.nodePools", noDocker+": the agents of pool %s wait until you have installed it", pool.ImageType, pool.Name)
		}
		if p.SupportCheck != nil && p.SupportCheck.NodePool == pool.Name {
			warn("supportCheck.nodePool", noDocker+": the check of pool %s fails unless you have installed it", pool.ImageType, pool.Name)
		}
	}
	warnings = append(warnings, p.Postgres.warnings()...)
	slices.Sort(warnings)
	return warnings
}

func (p *PEDLPostgreSQL) warnings() []string {
	if p.External != nil {
		return nil
	}
	var warnings []string
	if !*p.Persistence.Enabled {
		warnings = append(warnings, fmt.Sprintf("%s: the database is lost with its pod, as the stack file says", persistencePath().Child("enabled")))
	}
	if class := p.Persistence.StorageClass; class != "" {
		warnings = append(warnings, fmt.Sprintf("%s: the class %s decides what becomes of the database when its claim is deleted. `pulumi destroy` leaves the claim, and a cluster that is deleted does not", persistencePath().Child("storageClass"), class))
	}
	if len(p.Service.ExternalIPs) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: everybody who reaches these addresses reaches the database", field.NewPath(pedlKey, "postgresql", "service", "externalIPs")))
	}
	return warnings
}
