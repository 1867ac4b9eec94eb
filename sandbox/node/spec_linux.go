package node

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/moby/sys/capability"
	"github.com/opencontainers/runtime-spec/specs-go"

	"persia/sandbox/files"
)

// bootProgram is the path of this program in the machine.
const bootProgram = "/opt/sandbox"

// bucketsVariable tells that program [Options.Buckets].
const bucketsVariable = "SANDBOX_BUCKETS"

//go:embed runtime.yaml
var runtimeYAML []byte

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
	spec := files.Embedded[specs.Spec]("runtime.yaml", runtimeYAML)()
	spec.Version, spec.Root, spec.Hostname = specs.Version, &specs.Root{Path: o.root()}, node
	spec.Process.Args = append(spec.Process.Args, bootProgram, "machine", "--options", o.Dir)
	spec.Process.Env = append(spec.Process.Env, bucketsVariable+"="+o.Buckets)
	spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities}
	spec.Linux.CgroupsPath = "/" + nameOf(o.Dir)
	own, err := o.mounts(executable)
	spec.Mounts = append(spec.Mounts, own...)
	return &spec, err
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

// mounts returns the file systems of the machine that are not the kernel's: the host's programs and settings, which are
// read-only, and the disks that outlive the machine. Everything else that the machine writes is in its root directory.
func (o Options) mounts(executable string) ([]specs.Mount, error) {
	mounts := []specs.Mount{
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
