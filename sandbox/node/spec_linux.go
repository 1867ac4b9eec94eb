package node

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/moby/sys/capability"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// bootProgram is the path of this program in the machine.
const bootProgram = "/opt/sandbox"

// bucketsVariable tells that program [Options.Buckets].
const bucketsVariable = "SANDBOX_BUCKETS"

// spec returns the OCI runtime specification of the machine. It requests no OOM score and no resource limits: lowering
// them requires CAP_SYS_RESOURCE, which root lacks in some virtual machines.
func (o Options) spec(node string) (*specs.Spec, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	capabilities, err := ownCapabilities()
	if err != nil {
		return nil, err
	}
	mounts, err := o.mounts(executable)
	if err != nil {
		return nil, err
	}
	return &specs.Spec{
		Version:  specs.Version,
		Root:     &specs.Root{Path: o.root()},
		Hostname: node,
		Process: &specs.Process{
			Cwd: "/",
			// The shell does not replace itself by a command that is not its last.
			Args: []string{"/bin/sh", "-c", `"$@"; exit`, "sh", bootProgram, "machine", "--dir", o.Dir},
			Env:  []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", bucketsVariable + "=" + o.Buckets},
			Capabilities: &specs.LinuxCapabilities{
				Bounding: capabilities, Effective: capabilities, Permitted: capabilities,
			},
		},
		Mounts: mounts,
		Linux: &specs.Linux{
			CgroupsPath: "/" + nameOf(o.Dir),
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.NetworkNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.IPCNamespace}, {Type: specs.CgroupNamespace},
			},
			// Containers in the machine have rules of their own.
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}},
			// The kubelet reads the kernel's log to notice when memory runs out.
			Devices: []specs.LinuxDevice{{Path: "/dev/kmsg", Type: "c", Major: 1, Minor: 11}, {Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}},
		},
	}, nil
}

// ownCapabilities returns the capabilities of this process, which runc can pass on.
func ownCapabilities() ([]string, error) {
	own, err := capability.NewPid2(0)
	if err != nil {
		return nil, err
	}
	if err := own.Load(); err != nil {
		return nil, err
	}
	supported, err := capability.ListSupported()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range supported {
		if own.Get(capability.EFFECTIVE, c) {
			names = append(names, "CAP_"+strings.ToUpper(c.String()))
		}
	}
	return names, nil
}

// mounts returns the machine's file systems: the kernel's, the host's programs and settings, which are read-only, and
// the disks that outlive the machine. Everything else that the machine writes is in its root directory.
func (o Options) mounts(executable string) ([]specs.Mount, error) {
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance",
			"ptmxmode=0666", "mode=620"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "nodev", "mode=1777"}},
		{Destination: "/run", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=755"}},
		{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=1777"}},
		{Destination: disksDir, Type: "bind", Source: o.Disks, Options: []string{"bind"}},
		readOnly(executable, bootProgram),
		readOnly(string(o.Tools), programsDir),
		readOnly(o.Images, imagesDir),
	}
	for _, dir := range hostDirs {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			mounts = append(mounts, readOnly(dir, dir))
		}
	}
	return mounts, nil
}

func readOnly(source, destination string) specs.Mount {
	return specs.Mount{Destination: destination, Type: "bind", Source: source, Options: []string{"bind", "ro"}}
}

// hostDirs are the host's directories with programs, libraries, and settings. On many
// systems, most of them are links to directories in /usr.
var hostDirs = []string{"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// makeRoot creates the machine's root directory, with the host's links in it, unless an earlier start has.
func (o Options) makeRoot() error {
	for _, dir := range []string{o.path(configDir), o.path(logDir), o.Disks} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	links := map[string]string{"/var/run": "/run"}
	for _, dir := range hostDirs {
		if target, err := os.Readlink(dir); err == nil {
			links[dir] = target
		}
	}
	for link, target := range links {
		if err := os.Symlink(target, o.path(link)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
