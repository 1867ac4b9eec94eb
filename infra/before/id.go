package before

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/kube"
)

// ID identifies a stack among all stacks of Pulumi.
type ID struct{ Organization, Project, Stack string }

// Of returns the ID of the stack that the program runs for.
func Of(ctx *pulumi.Context) ID {
	return ID{ctx.Organization(), ctx.Project(), ctx.Stack()}
}

// String returns the full name of the stack, as Pulumi's commands accept it.
func (id ID) String() string {
	return strings.Join([]string{id.Organization, id.Project, id.Stack}, "/")
}

// Label returns the stack as the value of a label in Google Cloud. The hash distinguishes stacks
// that differ only in what a label cannot contain: organizations, capital letters and dots.
func (id ID) Label() string {
	const alsoAllowed = "-_"
	return kube.LabelName(kube.Sanitize(id.Project, alsoAllowed), kube.Sanitize(id.Stack, alsoAllowed), kube.Hash(id.String()))
}

// ServiceAccount returns the name of the Kubernetes service account of a job's pods. IAM
// distinguishes service accounts by project, namespace and name, but not by cluster. If the jobs of
// two stacks in one project shared a name, each could read the other's buckets, and would lose its
// access when the other is destroyed.
func (id ID) ServiceAccount(job string) string {
	stack := strings.Trim(kube.Sanitize(id.Stack, ""), "-")
	return job + "." + kube.LabelName(stack, kube.Hash(id.String()))
}
