// Package controlplane runs a Kubernetes control plane on this machine: etcd, the API server, the controller manager
// and the scheduler are the real ones, and kwok plays the kubelets of the nodes annotated kwok.x-k8s.io/node=fake. All
// of them listen on the loopback interface only.
//
// kwokctl writes the certificates and starts the processes. This package adds what kwokctl does not check: which
// process a recorded id belongs to, whether a creation was interrupted, and whether a component survives its start.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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

// New returns the cluster of the given name in dir, an absolute path, which need not exist and holds nothing else. The
// context of the kubeconfig has the same name.
func New(dir, name string, tools toolchain.Tools) *Cluster {
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
	if !created {
		err = c.create(ctx)
	} else if err = c.startDead(ctx); err == nil {
		err = c.awaitHealth(ctx)
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
	if err = c.remove(ctx); err == nil {
		err = os.Remove(c.lockFile())
	}
	if err != nil {
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

// RESTConfig returns the administrator's access to a cluster, also before its creation is complete. Requests
// are not rate limited: the API server is on this machine and protects itself.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kwokctlKubeconfig())
	if err == nil {
		// client-go keeps reading certificate files again, and complains of each
		// that is gone when the control plane is.
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return nil, fmt.Errorf("control plane %s: %w", c.name, err)
	}
	config.CAFile, config.CertFile, config.KeyFile = "", "", ""
	config.QPS = -1
	return config, nil
}

// Access returns the administrator's access to a cluster, and a client with it.
func (c *Cluster) Access() (*rest.Config, kubernetes.Interface, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	return config, client, err
}

// writeKubeconfig writes kwokctl's kubeconfig with the certificates in it, so
// that it is one file to copy and to protect.
func (c *Cluster) writeKubeconfig() error {
	source, err := clientcmd.LoadFromFile(c.kwokctlKubeconfig())
	if err != nil {
		return err
	}
	if err := clientcmd.ResolveLocalPaths(source); err != nil {
		return err
	}
	if err := clientcmdapi.FlattenConfig(source); err != nil {
		return err
	}
	content, err := clientcmd.Write(*source)
	if err != nil {
		return err
	}
	// Written at once or not at all: its existence marks a complete creation.
	return renameio.WriteFile(c.Kubeconfig(), content, 0o600)
}
