package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// libraries are the shared libraries of this machine that programs and libraries of
// it need, with the loader that starts them. What is in own comes with the image by
// another way.
func libraries(ctx context.Context, of []string, own string) (layer, error) {
	found := map[string]bool{}
	for batch := range slices.Chunk(of, 200) {
		output, err := exec.CommandContext(ctx, "ldd", batch...).Output()
		// It ends with failure when one of the files is linked statically, too.
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return nil, fmt.Errorf("ldd: %w", err)
		}
		for _, library := range parseLdd(string(output)) {
			if own == "" || !strings.HasPrefix(library, own+"/") {
				found[library] = true
			}
		}
	}
	return placed(found)
}

// parseLdd returns the paths in what ldd prints. A library that is not found is left
// out: parts of Python's library that nobody uses want libraries of desktops.
func parseLdd(output string) []string {
	var paths []string
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if _, after, ok := strings.Cut(line, " => "); ok {
			line = after
		}
		name, _, ok := strings.Cut(line, " (0x")
		if ok && path.IsAbs(name) {
			paths = append(paths, name)
		}
	}
	return paths
}

// placed puts libraries where the loader looks for them without being told: those of
// the system into their own folder, and others in addition to the C library.
func placed(found map[string]bool) (layer, error) {
	var system string
	for library := range found {
		if path.Base(library) == "libc.so.6" {
			system = path.Dir(library)
		}
	}
	files := layer{}
	for library := range found {
		dir := path.Dir(library)
		if !strings.HasPrefix(dir, "/lib") && !strings.HasPrefix(dir, "/usr/lib") {
			dir = system
		}
		files[inUsr(path.Join(dir, path.Base(library)))] = program(library)
	}
	if system == "" {
		return files, nil
	}
	// The C library loads these by itself, to look names up.
	for _, pattern := range []string{"libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"} {
		names, err := filepath.Glob(path.Join(system, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			files[inUsr(name)] = program(name)
		}
	}
	return files, nil
}

// inUsr is a path in an image whose bin, lib and lib64 are links into usr.
func inUsr(name string) string {
	name = strings.TrimPrefix(name, "/")
	if strings.HasPrefix(name, "usr/") {
		return name
	}
	return path.Join("usr", name)
}
