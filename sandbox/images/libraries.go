package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// libraries returns the shared libraries of this machine, including the dynamic loader, that
// programs and libraries load. It omits libraries in the folder own.
func libraries(ctx context.Context, of []string, own string) (Layer, error) {
	found := map[string]bool{}
	for batch := range slices.Chunk(of, 200) {
		output, err := exec.CommandContext(ctx, "ldd", batch...).Output()
		// ldd also fails if one of the files is linked statically.
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return nil, fmt.Errorf("ldd: %w", err)
		}
		for _, library := range parseLdd(string(output)) {
			if own == "" || !strings.HasPrefix(library, own+"/") {
				found[library] = true
			}
		}
	}
	return placed(found), nil
}

// parseLdd returns the paths in the output of ldd. It skips libraries that ldd does not
// find: some modules of Python, such as tkinter, need libraries of a desktop.
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

// placed returns a layer with the libraries in folders that the loader searches by
// default. Libraries from other folders go next to the C library.
func placed(found map[string]bool) Layer {
	var system string
	for library := range found {
		if path.Base(library) == "libc.so.6" {
			system = path.Dir(library)
		}
	}
	files := Layer{}
	for library := range found {
		dir := path.Dir(library)
		if !strings.HasPrefix(dir, "/lib") && !strings.HasPrefix(dir, "/usr/lib") {
			dir = system
		}
		files[inUsr(path.Join(dir, path.Base(library)))] = Program(library)
	}
	// The C library loads these to resolve names, and ldd does not list them.
	for _, name := range []string{"libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"} {
		library := path.Join(system, name)
		if _, err := os.Stat(library); err == nil && system != "" {
			files[inUsr(library)] = Program(library)
		}
	}
	return files
}

// inUsr returns the path of a file in an image where bin, lib, and lib64 are links into usr.
func inUsr(name string) string {
	name = strings.TrimPrefix(name, "/")
	if strings.HasPrefix(name, "usr/") {
		return name
	}
	return path.Join("usr", name)
}
