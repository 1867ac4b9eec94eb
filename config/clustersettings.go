package config

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

var (
	timeOfDayForm = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
	roleForm      = regexp.MustCompile(`^(roles/[a-z][a-zA-Z0-9.]*|(projects|organizations)/[^/]+/roles/[a-zA-Z0-9_.]+)$`)
	keyForm       = regexp.MustCompile(`^projects/[^/]+/locations/([a-z0-9-]+)/keyRings/[a-zA-Z0-9_-]{1,63}/cryptoKeys/[a-zA-Z0-9_-]{1,63}$`)
	keyVersion    = regexp.MustCompile(`/cryptoKeyVersions/[0-9]+$`)
)

// clusterSettings checks what a cluster that is created is like, beside where it
// is and its nodes.
func (v *validator) clusterSettings(path *field.Path) {
	c := &v.stack.Cluster
	v.maintenance(path.Child("maintenance"), c.Maintenance)
	v.publicNodes(path, c)
	oneOf(v, path.Child("dns"), c.DNS, "CLOUD_DNS", "KUBE_DNS")
	v.nodeRoles(path.Child("nodeRoles"), c.NodeRoles)
	oneOf(v, path.Child("securityPosture"), c.SecurityPosture, "BASIC", "DISABLED")
	v.encryption(path.Child("encryption"), c.Encryption)
	oneOf(v, path.Child("autoscalingProfile"), c.AutoscalingProfile, "OPTIMIZE_UTILIZATION", "BALANCED")
	v.bucketNeeds(path, c)
	v.monitoring(path.Child("monitoring", "components"), c.Monitoring.Components)
	v.backup(path.Child("backup"), c.Backup)
}

// off reports whether a setting is turned off. One that could not be decoded is
// not.
func (v *validator) off(path *field.Path, setting *bool) bool {
	return setting != nil && !*setting && v.decoded(path.String())
}

func (v *validator) maintenance(path *field.Path, m Maintenance) {
	if !timeOfDayForm.MatchString(m.StartTime) {
		v.invalid(path.Child("startTime"), m.StartTime, "must be a time of the day in UTC, with two digits for the hour and for the minute, like 03:00")
	}
	v.exclusions(path.Child("exclusions"), m.Exclusions)
}

// GKE's limits of exclusions that let patches of the control plane through (GKE,
// "Maintenance windows and exclusions").
const (
	mostExclusions       = 20
	longestExclusionDays = 180
)

func (v *validator) exclusions(path *field.Path, exclusions []Exclusion) {
	if len(exclusions) > mostExclusions {
		v.invalid(path, len(exclusions), "must be at most %d exclusions, as GKE takes no more; remove those that are over", mostExclusions)
	}
	names := make([]string, len(exclusions))
	for i, e := range exclusions {
		names[i] = e.Name
		v.exclusion(path.Index(i), e)
	}
	unique(names, func(i, first int) {
		v.duplicate(path.Index(i).Child("name"), names[i], "is that of exclusions[%d]; each exclusion has a name of its own", first)
	})
}

func (v *validator) exclusion(path *field.Path, e Exclusion) {
	v.name(path.Child("name"), e.Name, validation.IsDNS1123Label)
	start, startOK := v.instant(path.Child("start"), e.Start)
	end, endOK := v.instant(path.Child("end"), e.End)
	switch latest := start.AddDate(0, 0, longestExclusionDays); {
	case !startOK || !endOK:
	case !start.Before(end):
		v.invalid(path.Child("end"), e.End, "must be after start, which is %s", e.Start)
	case end.After(latest):
		v.invalid(path.Child("end"), e.End, "must be at most %d days after start, as GKE takes no longer exclusion; write %s or earlier", longestExclusionDays, latest.Format(time.RFC3339))
	}
}

// instant parses a time. GKE gives a time back in UTC and whole seconds: written
// otherwise, it would differ from GKE's for ever.
func (v *validator) instant(path *field.Path, text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	switch utc := t.UTC().Format(time.RFC3339); {
	case text == "":
		v.required(path, "write a time like 2026-12-01T00:00:00Z")
	case err != nil:
		v.invalid(path, text, "must be a time like 2026-12-01T00:00:00Z")
	case text != utc:
		v.invalid(path, text, "must be in UTC and whole seconds; write %s", utc)
	default:
		return t, true
	}
	return time.Time{}, false
}

// publicNodes refuses what only a cluster with private nodes has.
func (v *validator) publicNodes(path *field.Path, c *Cluster) {
	if !v.off(path.Child("privateNodes"), c.PrivateNodes) {
		return
	}
	if c.PrivateEndpoint {
		v.invalid(path.Child("privateEndpoint"), true, "needs private nodes, as GKE gives no other cluster a private endpoint; remove it, or privateNodes: false")
	}
	if c.Network.ControlPlane != "" {
		v.forbidden(path.Child("network", "controlPlane"), "privateNodes is false, and without private nodes the control plane has no range in the network; remove %q, or privateNodes: false", c.Network.ControlPlane)
	}
}

func (v *validator) nodeRoles(path *field.Path, roles []string) {
	for i, role := range roles {
		v.nodeRole(path.Index(i), role)
	}
	unique(roles, func(i, first int) {
		v.duplicate(path.Index(i), roles[i], "is that of nodeRoles[%d]; write each role once", first)
	})
}

