package input

import (
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

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

// FileSystem warns of a file system with capitals. A driver may know more than the program.
func FileSystem(p *Problems, at *field.Path, fsType string) {
	if lower := strings.ToLower(fsType); lower != fsType {
		p.Warn(at, "%s has capitals, which no file system has; write %s", fsType, lower)
	}
}

// SubPath checks an optional path below the root of a volume.
func SubPath(p *Problems, at *field.Path, below string) {
	if path.IsAbs(below) || slices.Contains(strings.Split(below, "/"), "..") {
		p.Invalid(at, below, "must be a path below the volume's root, without a leading / and without ..")
	}
}

// Port checks a port number.
func Port(p *Problems, at *field.Path, port int) {
	for _, message := range validation.IsValidPortNum(port) {
		p.Invalid(at, port, "%s; omit it for the default", message)
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

// mountOptions are the options of all file systems (mount(8)), and of NFS (nfs(5)) and Cloud
// Storage FUSE (gcsfuse --help), without values.
var mountOptions = map[string][]string{
	"":        strings.Fields("async atime bind context defaults dev diratime dirsync discard exec fscontext lazytime mand noatime nodev nodiratime noexec norelatime nosuid relatime remount ro rw strictatime suid sync"),
	"nfs":     strings.Fields("ac acdirmax acdirmin acl acregmax acregmin actimeo bg bsize clientaddr cto fg fsc hard intr local_lock lock lookupcache max_connect migration minorversion mountaddr mounthost mountport mountproto mountvers namlen nconnect nfsvers noac noacl nocto nofsc nointr nolock nordirplus noresvport nosharecache nosharetransport nfs4 port proto rdirplus rdma resvport retrans retry rsize sec sharecache sloppy soft softerr softreval tcp timeo trunkdiscovery udp v3 v4 v4.0 v4.1 v4.2 vers wsize xprtsec"),
	"gcsFuse": strings.Fields("allow_other anonymous-access app-name billing-project cache-dir client-protocol custom-endpoint debug_fs debug_fuse debug_fuse_errors debug_gcs debug_http debug_invariants debug_mutex dir-mode enable-hns enable-nonexistent-type-cache enable-streaming-writes experimental-enable-json-read experimental-local-file-cache file-cache file-mode file_mode dir_mode foreground gcs-connection gid http-client-timeout ignore-interrupts implicit-dirs implicit_dirs kernel-list-cache-ttl-secs key-file limit-bytes-per-sec limit-ops-per-sec log-file log-format log-severity logging max-conns-per-host max-idle-conns-per-host max-retry-duration max-retry-sleep metadata-cache metadata-cache-ttl-secs mount-options only-dir read read_ahead_kb rename-dir-limit retry-multiplier reuse-token-from-url sequential-read-size-mb stat-cache-capacity stat-cache-max-size-mb stat-cache-ttl temp-dir token-url type-cache-max-size-mb type-cache-ttl uid write"),
}

// MountOption warns of a mount option that looks misspelt. The file system is nfs,
// gcsFuse, or another.
func MountOption(p *Problems, path *field.Path, option, fileSystem string) {
	name, _, _ := strings.Cut(option, "=")
	name, _, _ = strings.Cut(name, ":") // gcsfuse has options like implicit-dirs:true
	switch near := Typo(name, slices.Concat(mountOptions[""], mountOptions[fileSystem])); {
	case strings.TrimLeft(option, "- ") != option || strings.Contains(name, " "):
		p.Warn(path, "%q is not an option alone; write each option as an element of its own, without -o and hyphens, like %s", option, strings.TrimLeft(strings.TrimPrefix(option, "-o "), "- "))
	case len(near) > 0:
		p.Warn(path, "%s is not an option that the program knows; did you mean %s? A volume with an unknown option may never be mounted", name, Or(near))
	case fileSystem == "gcsFuse":
		warnOfValue(p, path, option)
	}
}

// gcsFuseValues are the forms of values of Cloud Storage FUSE's options (gcsfuse --help).
var gcsFuseValues = map[string]struct {
	form *regexp.Regexp
	want string
}{
	"uid":       {regexp.MustCompile(`^-?\d+$`), "the number of a user, like uid=1000"},
	"gid":       {regexp.MustCompile(`^-?\d+$`), "the number of a group, like gid=1000"},
	"file-mode": {regexp.MustCompile(`^[0-7]{3,4}$`), "an octal mode, like file-mode=644"},
	"dir-mode":  {regexp.MustCompile(`^[0-7]{3,4}$`), "an octal mode, like dir-mode=755"},
	"only-dir":  {regexp.MustCompile(`^[^/]`), "a directory of the bucket without a leading slash, like only-dir=clicks"},
}

// warnOfValue warns of a value that Cloud Storage FUSE cannot use.
func warnOfValue(p *Problems, path *field.Path, option string) {
	name, value, _ := strings.Cut(option, "=")
	if rule, ok := gcsFuseValues[name]; ok && !rule.form.MatchString(value) {
		p.Warn(path, "%s needs %s, or pods that mount the bucket do not start", option, rule.want)
	}
}

// documentation are the ranges that no machine has (RFC 5737, RFC 3849, and RFC 9637).
var documentation = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("3fff::/20"),
}

// Documentation reports whether an address is in a range for examples in documentation.
func Documentation(address netip.Addr) bool {
	return slices.ContainsFunc(documentation, func(r netip.Prefix) bool { return r.Contains(address.Unmap()) })
}

// WarnOfDocumentation warns of an address, or a range in CIDR notation, that no machine has, and
// returns whether it is one. Remedy says what to write.
func WarnOfDocumentation(p *Problems, at *field.Path, text, remedy string) bool {
	address, err := netip.ParseAddr(text)
	if prefix, bad := netip.ParsePrefix(text); err != nil && bad == nil {
		address = prefix.Addr()
	}
	if !Documentation(address) {
		return false
	}
	p.Warn(at, "%s is reserved for examples in documentation, and no machine has such an address; %s", text, remedy)
	return true
}

// punctuation maps characters that editors and web pages write to the ones they resemble.
var punctuation = map[rune]string{
	'‐': "a hyphen", '‑': "a hyphen", '‒': "a hyphen", '–': "a hyphen", '—': "a hyphen", '−': "a hyphen",
	'‘': "a quote", '’': "a quote", '“': "a quote", '”': "a quote", '„': "a quote",
}

// lookalike returns the first character of a text that looks like another one, and the other one. A
// letter of another alphabet counts only in a word with Latin letters.
func lookalike(text string) (character rune, like string, found bool) {
	var latin bool // the word has Latin letters
	var other rune // the first Cyrillic or Greek letter of the word, or 0
	for _, r := range text {
		switch {
		case punctuation[r] != "":
			return r, punctuation[r], true
		case r != ' ' && unicode.Is(unicode.Zs, r):
			return r, "a space", true
		case unicode.Is(unicode.Cf, r):
			return r, "nothing", true
		case r >= '！' && r <= '～':
			return r, string(r - '！' + '!'), true
		case !unicode.IsLetter(r):
			latin, other = false, 0
		case unicode.Is(unicode.Latin, r):
			latin = true
		case other == 0 && unicode.In(r, unicode.Cyrillic, unicode.Greek):
			other = r
		}
		if latin && other != 0 {
			return other, "a Latin letter", true
		}
	}
	return 0, "", false
}
