package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

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

const (
	healthInterval = 100 * time.Millisecond
	healthTimeout  = 3 * time.Second
	// restartInterval is the least time between two attempts to start what died during the start. The controller
	// manager gives up when the API server is not there within ten seconds, as on a busy machine.
	restartInterval = 2 * time.Second
)

// errDead says that components do not run.
type errDead []string

func (e errDead) Error() string { return strings.Join(e, ", ") + ": not running" }

// healthy returns nil if every component runs and the API server and the controllers work.
func (c *Cluster) healthy(ctx context.Context) error {
	dead, err := c.dead()
	if err != nil {
		return err
	}
	if len(dead) != 0 {
		return errDead(dead)
	}
	_, client, err := c.Access()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if err := client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	// Its controllers make it, and no pod can be created before.
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	return nil
}

// awaitHealth waits until the control plane is healthy, and starts what dies meanwhile again.
func (c *Cluster) awaitHealth(ctx context.Context) error {
	lastStart := time.Now()
	var dead errDead
	var last error
	err := wait.PollUntilContextCancel(ctx, healthInterval, true, func(ctx context.Context) (bool, error) {
		dead, last = nil, c.healthy(ctx)
		if errors.As(last, &dead) && time.Since(lastStart) > restartInterval {
			lastStart = time.Now()
			err := c.startDead(ctx)
			last = errors.Join(last, err)
			return false, err
		}
		return last == nil, nil
	})
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w: %w\n%s", context.Cause(ctx), last, c.lastWords(dead))
	}
	return err
}
