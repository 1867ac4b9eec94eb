package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

const (
	// startTimeout is how long the control plane may take to become ready. It takes about
	// five seconds on an idle machine.
	startTimeout = 3 * time.Minute
	// stopGrace is zero: Stop removes everything that a component could save at its end, and the
	// API server would wait for its watchers.
	stopGrace = 0
)

// Cluster is a control plane whose files lie in one folder.
type Cluster struct {
	folder
	tools toolchain.Tools
	// ResumeTimeout is how long a control plane that was ready before may take to become ready
	// again. New sets it to three minutes.
	ResumeTimeout time.Duration
}

// New returns the cluster of the given name in dir, which need not exist and holds nothing else. The
// context of the kubeconfig has the same name.
func New(dir, name string, tools toolchain.Tools) *Cluster {
	// Paths are handed to processes with other working directories. Abs fails
	// only when this process has none; then so does all that follows.
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &Cluster{folder: folder{dir, name}, tools: tools, ResumeTimeout: startTimeout}
}

// Start creates the control plane, or starts the components of an existing one that do not run, and
// returns when it is ready.
func (c *Cluster) Start(ctx context.Context, progress io.Writer) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("control plane %s: %w", c.name, err)
	}
	unlock, err := process.Lock(ctx, c.lockFile())
	if err != nil {
		return fmt.Errorf("control plane %s: %w", c.name, err)
	}
	defer unlock()

	created := c.created()
	if created && c.healthy(ctx) == nil {
		return nil
	}
	timeout := startTimeout
	if created {
		timeout = c.ResumeTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	started := time.Now()
	fmt.Fprintf(progress, "control plane: starting …\n")
	if created {
		err = c.resume(ctx)
	} else {
		err = c.create(ctx)
	}
	if err != nil {
		return fmt.Errorf("start control plane %s: %w", c.name, err)
	}
	fmt.Fprintf(progress, "control plane: ready after %s\n", time.Since(started).Round(100*time.Millisecond))
	return nil
}

// create makes the cluster from nothing. The kubeconfig is written last, and marks a complete creation.
func (c *Cluster) create(ctx context.Context) error {
	// Left by an interrupted creation.
	if err := c.remove(ctx); err != nil {
		return err
	}
	if err := c.writeConfig(); err != nil {
		return err
	}
	// Without leases: a restarted kwok would leave the nodes alone until the leases that it held before expire, minutes
	// later. The configuration file cannot say zero.
	if err := c.kwokctl(ctx, "create", "cluster", "--kubeconfig", "", "--node-lease-duration-seconds", "0"); err != nil {
		return err
	}
	if err := c.awaitHealth(ctx); err != nil {
		return err
	}
	return c.writeKubeconfig()
}

// resume starts the components that do not run.
func (c *Cluster) resume(ctx context.Context) error {
	if err := c.startDead(ctx); err != nil {
		return err
	}
	return c.awaitHealth(ctx)
}

// Stop ends every process of the control plane and removes its files. It does so as well when some or all processes are
// dead or the creation was interrupted, and nothing when there is no control plane.
func (c *Cluster) Stop(ctx context.Context) error {
	if _, err := os.Stat(c.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	unlock, err := process.Lock(ctx, c.lockFile())
	if err != nil {
		return fmt.Errorf("control plane %s: %w", c.name, err)
	}
	defer unlock()
	if err := c.remove(ctx); err != nil {
		return fmt.Errorf("stop control plane %s: %w", c.name, err)
	}
	if err := os.Remove(c.lockFile()); err != nil {
		return fmt.Errorf("stop control plane %s: %w", c.name, err)
	}
	// Remove the folder too, unless it contains something else.
	_ = os.Remove(c.dir)
	return nil
}

// Running reports whether every component runs. The API server may be too busy to answer in time,
// or report that it is not ready.
func (c *Cluster) Running(ctx context.Context) bool { return c.created() && running(c.healthy(ctx)) }

// running is [Cluster.Running] for a result of [Cluster.healthy].
func running(health error) bool {
	var dead errDead
	return !errors.As(health, &dead) && !utilnet.IsConnectionRefused(health)
}

func (c *Cluster) created() bool {
	_, err := os.Stat(c.Kubeconfig())
	return err == nil
}

// remove ends the processes and removes all files but the lock.
func (c *Cluster) remove(ctx context.Context) error {
	// kwokctl first: it may be starting components still.
	for _, match := range []func(process.Process) bool{c.isKwokctl, c.isComponent} {
		processes, err := process.Matching(match)
		if err != nil {
			return err
		}
		if err := process.Stop(ctx, stopGrace, processes...); err != nil {
			return err
		}
	}
	for _, name := range []string{"kubeconfig", "kwokctl.yaml", "audit-policy.yaml", "stages.yaml", "egress.yaml", "proxy", "stubs", "kwok"} {
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	return nil
}
