package check

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
