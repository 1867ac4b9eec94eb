package input

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

var (
	regionForm  = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+$`)
	zoneForm    = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-([a-z]|ai[0-9]+[a-z])$`)
	projectForm = regexp.MustCompile(`^[a-z][a-z0-9-]{4,28}[a-z0-9]$`)
	keyForm     = regexp.MustCompile(`^projects/[^/]+/locations/([a-z0-9-]+)/keyRings/[a-zA-Z0-9_-]{1,63}/cryptoKeys/[a-zA-Z0-9_-]{1,63}$`)
	keyVersion  = regexp.MustCompile(`/cryptoKeyVersions/[0-9]+$`)
)

// Project checks the ID of a Google Cloud project.
func Project(p *Problems, at *field.Path, id string) {
	switch {
	case id == "":
		p.Required(at, "write the id of the Google Cloud project, like my-project-123")
	case !projectForm.MatchString(id):
		p.Invalid(at, id, "must be a project id: 6 to 30 lower case letters, digits and hyphens, starting with a letter and not ending with a hyphen; `gcloud projects list` shows yours")
	}
}

// Region checks the name of a Google Cloud region, and warns of an unknown one.
func Region(p *Problems, at *field.Path, region string) {
	switch {
	case region == "":
		p.Required(at, "write a region, like us-central1")
	case zoneForm.MatchString(region):
		p.Invalid(at, region, "is a zone; write the region, %s, and the zone in zones", gcp.RegionOf(region))
	case !regionForm.MatchString(region):
		p.Invalid(at, region, "must be a region, like us-central1")
	default:
		warnOfRegion(p, at, region)
	}
}

// warnOfRegion warns of a region that may not exist, and returns whether it is known.
func warnOfRegion(p *Problems, at *field.Path, region string) bool {
	return Known(p, at, region, "region", gcp.Regions(), "`gcloud compute regions list`")
}

// Known warns of a name that is not in a table of the program, and returns whether it is. What
// completes "is no …", and shows "unless … has it".
func Known(p *Problems, at *field.Path, name, what string, table []string, shows string) bool {
	if slices.Contains(table, name) {
		return true
	}
	correct := "; correct it."
	if near := Nearest(name, table); len(near) > 0 {
		correct = "; did you mean " + Or(near) + "?"
	}
	p.Warn(at, "%s is no %s that the program knows%s Its table may be old: leave it only if %s has it", name, what, correct, shows)
	return false
}

// Zones checks the zones of a region, which must differ.
func Zones(p *Problems, at *field.Path, region string, zones []string) {
	for i, zone := range zones {
		Zone(p, at.Index(i), region, zone)
	}
	Once(p, at, zones, "write each zone once")
}

// Zone checks that a zone is in a region, unless the region is invalid, and warns of an unknown
// one.
func Zone(p *Problems, at *field.Path, region, zone string) {
	switch known := gcp.Zones(region); {
	case !IsRegion(region):
	case !zoneForm.MatchString(zone) || gcp.RegionOf(zone) != region:
		p.Invalid(at, zone, "must be a zone of the region %s, like %s-a", region, region)
	case len(known) > 0 && !slices.Contains(known, zone) && !gcp.IsAIZone(zone):
		p.Warn(at, "%s is no zone that the program knows; write %s. Its table may be old: leave it only if `gcloud compute zones list` has it", zone, Or(known))
	}
}

// KMSKey checks an optional Cloud KMS key, and that it is in one of the locations from which
// user, a Google Cloud service, accepts keys. It skips the location if the region of the
// cluster is invalid.
func KMSKey(p *Problems, at *field.Path, key, user, region string, locations ...string) {
	form := keyForm.FindStringSubmatch(key)
	switch {
	case key == "":
	case keyVersion.MatchString(key):
		p.Invalid(at, key, "must be a key without a version, because Cloud KMS chooses the version; write %s", keyVersion.ReplaceAllString(key, ""))
	case form == nil:
		p.Invalid(at, key, "must be a Cloud KMS key, as projects/P/locations/L/keyRings/R/cryptoKeys/K; `gcloud kms keys list` lists yours")
	case regionForm.MatchString(region) && !slices.Contains(locations, form[1]):
		p.Invalid(at, key, "must be in the location %s, because %s accepts keys only from there; write a key in that location", Or(locations), user)
	}
}

// Labels checks Kubernetes labels.
func Labels(p *Problems, at *field.Path, labels map[string]string) {
	for key, value := range labels {
		p.InvalidFor(at.Key(key), key, validation.IsQualifiedName(key))
		p.InvalidFor(at.Key(key), value, validation.IsValidLabelValue(value))
	}
}

// Annotations checks the keys of annotations, whose case Kubernetes ignores, and their size.
func Annotations(p *Problems, at *field.Path, annotations map[string]string) {
	for key := range annotations {
		p.InvalidFor(at.Key(key), key, validation.IsQualifiedName(strings.ToLower(key)))
	}
	if err := apivalidation.ValidateAnnotationsSize(annotations); err != nil {
		p.Invalid(at, field.OmitValueType{}, "%s bytes; shorten or remove annotations", err)
	}
}

