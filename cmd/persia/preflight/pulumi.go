package preflight

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// The modules whose versions determine the CLI and the plugins that the program needs.
const (
	pulumiModule     = "github.com/pulumi/pulumi/sdk/v3"
	gcpModule        = "github.com/pulumi/pulumi-gcp/sdk/v7"
	kubernetesModule = "github.com/pulumi/pulumi-kubernetes/sdk/v4"
)

// pulumiChecks check the Pulumi CLI, its plugins, its login, and the stack.
func (p *preflight) pulumiChecks(ctx context.Context) []Check {
	const cli, plugins, backend, stack = "pulumi CLI", "pulumi plugins", "pulumi login", "pulumi stack"
	if !found("pulumi") {
		return []Check{
			missing(cli, "pulumi is not on the PATH", "install it: https://www.pulumi.com/docs/install/"),
			unchecked(plugins, "pulumi is not installed"),
			unchecked(backend, "pulumi is not installed"),
			unchecked(stack, "pulumi is not installed"),
		}
	}
	versions, err := moduleVersions(p.Dir)
	if err != nil {
		return append([]Check{unchecked(cli, err.Error()), unchecked(plugins, err.Error())}, p.backendChecks(ctx, backend, stack)...)
	}
	checks := []Check{p.cliCheck(ctx, cli, versions[pulumiModule])}
	checks = append(checks, p.pluginChecks(ctx, plugins, versions)...)
	return append(checks, p.backendChecks(ctx, backend, stack)...)
}

// moduleVersions returns the versions that go.mod requires, by module. A release has no go.mod, so
// there, Go's record in the compiled program has them.
func moduleVersions(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return compiledVersions(dir)
	}
	if err != nil {
		return nil, err
	}
	file, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, required := range file.Require {
		versions[required.Mod.Path] = required.Mod.Version
	}
	return versions, nil
}

// compiledVersions returns the versions of the modules that the program was compiled from.
func compiledVersions(dir string) (map[string]string, error) {
	binary, err := binaryOf(dir)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(filepath.Join(dir, binary))
	if err != nil {
		return nil, fmt.Errorf("read the versions of the program's modules: %w", err)
	}
	versions := map[string]string{}
	for _, module := range info.Deps {
		versions[module.Path] = module.Version
	}
	return versions, nil
}

// cliCheck compares the CLI with the SDK. An older CLI of the same major version
// mostly works, with fewer features.
func (p *preflight) cliCheck(ctx context.Context, name, sdk string) Check {
	const remedy = "update it: https://www.pulumi.com/docs/install/"
	output, err := p.run(ctx, "pulumi", "version")
	if err != nil {
		return unchecked(name, err.Error())
	}
	version := strings.TrimSpace(string(output))
	if !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	switch {
	case !semver.IsValid(version):
		return unchecked(name, fmt.Sprintf("pulumi version prints %q, which is not a version", version))
	case semver.Compare(semver.Major(version), semver.Major(sdk)) < 0:
		return missing(name, fmt.Sprintf("%s, but the program requires %s", version, sdk), remedy)
	case semver.Compare(semver.MajorMinor(version), semver.MajorMinor(sdk)) < 0:
		return warning(name, fmt.Sprintf("%s, but the program is tested with %s", version, sdk), remedy)
	default:
		return ok(name, version)
	}
}

// pluginChecks look for the provider plugins that match the SDKs in go.mod.
func (p *preflight) pluginChecks(ctx context.Context, name string, versions map[string]string) []Check {
	var installed []struct{ Name, Kind, Version string }
	if err := p.ask(ctx, &installed, "pulumi", "plugin", "ls", "--json"); err != nil {
		return []Check{unchecked(name, err.Error())}
	}
	there := map[string]bool{}
	for _, plugin := range installed {
		if plugin.Kind == "resource" {
			there[plugin.Name+" v"+strings.TrimPrefix(plugin.Version, "v")] = true
		}
	}
	var checks []Check
	for _, wanted := range []string{"gcp " + versions[gcpModule], "kubernetes " + versions[kubernetesModule]} {
		if there[wanted] {
			checks = append(checks, ok(name, wanted))
			continue
		}
		checks = append(checks, warning(name, wanted+" is not installed: the first `pulumi preview` downloads it",
			"pulumi plugin install resource "+wanted))
	}
	return checks
}

// backendChecks check the backend that stores the stack's state.
func (p *preflight) backendChecks(ctx context.Context, name, stack string) []Check {
	const remedy = "pulumi login gs://BUCKET, or pulumi login for Pulumi Cloud"
	url := backendURL(p.Dir)
	if url == "" {
		return []Check{missing(name, "not logged in", remedy), unchecked(stack, "not logged in")}
	}
	if p.Offline && !strings.HasPrefix(url, "file://") {
		return []Check{unchecked(name, "offline: "+url+" was not contacted"), unchecked(stack, "offline")}
	}
	var who struct{ User, URL string }
	if err := p.ask(ctx, &who, "pulumi", "whoami", "--verbose", "--json", "--non-interactive"); err != nil {
		why := url + ": " + err.Error()
		if unreachable(err) {
			return []Check{unchecked(name, why), unchecked(stack, url+" did not answer")}
		}
		return []Check{missing(name, why, remedy), unchecked(stack, "not logged in")}
	}
	return []Check{ok(name, fmt.Sprintf("%s at %s", who.User, cmp.Or(who.URL, url))), p.existsCheck(ctx, stack)}
}

// existsCheck looks for the stack in the backend, and records its number of resources.
func (p *preflight) existsCheck(ctx context.Context, name string) Check {
	var stacks []struct {
		Name          string
		ResourceCount int
	}
	if err := p.ask(ctx, &stacks, "pulumi", "stack", "ls", "--json", "--non-interactive"); err != nil {
		return unchecked(name, err.Error())
	}
	for _, stack := range stacks {
		// Pulumi Cloud prefixes the name with the organization.
		if stack.Name == p.Stack || strings.HasSuffix(stack.Name, "/"+p.Stack) {
			p.resources = stack.ResourceCount
			return ok(name, fmt.Sprintf("%s, with %d resources", stack.Name, stack.ResourceCount))
		}
	}
	return missing(name, p.Stack+" does not exist", "pulumi stack init "+p.Stack)
}

// backendURL returns the URL of the backend that Pulumi uses, looking in the same
// places and order as Pulumi, or "" without one.
func backendURL(dir string) string {
	if url := os.Getenv("PULUMI_BACKEND_URL"); url != "" {
		return url
	}
	if url := projectBackend(dir); url != "" {
		return url
	}
	if url, err := currentLogin(); err == nil && url != "" {
		return url
	}
	if os.Getenv("PULUMI_ACCESS_TOKEN") != "" {
		return "https://api.pulumi.com"
	}
	return ""
}

func projectBackend(dir string) string {
	var project struct {
		Backend struct {
			URL string `json:"url"`
		} `json:"backend"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "Pulumi.yaml"))
	if err != nil || yaml.Unmarshal(text, &project) != nil {
		return ""
	}
	return project.Backend.URL
}

// currentLogin returns the URL of the last `pulumi login`.
func currentLogin() (string, error) {
	home := os.Getenv("PULUMI_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		home = filepath.Join(user, ".pulumi")
	}
	text, err := os.ReadFile(filepath.Join(home, "credentials.json"))
	if err != nil {
		return "", err
	}
	var credentials struct {
		Current string `json:"current"`
	}
	err = json.Unmarshal(text, &credentials)
	return credentials.Current, err
}
