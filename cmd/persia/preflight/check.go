package preflight

// Status is the result of a check.
type Status string

// The statuses, from the best to the worst.
const (
	OK Status = "ok"
	// Unchecked means that the check could not run. The detail says why.
	Unchecked Status = "unchecked"
	// Warning does not keep `up` from working, or may not.
	Warning Status = "warning"
	// Missing means that `pulumi up` would fail.
	Missing Status = "missing"
)

// Check is one thing that `up` needs.
type Check struct {
	Name   string
	Status Status
	// Detail describes the finding.
	Detail string
	// Remedy is mostly a command. It is empty if all is well.
	Remedy string
}

func ok(name, detail string) Check { return Check{Name: name, Status: OK, Detail: detail} }

func unchecked(name, why string) Check { return Check{Name: name, Status: Unchecked, Detail: why} }

func warning(name, detail, remedy string) Check {
	return Check{Name: name, Status: Warning, Detail: detail, Remedy: remedy}
}

func missing(name, detail, remedy string) Check {
	return Check{Name: name, Status: Missing, Detail: detail, Remedy: remedy}
}

// Failed reports whether anything is missing.
func Failed(checks []Check) bool { return count(checks, Missing) > 0 }

func count(checks []Check, status Status) int {
	n := 0
	for _, c := range checks {
		if c.Status == status {
			n++
		}
	}
	return n
}
