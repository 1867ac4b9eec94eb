// Package recovery completes the state of a stack after a killed `pulumi up`.
package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Pulumi runs a command of the Pulumi CLI for a stack. An error has all that the command prints besides.
type Pulumi func(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error

// CLI returns the Pulumi CLI on the PATH for a stack.
func CLI(stack string) Pulumi {
	return func(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
		command := exec.CommandContext(ctx, "pulumi", append(args, "--stack", stack, "--non-interactive", "--color", "never")...)
		var stderr strings.Builder
		command.Stdin, command.Stdout, command.Stderr = stdin, stdout, &stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("%w\n%s", err, &stderr)
		}
		return nil
	}
}

// Run recovers a stack, and says what it does. What was being created goes into the state as if it existed, and the
// refresh then takes out what does not. Run can run again after an error. The CLI has an answer "import" for pending
// creates too, which does nothing (pulumi 3.250, pkg/cmd/pulumi/operations/refresh.go).
func Run(ctx context.Context, pulumi Pulumi, out io.Writer) error {
	var text strings.Builder
	if err := pulumi(ctx, nil, &text, "stack", "export"); err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	// Newer versions of Pulumi may add fields, which stay as they are.
	var exported map[string]any
	decoder := json.NewDecoder(strings.NewReader(text.String()))
	decoder.UseNumber()
	if err := decoder.Decode(&exported); err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	if deployment, ok := exported["deployment"].(map[string]any); ok {
		take(deployment, out)
	}
	taken, err := json.Marshal(exported)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if err := pulumi(ctx, strings.NewReader(string(taken)), io.Discard, "stack", "import"); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if err := pulumi(ctx, nil, out, "refresh", "--yes", "--skip-preview"); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	_, _ = fmt.Fprintln(out, "The state is complete. To go on, run `pulumi up`; or `pulumi destroy`, if you were taking the stack down.")
	return nil
}

// take moves pending creates to the resources of a state, and forgets the other pending operations. It holds the inputs
// as outputs until the refresh, because no API knows some of them, such as the provider's own protection of a cluster.
func take(deployment map[string]any, out io.Writer) {
	resources, _ := deployment["resources"].([]any)
	pending, _ := deployment["pending_operations"].([]any)
	delete(deployment, "pending_operations")
	known := map[any]int{}
	for i, resource := range resources {
		if state := resource.(map[string]any); state["delete"] != true {
			known[state["urn"]] = i
		}
	}
	for _, operation := range pending {
		kind := operation.(map[string]any)["type"]
		made := operation.(map[string]any)["resource"].(map[string]any)
		// urn:pulumi:STACK::PROJECT::PARENTS$TOKEN::NAME
		urn := strings.SplitN(fmt.Sprint(made["urn"]), "::", 4)
		token := urn[2][strings.LastIndex(urn[2], "$")+1:]
		inputs, _ := made["inputs"].(map[string]any)
		id := ID(token, inputs)
		says := "may exist; the refresh looks for it"
		at, has := known[made["urn"]]
		// What Pulumi has deleted, to create it again, stays in the state meanwhile.
		deleted := has && resources[at].(map[string]any)["pendingReplacement"] == true
		switch {
		case kind != "creating":
			says = fmt.Sprintf("was %v; the refresh reads what became of it", kind)
		case has && !deleted:
			says = "is in the state"
		case made["custom"] != true || id == "":
			says = "the next `pulumi up` creates it"
		default:
			made["id"], made["outputs"] = id, inputs
			if deleted {
				resources[at] = made
			} else {
				resources = append(resources, made)
			}
		}
		_, _ = fmt.Fprintf(out, "%s %s: %s\n", token, urn[3], says)
	}
	deployment["resources"] = resources
}

// ids are the identifiers of Google Cloud's resources, with their inputs in braces. Others, like members of a policy,
// may be created twice.
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

// CheckProcesses refuses to recover while plugins of a killed CLI live: they go on creating for minutes. It looks at
// those that have run in this folder, or one that it is in, as the CLI starts plugins in the project's.
func CheckProcesses(ctx context.Context) error {
	all, err := processes(ctx)
	if err != nil {
		return fmt.Errorf("look for plugins of a killed pulumi: %w", err)
	}
	var living, ids []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		p := all[id]
		isPlugin := strings.HasPrefix(p.program, "pulumi-resource-") || strings.HasPrefix(p.program, "pulumi-language-")
		if isPlugin && all[p.parent].program != "pulumi" && p.folder != "" && strings.HasPrefix(all[os.Getpid()].folder+"/", p.folder+"/") {
			living, ids = append(living, fmt.Sprintf("%s (process %d)", p.program, id)), append(ids, strconv.Itoa(id))
		}
	}
	if len(living) == 0 {
		return nil
	}
	return fmt.Errorf("plugins of a killed pulumi still run here, and may go on creating: %s; wait until they end, or run `kill %s`",
		strings.Join(living, ", "), strings.Join(ids, " "))
}

// process is a process of this machine: the name of its program, and its folder, or "" for another user's.
type process struct {
	parent          int
	program, folder string
}

// parentOf finds the parent in /proc/ID/status.
var parentOf = regexp.MustCompile(`\nPPid:\s*(\d+)`)

// processes returns processes by their IDs: all, or this user's where there is no /proc, as on macOS. They are all in
// this folder then, for all that ps says.
func processes(ctx context.Context) (map[int]process, error) {
	all := map[int]process{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, of := range folders {
		status, _ := os.ReadFile(of + "/status")
		command, _ := os.ReadFile(of + "/cmdline")
		folder, _ := os.Readlink(of + "/cwd")
		if parent := parentOf.FindSubmatch(status); parent != nil { // it has not ended meanwhile
			program, _, _ := strings.Cut(string(command), "\x00")
			all[number(path.Base(of))] = process{number(string(parent[1])), path.Base(program), folder}
		}
	}
	if len(folders) > 0 {
		return all, nil
	}
	text, err := exec.CommandContext(ctx, "ps", "-xo", "pid=,ppid=,args=").Output()
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 2 {
			all[number(words[0])] = process{number(words[1]), path.Base(words[2]), "."}
		}
	}
	return all, err
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }
