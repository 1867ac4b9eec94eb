package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"persia/sandbox/process"
)

// kwokctl runs a kwokctl command on this cluster.
func (c *Cluster) kwokctl(ctx context.Context, args ...string) error {
	// The configuration is named in every command, for isKwokctl to see.
	args = append(args, "--name", c.name, "--config", c.configFile())
	cmd := exec.CommandContext(ctx, c.tools.Kwokctl, args...)
	cmd.Dir = c.dir
	cmd.Env = c.environment(os.Environ())
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("kwokctl %s: %w\n%s", strings.Join(args[:2], " "), err, output)
	}
	return nil
}

// environment is kwokctl's, and so the components'. Variables of kwokctl in the
// user's environment would override the configuration.
func (c *Cluster) environment(user []string) []string {
	var environment []string
	for _, variable := range user {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "KWOK_") || name == "KUBECONFIG" || name == "PATH" {
			continue
		}
		environment = append(environment, variable)
	}
	return append(environment, "KWOK_WORKDIR="+c.kwokDir(), "PATH="+c.stubs())
}

// isKwokctl recognises a kwokctl at work on this cluster.
func (c *Cluster) isKwokctl(p process.Process) bool {
	return strings.HasPrefix(p.Command, c.tools.Kwokctl+" ") && strings.Contains(p.Command, " --config "+c.configFile())
}

// kwokDir is kwokctl's folder, and workdir what it calls the cluster's.
func (c *Cluster) kwokDir() string { return filepath.Join(c.dir, "kwok") }
func (c *Cluster) workdir() string { return filepath.Join(c.kwokDir(), "clusters", c.name) }
