package preflight

import (
	"context"
	"fmt"
	"strings"

	"persia/capacity"
)

// quota is a quota of a region or a project, as Compute Engine returns it.
type quota struct {
	Metric       string
	Limit, Usage float64
}

// quotasRead holds the quotas of a region, or of the project, or the error of reading them.
type quotasRead struct {
	quotas map[string]quota
	err    error
}

// quotaChecks compares the quotas with the plan.
func (p *preflight) quotaChecks(ctx context.Context) []Check {
	regions := map[string]quotasRead{}
	var checks []Check
	for _, need := range p.stack.Plan().Quotas {
		there, asked := regions[need.Region]
		if !asked {
			there = p.quotasOf(ctx, need.Region)
			regions[need.Region] = there
		}
		checks = append(checks, p.quotaCheck(need, there))
	}
	return checks
}

func (p *preflight) quotasOf(ctx context.Context, region string) quotasRead {
	args := []string{"compute", "regions", "describe", region}
	if region == "global" {
		args = []string{"compute", "project-info", "describe"}
	}
	var answer struct{ Quotas []quota }
	err := p.ask(ctx, &answer, "gcloud", append(args, "--project="+p.stack.Project, "--format=json")...)
	quotas := map[string]quota{}
	for _, q := range answer.Quotas {
		quotas[q.Metric] = q
	}
	return quotasRead{quotas, err}
}

func (p *preflight) quotaCheck(need capacity.Quota, there quotasRead) Check {
	name := quotaName + need.Name
	if there.err != nil {
		return unchecked(name, fmt.Sprintf("%v; needed: %d, %s", there.err, need.Amount, need.Region))
	}
	q, known := there.quotas[need.Name]
	if !known {
		return unchecked(name, fmt.Sprintf("gcloud does not list this quota; needed: %d, %s; see %s", need.Amount, need.Region, p.console()))
	}
	amount := float64(need.Amount)
	detail := fmt.Sprintf("%d needed, %s: limit %.0f, %.0f of it used", need.Amount, need.Region, q.Limit, q.Usage)
	remedy := fmt.Sprintf("request %.0f of %s in %s at %s, which can take days", q.Usage+amount, need.Name, need.Region, p.console())
	switch {
	case q.Limit == 0 && isSpot(need.Name):
		return warning(name, detail+"; with a limit of 0, spot machines use the ordinary quota", remedy)
	case amount <= q.Limit-q.Usage:
		return ok(name, detail)
	case amount <= q.Limit && p.resources > 0:
		return warning(name, detail+"; this stack may already use some of it", "if it does not: "+remedy)
	default:
		return missing(name, detail, remedy)
	}
}

// isSpot reports whether a quota is for spot machines.
func isSpot(name string) bool { return strings.HasPrefix(name, "PREEMPTIBLE_") }

func (p *preflight) console() string {
	return "https://console.cloud.google.com/iam-admin/quotas?project=" + p.stack.Project
}
