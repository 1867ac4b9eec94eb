package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// TestTemplate makes a project of the repository by `pulumi new`, and previews it.
func TestTemplate(t *testing.T) {
	nightly(t)
	t.Parallel()
	template := copyRepository(t)
	p := newProject(t)
	output := p.pulumi(t, "new", template, "--yes", "--stack", "dev", "--config-path",
		"-c", "persia:project=answered-123", "-c", "persia:cluster.name=mine")
	assert.Contains(t, output, "pulumi config set --path persia:cluster.region", "the quickstart text")
	text, err := os.ReadFile(filepath.Join(p.dir, "Pulumi.dev.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "# ", "comments stay")
	p.pulumi(t, "config", "set", "--path", "persia:cluster.zones[0]", "us-central1-f")
	p.preview(t, "dev")
	p.pulumi(t, "stack", "init", "other", "--copy-config-from", "dev")
	assert.Equal(t, "mine\n", p.pulumi(t, "config", "get", "--path", "persia:cluster.name", "--stack", "other"))
	p.preview(t, "other")
}

// copyRepository copies the files of a clone, without generated ones.
func copyRepository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "template")
	made := []string{".git", ".sandbox", "bin", "dist"}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, path)
		if err != nil {
			return err
		}
		if slices.Contains(made, relative) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		to := filepath.Join(dir, relative)
		if entry.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, info.Mode().Perm())
	})
	require.NoError(t, err)
	return dir
}

// project is a folder with a Pulumi CLI of its own, which is logged in to a folder.
type project struct {
	dir         string
	environment []string
}

func newProject(t *testing.T) project {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"project", "state", "home"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	return project{
		dir: filepath.Join(dir, "project"),
		environment: append(os.Environ(),
			"PULUMI_HOME="+filepath.Join(dir, "home"),
			"PULUMI_BACKEND_URL=file://"+filepath.Join(dir, "state"),
			"PULUMI_CONFIG_PASSPHRASE=template",
			"PULUMI_SKIP_UPDATE_CHECK=true",
			"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true",
			fmt.Sprintf("PULUMI_DEBUG_LANGUAGES=go:%d", serveLanguage(t)),
		),
	}
}

func (p project) pulumi(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command(tools.Path("pulumi"), args...)
	command.Dir, command.Env = p.dir, p.environment
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.Output()
	require.NoError(t, err, "pulumi %s\n%s%s", strings.Join(args, " "), stdout, &stderr)
	return string(stdout)
}

// preview runs the program over the project's files, as they are.
func (p project) preview(t *testing.T, stack string) {
	t.Helper()
	s := newSandboxOf(t, p.dir, t.TempDir(), stack)
	result, err := s.Preview(context.Background())
	require.NoError(t, err)
	assert.NotEmpty(t, result.ChangeSummary["create"])
}

// language replaces Pulumi's language host of Go, which comes with the CLI's releases. It asks
// nothing and installs nothing.
type language struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
}

// serveLanguage serves the stand-in until the test ends, and returns its port.
func serveLanguage(t *testing.T) int {
	t.Helper()
	cancel := make(chan bool)
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Cancel: cancel,
		Init: func(server *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(server, language{})
			return nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { close(cancel) })
	return handle.Port
}

func (language) Handshake(context.Context, *pulumirpc.LanguageHandshakeRequest) (*pulumirpc.LanguageHandshakeResponse, error) {
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (language) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "3.250.0"}, nil
}

func (language) RuntimeOptionsPrompts(context.Context, *pulumirpc.RuntimeOptionsRequest) (*pulumirpc.RuntimeOptionsResponse, error) {
	return &pulumirpc.RuntimeOptionsResponse{}, nil
}

func (language) Template(context.Context, *pulumirpc.TemplateRequest) (*pulumirpc.TemplateResponse, error) {
	return &pulumirpc.TemplateResponse{}, nil
}

func (language) GetRequiredPackages(context.Context, *pulumirpc.GetRequiredPackagesRequest) (*pulumirpc.GetRequiredPackagesResponse, error) {
	return &pulumirpc.GetRequiredPackagesResponse{}, nil
}

func (language) InstallDependencies(*pulumirpc.InstallDependenciesRequest, grpc.ServerStreamingServer[pulumirpc.InstallDependenciesResponse]) error {
	return nil
}
