package before

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/kube"
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
