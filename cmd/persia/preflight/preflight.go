// Package preflight checks what `pulumi up` of a stack finds out only after minutes, when a part of
// the stack is there: APIs, quotas, machines, buckets, and the way to the control plane. `pulumi
// preview` itself says what it lacks, like a login or a plugin.
//
// It asks the user's gcloud, whose logins, projects and proxies the user has set up. What gcloud may not see
// or cannot reach is unchecked, which is no failure.
package preflight

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"persia/config"
	"persia/gcp"
)

// Status is the result of a check.
type Status string

// The statuses, from the best to the worst.
const (
	OK Status = "ok"
	// Unchecked means that the check could not run. The detail says why.
	Unchecked Status = "unchecked"
	// Warning means that `pulumi up` may fail, or works with a limitation.
	Warning Status = "warning"
	// Missing means that `pulumi up` fails.
	Missing Status = "missing"
)

// Check is one thing that `up` needs. The remedy is mostly a command, and empty if all is well.
type Check struct {
	Name           string
	Status         Status
	Detail, Remedy string
}

// Run makes all checks of a stack. Without gcloud, it checks what needs no network. It returns an
// error if the stack file in the folder cannot be read or has mistakes, because the needs of the
// stack are then unknown.
func Run(ctx context.Context, dir, name string, gcloud Gcloud) ([]Check, error) {
	stack, err := Load(dir, name)
	if err != nil {
		return nil, err
	}
	plan := stack.Plan()
	checks := []Check{{"stack file", OK, fmt.Sprintf("its %d pods fit on %d nodes", plan.Pods, plan.Nodes), ""}}
	if stack.Cluster.Existing != nil {
		return checks, nil
	}
	checks = append(checks, controlPlane(stack.Cluster), authPlugin())
	gcloud = once(gcloud)
	for _, row := range rows(stack) {
		// Without the project, gcloud cannot say more. The rows still list the needs of the stack.
		if i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == projectName && c.Status != OK }); i >= 0 {
			checks = append(checks, row.unchecked("the project did not answer"))
			continue
		}
		checks = append(checks, row.check(ctx, gcloud))
	}
	return checks, nil
}

// controlPlane checks who can reach the control plane, as `up` must.
func controlPlane(cluster config.Cluster) Check {
	const name = "control plane"
	var ranges []string
	for _, network := range cluster.AuthorizedNetworks {
		ranges = append(ranges, network.CIDR)
	}
	switch {
	case cluster.PrivateEndpoint:
		return Check{name, Unchecked, "persia:cluster.privateEndpoint is true: `pulumi up` must run inside the cluster's network, which this check cannot verify", ""}
	case len(ranges) == 0:
		return Check{name, Warning, "persia:cluster.authorizedNetworks is empty: the control plane can be reached only from the cluster's network, and `pulumi up` fails elsewhere",
			"write the range that you connect from, or run `pulumi up` inside the network"}
	}
	return Check{name, OK, "open to " + strings.Join(ranges, ", ") + ": you must connect from there", ""}
}

func authPlugin() Check {
	if _, err := exec.LookPath(gcp.AuthPlugin); err != nil {
		return Check{gcp.AuthPlugin, Missing, "it is not on the PATH, and Pulumi needs it to log in to the cluster",
			"run gcloud components install " + gcp.AuthPlugin + ", or install the package google-cloud-cli-" + gcp.AuthPlugin}
	}
	return Check{gcp.AuthPlugin, OK, "on the PATH", ""}
}

// Failed reports whether anything is missing.
func Failed(checks []Check) bool { return len(of(checks, Missing)) > 0 }

func of(checks []Check, status Status) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Status != status })
}

// Print writes the checks as a table, the worst last, followed by what to do.
func Print(w io.Writer, checks []Check) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	sorted := slices.Concat(of(checks, OK), of(checks, Unchecked), of(checks, Warning), of(checks, Missing))
	remedies := ""
	for _, c := range sorted {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail) // Flush tells
		if c.Remedy != "" {
			remedies += fmt.Sprintf("\n  %s: %s\n      %s\n", c.Status, c.Name, c.Remedy)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if remedies != "" {
		remedies = "\nWhat to do:\n" + remedies
	}
	_, err := fmt.Fprintf(w, "%s\nmissing: %d, warning: %d, unchecked: %d, ok: %d\n", remedies,
		len(of(checks, Missing)), len(of(checks, Warning)), len(of(checks, Unchecked)), len(of(checks, OK)))
	return err
}