func (v *validator) nodeRole(path *field.Path, role string) {
	switch role {
	case "":
		v.required(path, "write a role, like roles/storage.objectViewer")
	case "roles/owner", "roles/editor":
		v.invalid(path, role, "lets whoever breaks out of a pod change everything in the project; write the roles of what the nodes use, like roles/storage.objectViewer")
	case gcp.RoleDefaultNode, gcp.RoleImageReader:
		v.invalid(path, role, "is held by every node already; remove it")
	default:
		if !roleForm.MatchString(role) {
			v.invalid(path, role, "must be a role, like roles/storage.objectViewer, or one of your own, as projects/P/roles/R or organizations/N/roles/R")
		}
	}
}

// encryption checks keys and where they are: the control plane takes a key of its
// own region (GKE, "Encrypt secrets at the application layer"), and Compute Engine
// one of the disk's region or a global one.
func (v *validator) encryption(path *field.Path, e Encryption) {
	region := v.stack.Cluster.Region
	v.kmsKey(path.Child("secrets"), e.Secrets, "GKE", region)
	v.kmsKey(path.Child("bootDisks"), e.BootDisks, "Compute Engine", region, "global")
}

// bucketNeeds checks that volumes over buckets have what mounts them and what
// lets pods into them.
func (v *validator) bucketNeeds(path *field.Path, c *Cluster) {
	i := slices.IndexFunc(v.stack.Volumes, func(volume Volume) bool { return volume.GCSFuse != nil })
	if i < 0 {
		return
	}
	if driver := path.Child("csiDrivers", "gcsFuse"); v.off(driver, c.CSIDrivers.GCSFuse) {
		v.invalid(driver, false, "must be true, as this driver mounts the bucket of volumes[%d]; remove it, or use volumes of another kind", i)
	}
	if identity := path.Child("workloadIdentity"); v.off(identity, c.WorkloadIdentity) {
		v.invalid(identity, false, "must be true, as jobs reach the bucket of volumes[%d] by an identity of their own; remove it, or use volumes of another kind", i)
	}
}

func (v *validator) monitoring(path *field.Path, components []string) {
	valid := v.decoded(path.String())
	for i, component := range components {
		valid = oneOf(v, path.Index(i), component, gcp.MonitoringComponents...) && valid
	}
	unique(components, func(i, _ int) {
		v.duplicate(path.Index(i), components[i], "write each component once")
	})
	if system := gcp.MonitoringComponents[0]; valid && len(components) > 0 && !slices.Contains(components, system) {
		v.required(path, "write %s too, which GKE wants beside any other, or [] for none", system)
	}
}

func (v *validator) backup(path *field.Path, b Backup) {
	if b.Plan == nil {
		return
	}
	if agent := path.Child("agent"); v.off(agent, b.Agent) {
		v.invalid(agent, false, "must be true, as the agent makes the backups of plan; remove it, or plan")
	}
	v.backupPlan(path.Child("plan"), *b.Plan)
}

// mostBackups is how many backups of a plan are kept at most, by the interval of
// its schedule (Backup for GKE API, RetentionPolicy).
const mostBackups = 360

func (v *validator) backupPlan(path *field.Path, p BackupPlan) {
	schedule, retainDays := path.Child("schedule"), path.Child("retainDays")
	interval, ok := v.schedule(schedule, p.Schedule)
	switch most := int(mostBackups * interval.Hours() / 24); {
	case p.RetainDays < 1 || p.RetainDays > 365:
		v.invalid(retainDays, p.RetainDays, "must be from 1 to 365")
	case !ok:
	case most < 1:
		v.invalid(schedule, p.Schedule, "makes backups %d minutes apart, and Backup for GKE keeps %d of a plan, less than those of a day; write a schedule of fewer", int(interval.Minutes()), mostBackups)
	case p.RetainDays > most:
		v.invalid(retainDays, p.RetainDays, "must be at most %d, as Backup for GKE keeps %d backups of a plan, and schedule makes them %d minutes apart; write that, or a schedule of fewer", most, mostBackups, int(interval.Minutes()))
	}
}

// schedule parses a schedule in cron's notation, and finds the shortest interval
// between its times.
func (v *validator) schedule(path *field.Path, text string) (time.Duration, bool) {
	if text == "" {
		v.required(path, "write when backups are made, in cron's notation and UTC, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	// The parser takes more than cron: @daily, and time zones.
	if len(strings.Fields(text)) != 5 {
		v.invalid(path, text, "must be cron's five fields, minute, hour, day of the month, month and day of the week, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		v.invalid(path, text, "must be in cron's notation, like 0 4 * * * for every day at 04:00: %s", err)
		return 0, false
	}
	return v.interval(path, text, parsed)
}

func (v *validator) interval(path *field.Path, text string, schedule cron.Schedule) (time.Duration, bool) {
	// More than the days of a year: what comes oftener repeats itself sooner.
	const times = 500
	last := schedule.Next(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))
	if last.IsZero() {
		v.invalid(path, text, "is a time that never comes; write one that does, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	shortest := time.Duration(math.MaxInt64)
	for range times {
		next := schedule.Next(last)
		if next.IsZero() {
			break // no such time for years
		}
		shortest, last = min(shortest, next.Sub(last)), next
	}
	return shortest, true
}
