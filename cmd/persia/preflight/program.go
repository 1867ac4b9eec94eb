package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// programCheck checks that Pulumi can compile the program, or can run the binary that
// Pulumi.yaml names.
func (p *preflight) programCheck() Check {
	const name, remedy = "program", "make build"
	binary, err := binaryOf(p.Dir)
	if err != nil {
		return unchecked(name, err.Error())
	}
	if binary == "" {
		return compilerCheck(name)
	}
	built, err := os.Stat(filepath.Join(p.Dir, binary))
	if errors.Is(err, fs.ErrNotExist) {
		return missing(name, binary+", which Pulumi runs, does not exist", remedy)
	}
	if err != nil {
		return unchecked(name, err.Error())
	}
	if newer := newest(p.Dir); newer.time.After(built.ModTime()) {
		return warning(name, fmt.Sprintf("%s is older than %s, and Pulumi runs it without compiling it", binary, newer.path), remedy)
	}
	return ok(name, binary+" is newer than its sources")
}

// compilerCheck checks that Pulumi finds the go command.
func compilerCheck(name string) Check {
	if _, err := exec.LookPath("go"); err != nil {
		return missing(name, "Pulumi compiles the program with go, which is not on the PATH", "install it: https://go.dev/doc/install")
	}
	return ok(name, "Pulumi compiles the program")
}

// binaryOf returns the path of the binary that Pulumi.yaml names, relative to the
// project, or "" if Pulumi compiles the program.
func binaryOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "Pulumi.yaml"))
	if err != nil {
		return "", err
	}
	var project struct {
		Runtime struct {
			Options struct {
				Binary string `json:"binary"`
			} `json:"options"`
		} `json:"runtime"`
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		return "", fmt.Errorf("read Pulumi.yaml: %w", err)
	}
	return project.Runtime.Options.Binary, nil
}

// source is a file that the program is compiled from.
type source struct {
	path string
	time time.Time
}

// notSources are folders without sources of the program.
var notSources = []string{"bin", "docs", "sandbox", "tests", "testdata", "cmd", "preflight"}

// newest returns the source that was changed last. Other files next to the Go files of
// a package may be embedded in it.
func newest(dir string) source {
	last := source{}
	// The compiler reports files that cannot be read.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && path != dir
			if hidden || slices.Contains(notSources, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		inRoot := filepath.Dir(path) == filepath.Clean(dir)
		if !isSource(entry.Name(), inRoot) {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(last.time) {
			relative, _ := filepath.Rel(dir, path)
			last = source{relative, info.ModTime()}
		}
		return nil
	})
	return last
}

func isSource(name string, inRoot bool) bool {
	switch {
	case strings.HasSuffix(name, "_test.go"):
		return false
	case inRoot:
		return strings.HasSuffix(name, ".go") || name == "go.mod" || name == "go.sum"
	default:
		return true
	}
}
