package clusterspec

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

var timeOfDayForm = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

func checkMaintenance(p *check.Problems, path *field.Path, m Maintenance) {
	if !timeOfDayForm.MatchString(m.StartTime) {
		p.Invalid(path.Child("startTime"), m.StartTime, "must be a time of day in UTC, with two digits for the hour and two for the minute, like 03:00")
	}
	checkExclusions(p, path.Child("exclusions"), m.Exclusions)
}

// The limits of GKE for exclusions that still allow patches of the control plane (GKE,
// "Maintenance windows and exclusions").
const (
	mostExclusions       = 20
	longestExclusionDays = 180
)

func checkExclusions(p *check.Problems, path *field.Path, exclusions []Exclusion) {
	if len(exclusions) > mostExclusions {
		p.Invalid(path, len(exclusions), "must be at most %d exclusions, the limit of GKE; remove those that have ended", mostExclusions)
	}
	for i, e := range exclusions {
		checkExclusion(p, path.Index(i), e)
	}
	check.UniqueField(p, path, "name", exclusions, func(e Exclusion) string { return e.Name }, "is already used by exclusions[%d]; give each exclusion its own name")
}

func checkExclusion(p *check.Problems, path *field.Path, e Exclusion) {
	p.Name(path.Child("name"), e.Name, validation.IsDNS1123Label)
	start, startOK := parseInstant(p, path.Child("start"), e.Start)
	end, endOK := parseInstant(p, path.Child("end"), e.End)
	switch latest := start.AddDate(0, 0, longestExclusionDays); {
	case !startOK || !endOK:
	case !start.Before(end):
		p.Invalid(path.Child("end"), e.End, "must be after start, which is %s", e.Start)
	case end.After(latest):
		p.Invalid(path.Child("end"), e.End, "must be at most %d days after start, the limit of GKE; write %s or earlier", longestExclusionDays, latest.Format(time.RFC3339))
	case end.Before(time.Now()):
		p.Warn(path.Child("end"), "%s is in the past, so the exclusion %s keeps nothing off any more; remove it, or write a later end", e.End, e.Name)
	}
}

// parseInstant parses a time in UTC and whole seconds, as GKE returns it. With any other
// form, every preview would show a change.
func parseInstant(p *check.Problems, path *field.Path, text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	switch utc := t.UTC().Format(time.RFC3339); {
	case text == "":
		p.Required(path, "write a time like 2026-12-01T00:00:00Z")
	case err != nil:
		p.Invalid(path, text, "must be a time like 2026-12-01T00:00:00Z")
	case text != utc:
		p.Invalid(path, text, "must be in UTC and in whole seconds; write %s", utc)
	default:
		return t, true
	}
	return time.Time{}, false
}
