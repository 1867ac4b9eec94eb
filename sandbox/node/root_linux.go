package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"persia/sandbox/node/cgroup"
)

// enterRoot makes the machine's root directory, in the calling process's own mount
// namespace, and enters it. Of the host there are programs and settings in it, to read.
func (o Options) enterRoot() error {
	// Nothing of what follows reaches the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := os.MkdirAll(o.root(), 0o755); err != nil {
		return err
	}
	// A root directory must be a mount.
	if err := bind(o.root(), o.root(), 0); err != nil {
		return err
	}
	for _, step := range []func() error{o.mountHost, o.mountOwn, o.mountKernel, o.pretendSettings} {
		if err := step(); err != nil {
			return err
		}
	}
	return pivot(o.root())
}

// mountHost mounts the host's programs, read-only.
func (o Options) mountHost() error {
	for _, dir := range []string{"usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		info, err := os.Lstat("/" + dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			err = copyLink("/"+dir, o.path(dir))
		default:
			err = bind("/"+dir, o.path(dir), unix.MS_RDONLY)
		}
		if err != nil {
			return err
		}
	}
	if err := bind(filepath.Dir(o.Tools.Kubelet), o.path(programsDir), unix.MS_RDONLY); err != nil {
		return err
	}
	if o.Images == "" {
		return nil
	}
	return bind(o.Images, o.path(imagesDir), unix.MS_RDONLY)
}

// mountOwn mounts what is the machine's alone, and the disks that outlive it. The rest
// of the root directory is its disk.
func (o Options) mountOwn() error {
	if err := os.MkdirAll(o.Disks, 0o755); err != nil {
		return err
	}
	if err := bind(o.Disks, o.path(disksDir), 0); err != nil {
		return err
	}
	for dir, mode := range map[string]fs.FileMode{"root": 0o700, "tmp": 0o777 | fs.ModeSticky, logDir: 0o755, "var/lib": 0o755} {
		if err := os.MkdirAll(o.path(dir), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(o.path(dir), mode); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", o.path("var/run")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return mount("tmpfs", o.path("run"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
}

// mountKernel mounts what the kernel shows of the machine. The control groups and the
// devices are the host's.
func (o Options) mountKernel() error {
	if err := mount("proc", o.path("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("sysfs", o.path("sys"), "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := bind(cgroup.Root, o.path(cgroup.Root), unix.MS_REC); err != nil {
		return err
	}
	return bind("/dev", o.path("dev"), unix.MS_REC)
}

// settings are those of the kernel that a kubelet demands, and would otherwise set for
// the whole host.
var settings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// pretendSettings has the machine read settings that are not so.
func (o Options) pretendSettings() error {
	for name, value := range settings {
		pretended := o.path("run", "settings", name)
		if err := os.MkdirAll(filepath.Dir(pretended), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(pretended, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(pretended, o.path("proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}

// pivot makes root the root directory, and lets go of the old one.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the root directory %s: %w", root, err)
	}
	// The old one lies on top of the new one.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root directory: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// Volumes that are mounted later are to be seen in pods that ask for it.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the mounts: %w", err)
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// bind shows a directory at a second place. The flags may be MS_REC and MS_RDONLY.
func bind(source, target string, flags uintptr) error {
	if err := mount(source, target, "", unix.MS_BIND|flags&unix.MS_REC, ""); err != nil {
		return err
	}
	if flags&unix.MS_RDONLY == 0 {
		return nil
	}
	// Only a second call makes it so.
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount %s at %s to read: %w", source, target, err)
	}
	return nil
}

// copyLink makes the same symbolic link, unless an earlier start has.
func copyLink(from, to string) error {
	destination, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if err := os.Symlink(destination, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
