package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"golang.org/x/term"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp"
	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
	"persia/sandbox/kubeprovider"
	"persia/sandbox/provider"
	"persia/sandbox/toolchain"
)

// The versions of the program's SDKs, with which the providers identify themselves.
const (
	gcpVersion        = "7.38.0"
	kubernetesVersion = "4.30.0"
)

// engine runs one command of the Pulumi CLI, with its providers.
type engine struct {
	sandbox *Sandbox
	cli     *cli
	stack   auto.Stack
	cloud   *gcp.Provider
	// out shows what the CLI says.
	out io.Writer
	// stop ends the servers of the providers, which closes these.
	stop context.CancelFunc
}

// run runs one operation on an engine.
//
// The Pulumi CLI runs in the foreground of the same terminal. An interrupt reaches it
// directly, and it finishes the steps under way; a second one makes it drop them. So the
// end of ctx does not interrupt the CLI, and only [Options.Terminated] does.
func (s *Sandbox) run(ctx context.Context, operation string, do func(context.Context, *engine) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-s.options.Terminated:
			cancel()
		case <-ctx.Done():
		}
	}()
	engine, err := s.newEngine(ctx)
	if err != nil {
		return err
	}
	defer engine.stop()
	if err := do(ctx, engine); err != nil {
		return fmt.Errorf("%s of stack %s: %w", operation, s.options.Stack, brief(err))
	}
	return nil
}

// brief removes the output of the Pulumi CLI, which has been shown already, from an error of the Automation API.
func brief(err error) error {
	if message, _, repeats := strings.Cut(err.Error(), "\ncode: "); repeats {
		return errors.New(message + "; its output is above")
	}
	return err
}

// newEngine serves the providers and selects the stack.
func (s *Sandbox) newEngine(ctx context.Context) (_ *engine, err error) {
	project, err := s.options.copyTo(s.path("project"))
	if err != nil {
		return nil, err
	}
	var cluster *rest.Config // nil while the control plane does not run
	if s.cluster.Running(ctx) {
		if cluster, err = s.cluster.RESTConfig(); err != nil {
			return nil, err
		}
		if err := s.writeAuthPlugin(cluster); err != nil {
			return nil, err
		}
	}
	if err := s.withoutLogs(); err != nil {
		return nil, err
	}
	machines, err := s.options.machines()
	if err != nil {
		return nil, err
	}
	// The CLI may need the providers after ctx has ended.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			stop()
		}
	}()
	container, err := gke.New(google.New(s.storage()), cluster, machines, s.options.Real.Pool)
	if err != nil {
		return nil, err
	}
	cloud, err := gcp.New(gcpVersion, container)
	if err != nil {
		return nil, err
	}
	cloud.Buckets = s.options.Real.Buckets
	providers, err := s.serveProviders(serving, cloud)
	if err != nil {
		return nil, err
	}
	e := &engine{sandbox: s, cloud: cloud, stop: stop, out: s.options.Out}
	// The command looks for bin/pulumi below its root.
	root := filepath.Dir(filepath.Dir(s.options.Tools.Path("pulumi")))
	command, err := auto.NewPulumiCommand(&auto.PulumiCommandOptions{Root: root})
	if err != nil {
		return nil, err
	}
	_, unmade := os.Stat(s.State().File())
	if unmade != nil {
		// A down that was killed while it removed the stack has left its lock.
		if err := s.State().unlock(ctx, s.options.Tools.Path("pulumi")); err != nil {
			return nil, err
		}
	}
	e.cli = &cli{PulumiCommand: command, made: unmade == nil}
	if file, ok := s.options.Out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return nil, err
		}
		most, _, err := s.State().Resources()
		if err != nil {
			return nil, err
		}
		e.out = &progress{out: file, width: width, most: most}
	}
	if e.stack, err = s.selectStack(ctx, project, e.cli, providers); err != nil {
		return nil, err
	}
	return e, nil
}

// cli runs the Pulumi CLI, but skips three commands that the Automation API runs around an update and that take a
// second each: it selects the stack, which every command names, and reads the outputs and the history.
type cli struct {
	auto.PulumiCommand
	// made says that the stack exists.
	made bool
}

func (c *cli) Run(ctx context.Context, dir string, stdin io.Reader, out, errs []io.Writer, env []string,
	args ...string) (string, string, int, error) {
	switch command := strings.Join(args[:min(2, len(args))], " "); {
	case command == "stack select" && c.made:
		return "", "", 0, nil
	case command == "stack output":
		return "{}", "", 0, nil
	case command == "stack history":
		return "[]", "", 0, nil
	}
	return c.PulumiCommand.Run(ctx, dir, stdin, out, errs, env, args...)
}

// serveProviders serves the sandbox's providers until ctx ends, and returns their ports in
// the syntax of PULUMI_DEBUG_PROVIDERS.
func (s *Sandbox) serveProviders(ctx context.Context, cloud *gcp.Provider) (string, error) {
	served, err := provider.Serve(ctx, func() plugin.GrpcProvider { return cloud })
	if err != nil {
		return "", err
	}
	addresses := fmt.Sprintf("gcp:%d", served)
	if toolchain.Official() {
		return addresses, nil
	}
	kube, err := provider.Serve(ctx, func() plugin.GrpcProvider { return kubeprovider.New(kubernetesVersion, s.bin()) })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s,kubernetes:%d", addresses, kube), nil
}

func (s *Sandbox) selectStack(ctx context.Context, project project, cli *cli, providers string) (auto.Stack, error) {
	passphrase, err := s.passphrase()
	if err != nil {
		return auto.Stack{}, err
	}
	if err := os.MkdirAll(s.State().dir, 0o700); err != nil {
		return auto.Stack{}, err
	}
	path := []string{s.bin(), os.Getenv("PATH")}
	if toolchain.Official() {
		path = append(path, string(s.options.Tools))
	}
	workspace, err := auto.NewLocalWorkspace(ctx,
		auto.Pulumi(cli),
		auto.WorkDir(project.dir),
		auto.PulumiHome(s.path("pulumi")),
		auto.Program(s.options.program()),
		auto.SecretsProvider("passphrase"),
		auto.EnvVars(map[string]string{
			"PATH":                     strings.Join(path, string(os.PathListSeparator)),
			"PULUMI_BACKEND_URL":       s.State().url(),
			"PULUMI_CONFIG_PASSPHRASE": passphrase,
			"PULUMI_DEBUG_PROVIDERS":   providers,
			"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
			"PULUMI_SKIP_UPDATE_CHECK":                    "true",
			"PULUMI_DISABLE_CHECKPOINT_BACKUPS":           "true",
			"PULUMI_SUPPRESS_COPILOT_LINK":                "true",
			// With the default, the engine spends a quarter of its time on garbage.
			"GOGC": "400",
		}))
	if err != nil {
		return auto.Stack{}, err
	}
	selected, err := auto.UpsertStack(ctx, s.options.Stack, workspace)
	if err != nil || len(project.secrets) == 0 {
		return selected, err
	}
	return selected, selected.SetAllConfigWithOptions(ctx, project.secrets, &auto.ConfigOptions{Path: true})
}

// checkUnprotected refuses to destroy a stack with protected resources. The engine would
// stop at the first of them, after it has deleted everything that depends on it.
func (e *engine) checkUnprotected(ctx context.Context) error {
	deployment, err := e.export(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, r := range deployment.Resources {
		if r.Protect {
			names = append(names, string(r.URN.Type().Name())+" "+r.URN.Name())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("protected from deletion: %s: set persia:cluster.deletionProtection to false and run up first",
		strings.Join(names, ", "))
}
