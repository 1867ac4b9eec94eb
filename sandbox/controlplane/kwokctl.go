package controlplane

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"persia/sandbox/process"
)

// kwokctl runs a kwokctl command on this cluster.
func (c *Cluster) kwokctl(ctx context.Context, args ...string) error {
	// The configuration is named in every command, for isKwokctl to see.
	args = append(args, "--name", c.name, "--config", c.configFile())
	cmd := exec.CommandContext(ctx, c.tools.Path("kwokctl"), args...)
	cmd.Dir = c.dir
	// And so the components': variables of the user would override the configuration.
	cmd.Env = []string{"HOME=" + c.dir, "KWOK_WORKDIR=" + c.kwokDir(), "PATH=" + c.stubs()}
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

// isKwokctl recognises a kwokctl at work on this cluster.
func (c *Cluster) isKwokctl(p process.Process) bool {
	return strings.HasPrefix(p.Command, c.tools.Path("kwokctl")+" ") && strings.Contains(p.Command, " --config "+c.configFile())
}
