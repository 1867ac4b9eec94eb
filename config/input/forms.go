package input

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

var (
	regionForm  = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+$`)
	zoneForm    = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-([a-z]|ai[0-9]+[a-z])$`)
	projectForm = regexp.MustCompile(`^[a-z][a-z0-9-]{4,28}[a-z0-9]$`)
	keyForm     = regexp.MustCompile(`^projects/[^/]+/locations/([a-z0-9-]+)/keyRings/[a-zA-Z0-9_-]{1,63}/cryptoKeys/[a-zA-Z0-9_-]{1,63}$`)
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

// Region checks the name of a Google Cloud region.
func Region(p *Problems, at *field.Path, region string) {
	switch {
	case region == "":
		p.Required(at, "write a region, like us-central1")
	case zoneForm.MatchString(region):
		p.Invalid(at, region, "is a zone; write the region, %s, and the zone in zones", gcp.RegionOf(region))
	case !regionForm.MatchString(region):
		p.Invalid(at, region, "must be a region, like us-central1")
	}
}

// Zones checks the zones of a region, which must differ.
func Zones(p *Problems, at *field.Path, region string, zones []string) {
	for i, zone := range zones {
		Zone(p, at.Index(i), region, zone)
	}
	Once(p, at, zones, "write each zone once")
}

// Zone checks that a zone is in a region, unless the region is invalid.
func Zone(p *Problems, at *field.Path, region, zone string) {
	if IsRegion(region) && (!zoneForm.MatchString(zone) || gcp.RegionOf(zone) != region) {
		p.Invalid(at, zone, "must be a zone of the region %s, like %s-a", region, region)
	}
}

// KMSKey checks an optional Cloud KMS key, and that it is in one of the locations from which
// user, a Google Cloud service, accepts keys. It skips the location if the region of the
// cluster is invalid.
func KMSKey(p *Problems, at *field.Path, key, user, region string, locations ...string) {
	form := keyForm.FindStringSubmatch(key)
	switch {
	case key == "":
	case form == nil:
		p.Invalid(at, key, "must be a Cloud KMS key without a version, as projects/P/locations/L/keyRings/R/cryptoKeys/K; `gcloud kms keys list` lists yours")
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

// Annotations checks the keys of annotations, whose case Kubernetes ignores.
func Annotations(p *Problems, at *field.Path, annotations map[string]string) {
	for key := range annotations {
		p.InvalidFor(at.Key(key), key, validation.IsQualifiedName(strings.ToLower(key)))
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

// Location checks that a text has the form of a zone or a region.
func Location(p *Problems, at *field.Path, location string) {
	if !regionForm.MatchString(location) && !zoneForm.MatchString(location) {
		p.Invalid(at, location, "must be a zone, like us-central1-a, or a region, like us-central1")
	}
}

// Bytes checks an amount of memory or storage.
func Bytes(p *Problems, at *field.Path, amount string) {
	switch q, err := ParseQuantity(amount); {
	case amount == "":
		p.Required(at, "write a quantity like 10Gi")
	case err != nil:
		p.Invalid(at, amount, "%s", err)
	case q.CmpInt64(1<<20) < 0 || q.CmpInt64(1<<60) > 0:
		p.Invalid(at, amount, "must be from 1Mi to 1Ei; without a unit it is in bytes, so write one, like 10Gi")
	}
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
	}
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
	if bucket && strings.HasPrefix(option, FileCacheOption+"-") {
		p.Warn(path, "%s may fill the disk of the node, and Kubernetes then evicts pods; write a limit, like %s10240, which the capacity plan counts", option, FileCacheOption)
	}
}

// FileCacheOption begins the option that turns the file cache of a bucket on.
const FileCacheOption = "file-cache:max-size-mb:"
