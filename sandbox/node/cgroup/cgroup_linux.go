package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// Root is the folder of all hierarchies.
	Root = "/sys/fs/cgroup"
	// systemGroup is of the machine's own programs, below the machine's.
	systemGroup = "system"
	// removalTimeout is how long the kernel may take to let go of killed processes.
	removalTimeout = 20 * time.Second
)

// hierarchies are the folders of the control groups: one in version 2, and in version 1
// one for each controller.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(Root, "cgroup.controllers")); err == nil {
		return []string{Root}, nil
	}
	entries, err := os.ReadDir(Root)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, entry := range entries {
		dir := filepath.Join(Root, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && entry.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// Make makes the machine's control group, and one in it for its own programs.
func Make(name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		for _, group := range []string{name, filepath.Join(name, systemGroup)} {
			if err := os.MkdirAll(filepath.Join(dir, group), 0o755); err != nil {
				return err
			}
			if err := inheritCPUs(filepath.Join(dir, group)); err != nil {
				return err
			}
		}
	}
	return nil
}

// inheritCPUs fills in what a group of version 1 starts without, and no process can be
// in it without.
func inheritCPUs(group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(group), file))
		if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(value)) == "" {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Join puts a process into the group of the machine's own programs.
func Join(name string, pid int) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		procs := filepath.Join(dir, name, systemGroup, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the machine's groups, once the kernel has let go of their processes, all
// of which are killed.
func Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		for {
			err := removeTree(filepath.Join(dir, name))
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("remove the control group %s: %w", name, err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// removeTree removes folders, the inner ones first. The files in them are the kernel's.
func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Find returns the folders of the machine's group in the hierarchies that have it.
func Find(name string) ([]string, error) {
	dirs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, dir := range dirs {
		switch _, err := os.Stat(filepath.Join(dir, name)); {
		case err == nil:
			found = append(found, filepath.Join(dir, name))
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return found, nil
}

// PeakMemory is the most memory, in bytes, that the machine has used so far, its pods and
// its page cache included.
func PeakMemory(name string) (int64, error) {
	for _, file := range []string{
		filepath.Join(Root, name, "memory.peak"),
		filepath.Join(Root, "memory", name, "memory.max_usage_in_bytes"),
	} {
		value, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(value)), 10, 64)
	}
	return 0, fmt.Errorf("there is no control group %s", name)
}
