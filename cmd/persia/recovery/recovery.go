// Package recovery completes the state of a stack after a killed `pulumi up`: it imports what was being
// created and exists, and forgets the rest.
package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Pulumi runs a command of the Pulumi CLI, and returns its standard output. An error has all that the
// command prints.
type Pulumi func(ctx context.Context, args ...string) (string, error)

// CLI returns the Pulumi CLI on the PATH for a stack of the project in a folder.
func CLI(dir, stack string) Pulumi {
	return func(ctx context.Context, args ...string) (string, error) {
		command := exec.CommandContext(ctx, "pulumi", append(args, "--stack", stack, "--non-interactive", "--color", "never")...)
		command.Dir = dir
		var stdout, stderr strings.Builder
		command.Stdout, command.Stderr = &stdout, &stderr
		if err := command.Run(); err != nil {
			return "", fmt.Errorf("%w\n%s%s", err, &stdout, &stderr)
		}
		return stdout.String(), nil
	}
}

// resource is a resource in an exported state.
type resource struct {
	URN      string         `json:"urn"`
	Custom   bool           `json:"custom"`
	Parent   string         `json:"parent"`
	Provider string         `json:"provider"`
	Inputs   map[string]any `json:"inputs"`
}

// token and name are the last parts of a URN, urn:pulumi:STACK::PROJECT::PARENTS$TOKEN::NAME.
func (r resource) token() string {
	types := strings.SplitN(r.URN, "::", 4)[2]
	return types[strings.LastIndex(types, "$")+1:]
}

func (r resource) name() string { return strings.SplitN(r.URN, "::", 4)[3] }

func (r resource) String() string { return r.token() + " " + r.name() }

type state struct {
	Resources []resource `json:"resources"`
	Pending   []struct {
		Type     string   `json:"type"`
		Resource resource `json:"resource"`
	} `json:"pending_operations"`
}

// Run recovers a stack, and says what it does. The state keeps its pending operations until the end, so
// that it can run again after an error. The CLI has an answer "import" for pending creates too, which
// does nothing (pulumi 3.250, pkg/cmd/pulumi/operations/refresh.go).
func Run(ctx context.Context, pulumi Pulumi, out io.Writer) error {
	text, err := pulumi(ctx, "stack", "export")
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	var exported struct{ Deployment state }
	if err := json.Unmarshal([]byte(text), &exported); err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	known := map[string]bool{}
	for _, r := range exported.Deployment.Resources {
		known[r.URN] = true
	}
	say := func(r resource, what string) { _, _ = fmt.Fprintf(out, "%s: %s\n", r, what) }
	for _, operation := range exported.Deployment.Pending {
		r, id := operation.Resource, ""
		if r.Custom {
			id = ID(r.token(), r.Inputs)
		}
		switch {
		case operation.Type != "creating":
			say(r, "was "+operation.Type+"; the refresh reads what became of it")
		case known[r.URN]:
			say(r, "is in the state")
		case id == "":
			say(r, "the next `pulumi up` creates it")
		default:
			exists, err := add(ctx, pulumi, r, id)
			if err != nil {
				return err
			}
			if exists {
				say(r, "exists, and is in the state now")
			} else {
				say(r, "does not exist; the next `pulumi up` creates it")
			}
		}
	}
	_, _ = fmt.Fprintln(out, "Reading all resources with `pulumi refresh --clear-pending-creates`.")
	if _, err := pulumi(ctx, "refresh", "--yes", "--skip-preview", "--clear-pending-creates"); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	_, _ = fmt.Fprintln(out, "The state is complete. To go on, run `pulumi up`; or `pulumi destroy`, if you were taking the stack down.")
	return nil
}

