package input

import (
	"math"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// form says what a string has to be.
type form struct {
	missing string                // what to write instead of an empty string
	wrong   func(string) []string // what is wrong with another string
}

// KMSKeyForm matches a Cloud KMS key, and its location.
var KMSKeyForm = regexp.MustCompile(`^projects/[^/]+/locations/([a-z0-9-]+)/keyRings/[a-zA-Z0-9_-]{1,63}/cryptoKeys/[a-zA-Z0-9_-]{1,63}$`)

var (
	regionForm = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+$`)
	zoneForm   = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-([a-z]|ai[0-9]+[a-z])$`)
)

// forms are the values of the tag form. The generator of the schema knows the forms quantity and bytes.
var forms = map[string]form{
	"":          {"write it", func(string) []string { return nil }},
	"name":      {"write a name", validation.IsDNS1035Label},
	"label":     {"write a name", validation.IsDNS1123Label},
	"subdomain": {"write a name", validation.IsDNS1123Subdomain},
	"qualified": {"write a name", validation.IsQualifiedName},
	"value":     {"write a value", validation.IsValidLabelValue},
	"variable":  {"write a name", validation.IsEnvVarName},
	"time":      {"write a time like 2026-12-01T00:00:00Z", instant},
	"clock":     {"write a time like 03:00", matches(`^([01][0-9]|2[0-3]):[0-5][0-9]$`, "must be a time of day in UTC, like 03:00")},
	"quantity":  {"write a quantity like 500m", amount(1, math.MaxInt64, "must be a quantity like 500m, more than 0, and below 8Ei")},
	"bytes": {"write a quantity like 10Gi",
		amount(1<<20, 1<<60, "must be a quantity from 1Mi to 1Ei; without a unit it is in bytes, so write one, like 10Gi")},
	"directory": {"write an absolute path, like /checkpoints", directory},
	"region":    {"write a region, like us-central1", region},
	"file": {"write the absolute path of the file in the containers, like /workspace/config.yml",
		must(path.IsAbs, "must be the absolute path of the file in the containers, like /workspace/config.yml")},
	"bucket": {"write the name of the bucket", bucket},
	"prefix": {"write a directory in the bucket, like criteo/", matches(`^([^/]+/)+$`,
		"must be a directory in the bucket, without a leading slash and with one at the end, like criteo/")},
	"below":   {"write a path", must(isBelow, "must be a path below the volume's root, without a leading / and without ..")},
	"address": {"write an address like 10.0.0.2", must(isAddress, "must be an address like 10.0.0.2")},
	"host": {"write the server's address or name, like 10.0.0.2",
		must(isHost, "must be an address like 10.0.0.2, or a name like nfs.example.com")},
	"location": {"write the zone or region of the instance, as `gcloud filestore instances list` shows it",
		must(isLocation, "must be a zone, like us-central1-a, or a region, like us-central1")},
	"project": {"write the id of the Google Cloud project, like my-project-123", matches(`^[a-z][a-z0-9-]{4,28}[a-z0-9]$`,
		"must be a project id: 6 to 30 lower case letters, digits and hyphens, the first a letter and the last no hyphen; "+
			"`gcloud projects list` shows yours")},
	"kmsKey": {"write a key", must(KMSKeyForm.MatchString,
		"must be a Cloud KMS key without a version, as projects/P/locations/L/keyRings/R/cryptoKeys/K; `gcloud kms keys list` lists yours")},
	"iqn": {"write the name of the target, like iqn.2001-04.com.example:checkpoints", matches( // RFC 3720, 3.2.6.3
		`^(iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(:.*)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{32})$`,
		"must be the name of a target, like iqn.2001-04.com.example:checkpoints")},
}

// Form reports a string that is empty or does not have a form.
func Form(p *Problems, at *field.Path, name, text string) {
	form, known := forms[name]
	switch {
	case !known:
		panic("unknown form " + name) // a mistake in a tag
	case text == "":
		p.Required(at, "%s", form.missing)
	default:
		p.InvalidFor(at, text, form.wrong(text))
	}
}

// must returns a check with a message for all texts that are not valid.
func must(valid func(string) bool, message string) func(string) []string {
	return func(text string) []string {
		if valid(text) {
			return nil
		}
		return []string{message}
	}
}

func matches(pattern, message string) func(string) []string {
	return must(regexp.MustCompile(pattern).MatchString, message)
}

// bucketForm is from Cloud Storage, "Bucket naming requirements".
var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`)

func bucket(text string) []string {
	name, folder, _ := strings.Cut(strings.TrimPrefix(text, "gs://"), "/")
	if folder = strings.Trim(folder, "/"); folder != "" && bucketForm.MatchString(name) {
		return []string{"must be only the name of a bucket; write " + name + ", and only-dir=" + folder + " in mountOptions of the volume"}
	}
	return must(bucketForm.MatchString, "must be only the name of a bucket, without gs://: 3 to 63 lower case letters, digits, hyphens, "+
		"underscores, and dots, with a letter or digit at both ends")(text)
}

func isBelow(text string) bool {
	return !path.IsAbs(text) && !slices.Contains(strings.Split(text, "/"), "..")
}

func isAddress(text string) bool { return net.ParseIP(text) != nil }

func isHost(text string) bool {
	return isAddress(text) || len(validation.IsDNS1123Subdomain(text)) == 0
}

func isLocation(text string) bool { return IsRegion(text) || zoneForm.MatchString(text) }

// amount checks a quantity, whose value is rounded up.
func amount(least, most int64, message string) func(string) []string {
	return func(text string) []string {
		q, err := ParseQuantity(text)
		return must(func(string) bool { return err == nil && q.Value() >= least && q.CmpInt64(most) <= 0 }, message)(text)
	}
}

// instant checks a time in UTC and whole seconds, as GKE returns it. With any other form, every preview would show a
// change.
func instant(text string) []string {
	t, err := time.Parse(time.RFC3339, text)
	switch utc := t.UTC().Format(time.RFC3339); {
	case err != nil:
		return []string{"must be a time like 2026-12-01T00:00:00Z"}
	case text != utc:
		return []string{"must be in UTC and in whole seconds; write " + utc}
	}
	return nil
}

// directory checks the absolute, clean path of a directory other than the root.
func directory(text string) []string {
	switch {
	case !path.IsAbs(text):
		return []string{"must be absolute; write " + path.Join("/", text)}
	case path.Clean(text) != text:
		return []string{"must be a path without ., .., repeated slashes, or a trailing slash; write " + path.Clean(text)}
	case text == "/":
		return []string{"must be a directory below the root, like /checkpoints"}
	case strings.Contains(text, ":"):
		return []string{"must not contain a colon; rename the directory"}
	}
	return nil
}

func region(text string) []string {
	switch {
	case zoneForm.MatchString(text):
		return []string{"is a zone; write the region, " + gcp.RegionOf(text) + ", and the zone in zones"}
	case !IsRegion(text):
		return []string{"must be a region, like us-central1"}
	}
	return nil
}

// IsRegion reports whether a text has the form of a region.
func IsRegion(text string) bool { return regionForm.MatchString(text) }

// Zones checks the zones of a region, unless it is invalid.
func Zones(p *Problems, at *field.Path, region string, zones []string) {
	for i, zone := range zones {
		if IsRegion(region) && (!zoneForm.MatchString(zone) || gcp.RegionOf(zone) != region) {
			p.Invalid(at.Index(i), zone, "must be a zone of the region %s, like %s-a", region, region)
		}
	}
	Unique(p, at, "", zones)
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
