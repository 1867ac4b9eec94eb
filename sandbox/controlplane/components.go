package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"persia/sandbox/process"
)

// components are the names that kwokctl gives to binaries, logs and pid files, in the order of their dependencies.
var components = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller",
}

// component returns the name of the component that p is, or "". kwokctl starts each through a link
// in the cluster's own folder, so the path identifies the cluster.
func (f folder) component(p process.Process) string {
	path, _, _ := strings.Cut(p.Command, " --")
	name := filepath.Base(path)
	if path == f.binary(name) && slices.Contains(components, name) {
		return name
	}
	return ""
}

func (f folder) isComponent(p process.Process) bool { return f.component(p) != "" }

// dead returns the components that do not run.
func (f folder) dead() ([]string, error) {
	processes, err := process.Matching(f.isComponent)
	if err != nil {
		return nil, err
	}
	running := map[string]bool{}
	for _, p := range processes {
		running[f.component(p)] = true
	}
	var dead []string
	for _, name := range components {
		if !running[name] {
			dead = append(dead, name)
		}
	}
	return dead, nil
}

// startDead starts the components that do not run.
func (c *Cluster) startDead(ctx context.Context) error {
	dead, err := c.dead()
	if err != nil || len(dead) == 0 {
		return err
	}
	for _, name := range dead {
		// kwokctl takes any process with the recorded id for the component, be it a stranger or a zombie.
		if err := os.Remove(filepath.Join(c.workdir(), "pids", name+".pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		// It also empties the log, which may say why the component died.
		if err := os.Rename(c.log(name), c.log(name)+".previous"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return c.kwokctl(ctx, "start", "cluster")
}

// lastWords describes dead components by the ends of their logs.
func (f folder) lastWords(dead []string) string {
	const size = 2000
	var words strings.Builder
	for _, name := range dead {
		path := f.log(name)
		content, err := os.ReadFile(path)
		if err != nil || len(content) == 0 {
			path += ".previous"
			content, _ = os.ReadFile(path)
		}
		fmt.Fprintf(&words, "%s:\n%s\n", path, content[max(0, len(content)-size):])
	}
	return words.String()
}
