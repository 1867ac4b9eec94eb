package preflight

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the checks as a table, the worst last, followed by what to do.
func Print(w io.Writer, checks []Check) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var sorted []Check
	for _, status := range []Status{OK, Unchecked, Warning, Missing} {
		for _, c := range checks {
			if c.Status == status {
				sorted = append(sorted, c)
			}
		}
	}
	for _, c := range sorted {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail) // Flush tells
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printRemedies(w, sorted); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nmissing: %d, warning: %d, unchecked: %d, ok: %d\n",
		count(checks, Missing), count(checks, Warning), count(checks, Unchecked), count(checks, OK))
	return err
}

func printRemedies(w io.Writer, checks []Check) error {
	title := "\nWhat to do:\n"
	for _, c := range checks {
		if c.Remedy == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s\n  %s: %s\n      %s\n", title, c.Status, c.Name, c.Remedy); err != nil {
			return err
		}
		title = ""
	}
	return nil
}
