package clusterspec

import (
	"math"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

func checkBackup(p *check.Problems, path *field.Path, b Backup) {
	if b.Plan == nil {
		return
	}
	if agent := path.Child("agent"); off(p, agent, b.Agent) {
		p.Invalid(agent, false, "must be true, because the agent makes the backups of plan; remove it, or remove plan")
	}
	checkBackupPlan(p, path.Child("plan"), *b.Plan)
}

// mostBackups is the number of backups of a plan that Backup for GKE keeps at most (Backup
// for GKE API, RetentionPolicy).
const mostBackups = 360

// leastInterval is the interval of backups below which the program warns.
const leastInterval = time.Hour

func checkBackupPlan(p *check.Problems, path *field.Path, plan BackupPlan) {
	schedule, retainDays := path.Child("schedule"), path.Child("retainDays")
	interval, ok := parseSchedule(p, schedule, plan.Schedule)
	if ok && interval < leastInterval {
		p.Warn(schedule, "%s makes backups %d minutes apart, each of all volumes; write 0 4 * * * for one every day at 04:00", plan.Schedule, int(interval.Minutes()))
	}
	switch most := int(mostBackups * interval.Hours() / 24); {
	case !check.Range(p, retainDays, plan.RetainDays, 1, 365, ""), !ok:
	case most < 1:
		p.Invalid(schedule, plan.Schedule, "makes backups %d minutes apart, but Backup for GKE keeps only %d backups of a plan, less than a day's; write a schedule with fewer backups", int(interval.Minutes()), mostBackups)
	case plan.RetainDays > most:
		p.Invalid(retainDays, plan.RetainDays, "must be at most %d, because Backup for GKE keeps %d backups of a plan, and schedule makes one every %d minutes; write that, or a schedule with fewer backups", most, mostBackups, int(interval.Minutes()))
	}
}

// parseSchedule parses a schedule in cron notation, and returns the shortest interval between
// its times.
func parseSchedule(p *check.Problems, path *field.Path, text string) (time.Duration, bool) {
	if text == "" {
		p.Required(path, "write a schedule in cron notation and UTC, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	// The parser also accepts @daily and time zones, which Backup for GKE does not.
	if len(strings.Fields(text)) != 5 {
		p.Invalid(path, text, "must have the five fields of cron: minute, hour, day of the month, month, and day of the week, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		p.Invalid(path, text, "must be in cron notation, like 0 4 * * * for every day at 04:00: %s", err)
		return 0, false
	}
	return shortestInterval(p, path, text, parsed)
}

func shortestInterval(p *check.Problems, path *field.Path, text string, schedule cron.Schedule) (time.Duration, bool) {
	// More than the days of a year, because more frequent schedules repeat sooner.
	const times = 500
	last := schedule.Next(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))
	if last.IsZero() {
		p.Invalid(path, text, "never occurs; write a schedule that does, like 0 4 * * * for every day at 04:00")
		return 0, false
	}
	shortest := time.Duration(math.MaxInt64)
	for range times {
		next := schedule.Next(last)
		if next.IsZero() {
			break // the parser finds no other time within years
		}
		shortest, last = min(shortest, next.Sub(last)), next
	}
	return shortest, true
}
