package pedlspec

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/pod"
	"persia/config/volumespec"
)

// DatabaseName names the database in messages.
const DatabaseName = "the database of PEDL"

// check checks the database, which runs on the node pool of the master.
func (d *PostgreSQL) check(p *check.Problems, path *field.Path, nodePool string, context Context) {
	if d.External != nil {
		check.OnlyFields(p, path, *d, "of an external database", "external")
		checkExternal(p, path.Child("external"), *d.External)
		return
	}
	checkDatabaseImage(p, path.Child("image"), d.Image)
	pod.Resources(p, path.Child("resources"), DatabaseName, d.Resources)
	pod.NoGPUs(p, path.Child("resources"), DatabaseName, d.Resources)
	checkCredential(p, path.Child("postgresqlPassword"), d.Password)
	checkDatabaseName(p, path.Child("postgresqlDatabase"), d.Database)
	checkOneLine(p, path.Child("postgresqlInitdbArgs"), d.InitdbArgs)
	if d.SchedulerName != "" {
		p.Name(path.Child("schedulerName"), d.SchedulerName, validation.IsDNS1123Subdomain)
	}
	checkSettings(p, path.Child("postgresqlExtendedConfig"), d.ExtendedConfig)
	checkExternalIPs(p, path.Child("service", "externalIPs"), d.Service.ExternalIPs, context, "use kubectl port-forward, or your own Service of the type LoadBalancer with a network policy that lets its clients in")
	check.Port(p, path.Child("service", "port"), d.Service.Port)
	d.Persistence.check(p, path.Child("persistence"), nodePool, context)
}

func checkExternal(p *check.Problems, path *field.Path, e ExternalDatabase) {
	check.Host(p, path.Child("host"), e.Host)
	check.Port(p, path.Child("port"), e.Port)
	checkDatabaseName(p, path.Child("user"), e.User)
	checkDatabaseName(p, path.Child("database"), e.Database)
	checkCredential(p, path.Child("password"), e.Password)
}

// checkDatabaseImage checks each part of a reference on its own.
func checkDatabaseImage(p *check.Problems, path *field.Path, image DatabaseImage) {
	const registry, repository = "example.com", "image"
	named, err := reference.WithName(image.Registry + "/" + repository)
	if err != nil || reference.Domain(named) != image.Registry {
		p.Invalid(path.Child("registry"), image.Registry, "must be the name of a registry, like docker.io or registry.example.com:5000")
	}
	named, err = reference.WithName(registry + "/" + image.Repository)
	if err != nil || reference.Path(named) != image.Repository {
		p.Invalid(path.Child("repository"), image.Repository, "must be a repository without registry and tag, like bitnamilegacy/postgresql; write those in registry and tag")
	}
	if !tagForm.MatchString(image.Tag) {
		p.Invalid(path.Child("tag"), image.Tag, "must be a tag in quotes, like \"10.23.0-debian-11-r3\"")
	}
	pod.PullSecrets(p, path.Child("pullSecrets"), image.PullSecrets)
}