// CSIDriver checks the name of a CSI driver, which has at most 63 characters
// (validateCSIDriverName in kubernetes/kubernetes).
func CSIDriver(p *Problems, at *field.Path, name string) {
	p.Name(at, name, validation.IsDNS1123Subdomain)
	if most := validation.DNS1123LabelMaxLength; len(name) > most {
		p.Invalid(at, name, "has %d characters and must have at most %d; write the name of an installed driver, as `kubectl get csidrivers` lists it", len(name), most)
	}
}

// IsRegion reports whether a text has the form of a region.
func IsRegion(text string) bool { return regionForm.MatchString(text) }

// Location checks that a text has the form of a zone or a region. It warns of an unknown one,
// and returns whether the region is known.
func Location(p *Problems, at *field.Path, location string) bool {
	switch region := gcp.RegionOf(location); {
	case IsRegion(location):
		return warnOfRegion(p, at, location)
	case zoneForm.MatchString(location):
		Zone(p, at, region, location)
		return warnOfRegion(p, at, region)
	}
	p.Invalid(at, location, "must be a zone, like us-central1-a, or a region, like us-central1")
	return false
}

// SubPath checks an optional path below the root of a volume.
func SubPath(p *Problems, at *field.Path, below string) {
	if path.IsAbs(below) || slices.Contains(strings.Split(below, "/"), "..") {
		p.Invalid(at, below, "must be a path below the volume's root, without a leading / and without ..")
	}
}

// Host checks an address or a host name.
func Host(p *Problems, at *field.Path, host string) {
	switch {
	case host == "":
		p.Required(at, "write the server's address or name, like 10.0.0.2")
	case net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0:
		p.Invalid(at, host, "must be an address like 10.0.0.2, or a name like nfs.example.com")
	case leadsNowhere(host):
		p.Invalid(at, host, "leads each machine to itself or to no server; write the address of the server in the network, like 10.0.0.2")
	}
}

// leadsNowhere reports whether a host is a loopback, unspecified or multicast address, or a
// name of the loopback.
func leadsNowhere(host string) bool {
	ip := net.ParseIP(host)
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Directory checks the absolute, clean path of a directory other than the root.
func Directory(p *Problems, at *field.Path, directory string) {
	switch {
	case directory == "":
		p.Required(at, "write an absolute path, like /checkpoints")
	case !path.IsAbs(directory):
		p.Invalid(at, directory, "must be absolute; write %s", path.Join("/", directory))
	case path.Clean(directory) != directory:
		p.Invalid(at, directory, "must be a path without ., .., repeated slashes, or a trailing slash; write %s", path.Clean(directory))
	case directory == "/":
		p.Invalid(at, directory, "must be a directory below the root, like /checkpoints")
	case strings.Contains(directory, ":"):
		p.Invalid(at, directory, "must not contain a colon; rename the directory")
	}
}

// MountOption refuses an element of mountOptions that is not one option, which no driver reads.
func MountOption(p *Problems, path *field.Path, option string, bucket bool) {
	name, _, _ := strings.Cut(option, "=")
	several := bucket && strings.Contains(option, ",") && !strings.Contains(name, "regex")
	if several || strings.HasPrefix(option, "-") || strings.ContainsAny(option, " \t") {
		var options []string
		for text := range strings.SplitSeq(option, ",") {
			text = strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(text), "-o "), "- ")
			options = append(options, strings.Join(strings.Fields(text), "="))
		}
		p.Invalid(path, option, "is not one option, and no pod that mounts the volume would start; write each option as an element of its own: %s", strings.Join(options, ", "))
		return
	}
	if bucket {
		warnOfBucketOption(p, path, option)
	}
}

// What GKE's driver does with options (gcs-fuse-csi-driver, pkg/sidecar_mounter/sidecar_mounter_config.go): it
// discards some, and passes each other one to gcsfuse as an option and, unless it knows a boolean
// option, a value of its own, which gcsfuse then takes for the mount point.
var (
	discardedOptions = strings.Fields("cache-dir config-file experimental-local-file-cache foreground key-file log-file log-format o prometheus-port reuse-token-from-url temp-dir token-url")
	booleanOptions   = strings.Fields("debug_fs debug_fuse debug_fuse_errors debug_gcs debug_http debug_invariants debug_mutex disable-autoconfig enable-nonexistent-type-cache implicit-dirs")
)

// FileCacheOption begins the option that turns the file cache of a bucket on.
const FileCacheOption = "file-cache:max-size-mb:"

// warnOfBucketOption warns of an option that Cloud Storage FUSE does not get or cannot use, and of a
// file cache that may fill the disk of the node.
func warnOfBucketOption(p *Problems, path *field.Path, option string) {
	name, value, _ := strings.Cut(option, "=")
	switch {
	case slices.Contains(discardedOptions, name):
		p.Warn(path, "GKE's driver discards %s; remove it", option)
	case (value == "true" || value == "false") && !slices.Contains(booleanOptions, name):
		p.Warn(path, "GKE's driver passes on %s so that gcsfuse does not start; write it as in gcsfuse's configuration file, with colons, like write:enable-streaming-writes:false", option)
	case strings.HasPrefix(option, FileCacheOption+"-"):
		p.Warn(path, "%s may fill the disk of the node, and Kubernetes then evicts pods; write a limit, like %s10240, which the capacity plan counts", option, FileCacheOption)
	}
}