// add imports a resource, and reports whether it exists.
func add(ctx context.Context, pulumi Pulumi, r resource, id string) (bool, error) {
	args := []string{"import", r.token(), r.name(), id, "--yes", "--skip-preview", "--protect=false", "--generate-code=false"}
	if !strings.Contains(r.Parent, "::pulumi:pulumi:Stack::") {
		args = append(args, "--parent", "parent="+r.Parent)
	}
	if at := strings.LastIndex(r.Provider, "::"); at >= 0 && !strings.Contains(r.Provider, "::default_") {
		args = append(args, "--provider", "provider="+r.Provider[:at])
	}
	switch _, err := pulumi(ctx, args...); {
	case err == nil:
		return true, nil
	case strings.Contains(err.Error(), "'"+id+"' does not exist"):
		return false, nil
	default:
		return false, fmt.Errorf("import %s as %s: %w", r, id, err)
	}
}

// ids are the identifiers of Google Cloud's resources, with their inputs in braces. Others, like members
// of a policy, may be created twice.
var ids = map[string]string{
	"gcp:artifactregistry/repository:Repository": "projects/{project}/locations/{location}/repositories/{repositoryId}",
	"gcp:compute/disk:Disk":                      "projects/{project}/zones/{zone}/disks/{name}",
	"gcp:compute/network:Network":                "projects/{project}/global/networks/{name}",
	"gcp:compute/regionDisk:RegionDisk":          "projects/{project}/regions/{region}/disks/{name}",
	"gcp:compute/router:Router":                  "projects/{project}/regions/{region}/routers/{name}",
	"gcp:compute/routerNat:RouterNat":            "{project}/{region}/{router}/{name}",
	"gcp:compute/subnetwork:Subnetwork":          "projects/{project}/regions/{region}/subnetworks/{name}",
	"gcp:container/cluster:Cluster":              "projects/{project}/locations/{location}/clusters/{name}",
	"gcp:container/nodePool:NodePool":            "projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}",
	"gcp:filestore/instance:Instance":            "projects/{project}/locations/{location}/instances/{name}",
	"gcp:gkebackup/backupPlan:BackupPlan":        "projects/{project}/locations/{location}/backupPlans/{name}",
	"gcp:serviceaccount/account:Account":         "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com",
	"gcp:storage/bucket:Bucket":                  "{name}",
}

var input = regexp.MustCompile(`{\w+}`)

// ID returns the identifier of a resource that must not be created twice, or "".
func ID(token string, inputs map[string]any) string {
	if strings.HasPrefix(token, "kubernetes:") {
		metadata, _ := inputs["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		namespace, _ := metadata["namespace"].(string)
		return strings.TrimPrefix(namespace+"/"+name, "/")
	}
	return input.ReplaceAllStringFunc(ids[token], func(field string) string {
		value, _ := inputs[strings.Trim(field, "{}")].(string)
		return path.Base(value) // of a name, or of the ID of a parent
	})
}

// CheckProcesses refuses to recover while plugins of a killed CLI live: they go on creating for more
// than a minute.
func CheckProcesses(ctx context.Context) error {
	text, err := exec.CommandContext(ctx, "ps", "-axo", "pid=,ppid=,args=").Output()
	if err != nil {
		return fmt.Errorf("look for plugins of a killed pulumi: %w", err)
	}
	program, plugins := map[string]string{}, [][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		program[fields[0]] = filepath.Base(fields[2])
		if strings.HasPrefix(program[fields[0]], "pulumi-resource-") || strings.HasPrefix(program[fields[0]], "pulumi-language-") {
			plugins = append(plugins, fields)
		}
	}
	plugins = slices.DeleteFunc(plugins, func(fields []string) bool { return program[fields[1]] == "pulumi" })
	if len(plugins) == 0 {
		return nil
	}
	var living []string
	for _, fields := range plugins {
		living = append(living, program[fields[0]]+" (process "+fields[0]+")")
	}
	return fmt.Errorf("plugins of a killed pulumi still run, and may go on creating: %s; wait until they end, or end them", strings.Join(living, ", "))
}
