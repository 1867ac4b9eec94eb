// Package before finds out what is there before an update: the state of the stack, which the stack's names
// identify, and what an existing cluster holds.
//
// A program cannot see the state of its own stack, and a [pulumi.StackReference] would appear as a step of every
// preview. The package therefore calls two functions of the engine that the SDK does not document: readStackOutputs,
// which the SDK calls for a StackReference, and readStackResourceOutputs.
package before

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/infra/admission"
	"persia/kube"
)

// State is the state of a stack before an update.
type State struct {
	ID ID
	// Outputs are the outputs of the last successful update.
	Outputs map[string]any
	// Resources are the outputs of each resource. Unlike Outputs, they are also up to date after a failed update.
	Resources map[resource.URN]map[string]any
}

// Read reads the state of this stack, and has it keep the ID of the stack. A new stack's ID has its cluster.
func Read(ctx *pulumi.Context, cluster string) (State, error) {
	outputs, err := call(ctx, "readStackOutputs", "name")
	if err != nil {
		return State{}, err
	}
	state := State{ID: current(ctx), Outputs: outputs}
	if len(outputs) > 0 {
		if err := state.readResources(ctx); err != nil {
			return State{}, err
		}
		state.ID = parse(state.annotated(), state.ID)
		_, err := keep(ctx, &state.ID)
		return state, err
	}
	// After a first update that failed, there are no outputs, but there are resources. The engine crashes when it reads
	// those of a stack without a state.
	state.ID.Cluster = cluster
	exists, err := keep(ctx, &state.ID)
	if err == nil && exists {
		err = state.readResources(ctx)
	}
	return state, err
}

// keep has the state keep an ID, and changes the ID to the one that the state has already. It reports whether the state
// exists: a preview does not know the identifier of a new resource, and an update writes the state with each resource,
// unless it is told not to.
func keep(ctx *pulumi.Context, id *ID) (exists bool, err error) {
	stash, err := pulumi.NewStash(ctx, "identity", &pulumi.StashArgs{Input: pulumi.String(id.String())},
		pulumi.IgnoreChanges([]string{"input"}))
	if err != nil {
		return false, err
	}
	kept, err := internals.UnsafeAwaitOutput(ctx.Context(), stash.Output)
	if err != nil {
		return false, err
	}
	text, _ := kept.Value.(string)
	*id = parse(text, *id)
	identifier, err := internals.UnsafeAwaitOutput(ctx.Context(), stash.ID())
	return identifier.Known && (ctx.DryRun() || !env.SkipCheckpoints.Value()), err
}

// annotated returns the ID on an admission policy, where earlier releases alone kept it.
func (s State) annotated() string {
	for urn, outputs := range s.Resources {
		id, ok, _ := unstructured.NestedString(outputs, "metadata", "annotations", admission.StackAnnotation)
		if ok && urn.Name() == admission.Marker {
			return id
		}
	}
	return ""
}

func (s *State) readResources(ctx *pulumi.Context) error {
	found, err := call(ctx, "readStackResourceOutputs", "stackName")
	s.Resources = map[resource.URN]map[string]any{}
	for urn, of := range found {
		properties, _ := of.(map[string]any)
		s.Resources[resource.URN(urn)], _ = properties["outputs"].(map[string]any)
	}
	return err
}

// call calls a function of the engine that takes the name of a stack, and returns the function's outputs. Some of them
// are secret, which Invoke would refuse.
func call(ctx *pulumi.Context, function, argument string) (map[string]any, error) {
	name := current(ctx).String()
	var answer struct {
		Outputs map[string]any `pulumi:"outputs"`
	}
	for try := 1; ; try++ {
		_, err := ctx.InvokePackageRaw("pulumi:pulumi:"+function, map[string]any{argument: name}, &answer, "")
		switch {
		case err == nil:
			return answer.Outputs, nil
		case try == mostReads || !strings.HasSuffix(err.Error(), "failed to load checkpoint: EOF"):
			return nil, fmt.Errorf("%s of stack %s: %w", function, name, err)
		}
		time.Sleep(betweenReads)
	}
}

// The engine may write the state while the program reads it. A backend of local files does not replace the attributes
// of a file atomically (setAttrs in gocloud.dev/blob/fileblob), so a reader may find them empty for a moment.
const (
	mostReads    = 10
	betweenReads = 50 * time.Millisecond
)

// ID identifies a stack among all stacks of all backends: its full name, and its cluster, when it was first brought up.
// In each backend of its own, the organization has the same name. The state keeps the ID.
type ID struct{ Organization, Project, Stack, Cluster string }

// current returns the present name of the stack that the program runs for.
func current(ctx *pulumi.Context) ID {
	return ID{Organization: ctx.Organization(), Project: ctx.Project(), Stack: ctx.Stack()}
}

// parse returns the ID with a text, or other if the text is none.
func parse(text string, other ID) ID {
	name, cluster, _ := strings.Cut(text, "@")
	if parts := strings.Split(name, "/"); len(parts) == 3 {
		return ID{parts[0], parts[1], parts[2], cluster}
	}
	return other
}

// String returns the full name of the stack, as Pulumi's commands accept it, and the cluster, if the ID has it.
func (id ID) String() string {
	name := strings.Join([]string{id.Organization, id.Project, id.Stack}, "/")
	if id.Cluster == "" {
		return name
	}
	return name + "@" + id.Cluster
}

// Label returns the stack as the value of a label in Google Cloud. The hash distinguishes stacks that differ only in
// what a label cannot contain: organizations, clusters, capital letters and dots.
func (id ID) Label() string {
	const alsoAllowed = "-_"
	return kube.LabelName(kube.Sanitize(id.Project, alsoAllowed), kube.Sanitize(id.Stack, alsoAllowed), kube.Hash(id.String()))
}

// ServiceAccount returns the name of the Kubernetes service account of a job's pods. IAM distinguishes service accounts
// by project, namespace and name, but not by cluster. If the jobs of two stacks in one project shared a name, each
// could read the other's buckets, and would lose its access when the other is destroyed.
func (id ID) ServiceAccount(job string) string {
	stack := strings.Trim(kube.Sanitize(id.Stack, ""), "-")
	return job + "." + kube.LabelName(stack, kube.Hash(id.String()))
}
