package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp"
	"persia/sandbox/kubernetes"
	"persia/sandbox/provider"
	"persia/stack"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// The versions that the providers present themselves with: those of the SDKs
// that the program is written with.
const (
	gcpVersion        = "7.38.0"
	kubernetesVersion = "4.30.0"
)

// OfficialKubernetes is the environment variable that, set to "official", makes
// the engine use the official Kubernetes provider: pulumi-resource-kubernetes
// from the PATH, or from Pulumi's plugin cache.
const OfficialKubernetes = "SANDBOX_KUBERNETES_PROVIDER"

// engine is a Pulumi engine for one command, with its providers.
type engine struct {
	sandbox *Sandbox
	stack   auto.Stack
	close   func()
}

// newEngine serves the providers and selects the stack.
func (s *Sandbox) newEngine(ctx context.Context) (*engine, error) {
	project, err := s.writeProject()
	if err != nil {
		return nil, err
	}
	if err := s.writePassphrase(); err != nil {
		return nil, err
	}
	cluster, err := s.restConfig(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.preparePath(cluster); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	providers, err := serveProviders(ctx, cluster)
	if err != nil {
		cancel()
		return nil, err
	}
	selected, err := s.selectStack(ctx, project, providers)
	if err != nil {
		cancel()
		return nil, err
	}
	return &engine{sandbox: s, stack: selected, close: cancel}, nil
}

// restConfig is the control plane's, or nil when it does not run.
func (s *Sandbox) restConfig(ctx context.Context) (*rest.Config, error) {
	if !s.cluster.Running(ctx) {
		return nil, nil
	}
	return s.cluster.RESTConfig()
}

// serveProviders serves the sandbox's providers until ctx ends, and returns
// where, as PULUMI_DEBUG_PROVIDERS wants it.
func serveProviders(ctx context.Context, cluster *rest.Config) (string, error) {
	google, err := provider.ServeEach(ctx, func() plugin.Provider { return gcp.New(gcpVersion, cluster) })
	if err != nil {
		return "", err
	}
	addresses := fmt.Sprintf("gcp:%d", google.Port())
	if officialKubernetes() {
		return addresses, nil
	}
	kube, err := provider.ServeEach(ctx, func() plugin.Provider { return kubernetes.New(kubernetesVersion) })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s,kubernetes:%d", addresses, kube.Port()), nil
}

func officialKubernetes() bool { return os.Getenv(OfficialKubernetes) == "official" }

func (s *Sandbox) selectStack(ctx context.Context, project, providers string) (auto.Stack, error) {
	if err := os.MkdirAll(s.path("state"), 0o700); err != nil {
		return auto.Stack{}, err
	}
	cli, err := auto.NewPulumiCommand(&auto.PulumiCommandOptions{
		// The command looks for bin/pulumi below.
		Root: filepath.Dir(filepath.Dir(s.options.Tools.Pulumi)),
	})
	if err != nil {
		return auto.Stack{}, err
	}
	workspace, err := auto.NewLocalWorkspace(ctx,
		auto.Pulumi(cli),
		auto.WorkDir(project),
		auto.PulumiHome(s.path("pulumi")),
		auto.Program(stack.Deploy),
		auto.EnvVars(map[string]string{
			"PULUMI_BACKEND_URL":                          "file://" + s.path("state"),
			"PULUMI_CONFIG_PASSPHRASE_FILE":               s.path("passphrase"),
			"PULUMI_DEBUG_PROVIDERS":                      providers,
			"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
			"PULUMI_SKIP_UPDATE_CHECK":                    "true",
			"PULUMI_SUPPRESS_COPILOT_LINK":                "true",
		}))
	if err != nil {
		return auto.Stack{}, err
	}
	return auto.UpsertStack(ctx, s.options.Stack, workspace)
}

// recover clears what a killed command left behind. The sandbox's own lock is
// held, so that whoever holds the state's is dead.
func (e *engine) recover(ctx context.Context) error {
	locks, err := e.sandbox.stateLocks()
	if err != nil || len(locks) == 0 {
		return err
	}
	fmt.Fprintf(e.sandbox.options.Out, "an earlier command was killed: reading what exists before going on\n")
	if err := e.stack.Cancel(ctx); err != nil {
		return fmt.Errorf("clear the lock of a killed command: %w", err)
	}
	_, err = e.stack.Refresh(ctx, optrefresh.ProgressStreams(e.sandbox.options.Out), optrefresh.ClearPendingCreates())
	return e.explain("refresh", err)
}

// stateLocks are the lock files in the state's backend.
func (s *Sandbox) stateLocks() ([]string, error) {
	var locks []string
	err := filepath.WalkDir(s.path("state", ".pulumi", "locks"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".json") {
			locks = append(locks, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return locks, err
}

// hasState reports whether the stack was ever brought up.
func (s *Sandbox) hasState() bool {
	_, err := os.Stat(s.path("state", ".pulumi", "stacks"))
	return err == nil
}

// explain names the operation that failed. Pulumi's output, which has been shown
// already, says why.
func (e *engine) explain(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of stack %s: %w", operation, e.sandbox.options.Stack, err)
}

// writePassphrase makes the secret that the stack's state is encrypted with.
func (s *Sandbox) writePassphrase() error {
	path := s.path("passphrase")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return os.WriteFile(path, []byte(rand.Text()), 0o600)
}