var (
	tagForm = regexp.MustCompile("^" + reference.TagRegexp.String() + "$")
	// settingForm matches the name of a setting in camel case, with an optional prefix for
	// its extension.
	settingForm = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*(\.[a-z][a-zA-Z0-9]*)?$`)
)

// longestDatabaseName is PostgreSQL's limit for names (NAMEDATALEN - 1).
const longestDatabaseName = 63

func checkDatabaseName(p *check.Problems, path *field.Path, name string) {
	switch {
	case name == "":
		p.Required(path, "write a name")
	case len(name) > longestDatabaseName || strings.ContainsFunc(name, unicode.IsControl):
		p.Invalid(path, name, "must be a single line of at most %d characters", longestDatabaseName)
	}
}

func checkOneLine(p *check.Problems, path *field.Path, text string) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		p.Invalid(path, text, "must be a single line")
	}
}

// ownSettings maps settings of PostgreSQL that the program sets to the fields that determine
// them. Other values would disconnect the database from its Service or its volume.
var ownSettings = map[string]string{
	"port":            "service.port",
	"dataDirectory":   "persistence.mountPath",
	"listenAddresses": "service",
	"configFile":      "image",
}

// ownDirectories are mount paths in the database's pod that the program uses.
var ownDirectories = map[string]string{
	"/dev/shm":                        "its shared memory",
	"/bitnami/postgresql/conf/conf.d": "its settings",
}

func checkSettings(p *check.Problems, path *field.Path, settings map[string]SettingValue) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		at := path.Key(name)
		switch decides, own := ownSettings[name]; {
		case own:
			p.Invalid(at, string(settings[name]), "is set by %s; remove it", decides)
		case !settingForm.MatchString(name):
			p.Invalid(at, name, "must be a setting of PostgreSQL in camel case, like maxConnections for max_connections")
		}
		checkOneLine(p, at, string(settings[name]))
	}
}

func (d *Persistence) check(p *check.Problems, at *field.Path, nodePool string, context Context) {
	check.Directory(p, at.Child("mountPath"), d.MountPath)
	if what, own := ownDirectories[d.MountPath]; own {
		p.Invalid(at.Child("mountPath"), d.MountPath, "is where the database keeps %s; choose another path, like /bitnami/postgresql", what)
	}
	check.SubPath(p, at.Child("subPath"), d.SubPath)
	check.Annotations(p, at.Child("annotations"), d.Annotations)
	database := d.volume()
	database.CheckAccessMode(p, at.Child("accessMode"), d.AccessMode)
	if d.checkOneSource(p, at) {
		database.CheckSource(p, at, context.Storage)
		checkVolume(p, at, &database, nodePool, context)
	} else if d.StorageClass != "" {
		database.CheckSize(p, at.Child("size"))
	}
}

// checkOneSource checks that the data has exactly one source, and reports whether it is a
// volume of the stack.
func (d *Persistence) checkOneSource(p *check.Problems, path *field.Path) bool {
	var sources []string
	if d.ExistingClaim != "" {
		sources = append(sources, "existingClaim")
		p.Name(path.Child("existingClaim"), d.ExistingClaim, validation.IsDNS1123Subdomain)
	}
	if d.StorageClass != "" {
		sources = append(sources, "storageClass")
		p.Name(path.Child("storageClass"), d.StorageClass, validation.IsDNS1123Subdomain)
	}
	sources = append(sources, d.Written()...)
	switch {
	case !d.Enabled && len(sources) > 0:
		p.Forbidden(path.Child(sources[0]), "enabled is false; write enabled: true, or remove it")
	case !d.Enabled:
	case len(sources) == 0:
		p.Required(path.Child("storageClass"), "required on an existing cluster: write storageClass, existingClaim, or a source like nfs or persistentDisk")
	case len(sources) > 1:
		p.Forbidden(path.Child(sources[1]), "%s is already set; write exactly one of %s and %s", sources[0], sources[0], sources[1])
	default:
		return d.Source() != nil
	}
	return false
}

// checkVolume checks that the pod of PostgreSQL, on a node of its pool, can use a volume.
func checkVolume(p *check.Problems, path *field.Path, database *volumespec.Volume, nodePool string, context Context) {
	if database.MountedBySidecar() {
		p.Invalid(path.Child("gcsFuse"), database.GCSFuse.Bucket, "cannot hold a database, because a bucket has no locks; use persistentDisk")
	}
	for i, other := range context.Volumes {
		at := context.VolumesPath.Index(i)
		if other.Name == database.Name {
			p.Invalid(at.Child("name"), other.Name, "is the name of the volume of PEDL's database; choose another")
		}
		if identity := database.Identity(); identity != "" && identity == other.Identity() {
			p.Duplicate(path, identity, "is already the storage of %s; give the database its own storage", at)
		}
	}
	if pool, ok := context.Pool(nodePool); ok {
		database.CheckUsers(p, path, volumespec.Users{Pools: []volumespec.Pool{pool}, OnePod: true})
	}
}

// volume returns the volume of the database in the form of persia:storage.
func (d *Persistence) volume() volumespec.Volume {
	return volumespec.Volume{
		Name:          VolumeName,
		Claim:         VolumeName,
		Size:          d.Size,
		AccessModes:   []corev1.PersistentVolumeAccessMode{d.AccessMode},
		ReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		Sources:       d.Sources,
	}
}

// Volume returns the volume of the database, and whether it is a volume of the stack.
func (d *PostgreSQL) Volume() (volumespec.Volume, bool) {
	if d.External != nil || !d.Persistence.Enabled || d.Persistence.Source() == nil {
		return volumespec.Volume{}, false
	}
	return d.Persistence.volume(), true
}
