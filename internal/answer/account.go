package answer

import (
	"fmt"
	"math"
)

// Account says where the time of a job went (workload/persia/ledger.py), in the answer of its coordinator and in its record.
type Account struct {
	// Job is the full name of the job, with its stack.
	Job string
	// Ledger has seconds by activity, and Causes has the ends of attempts by cause.
	Ledger, Causes map[string]float64
}

// sum returns the seconds of activities.
func (a Account) sum(activities ...string) (seconds float64) {
	for _, activity := range activities {
		seconds += a.Ledger[activity]
	}
	return seconds
}

// Useful returns the seconds of training that was not lost, Work those of attempts, and All also those between them. Time
// without pods, which costs nothing, does not count.
func (a Account) Useful() float64 { return a.sum("training", "risk") }

// Work: see Useful.
func (a Account) Work() float64 {
	return a.Useful() + a.sum("starting", "startup", "training again", "saving")
}

// All: see Useful.
func (a Account) All() float64 { return a.Work() + a.Ledger["waiting"] - a.Ledger["away"] }

// Failures returns how many attempts have ended before the job did.
func (a Account) Failures() (failures float64) {
	for _, count := range a.Causes {
		failures += count
	}
	return failures
}

// String says where the time went, with the values for fields of the stack file.
func (a Account) String() string {
	failures, saved := a.Failures(), a.Ledger["checkpoints"]
	return fmt.Sprintf("useful %.0f %% of %.1f h: waiting %s, starting %s, training again %s, saving %s; %.0f failures",
		100*a.Useful()/max(1, a.All()), a.All()/3600, duration(a.All()-a.Work()), duration(a.sum("starting", "startup")),
		duration(a.sum("training again")), duration(a.sum("saving")), failures) +
		told(failures > 0, ", one every %.1f h (hoursBetweenFailures is this times the machines)", a.Work()/failures/3600) +
		told(saved > 0, "; checkpointSeconds: %.0f", a.sum("saving")/saved) +
		told(a.Ledger["kept"] > 0, "; servers kept their memory %.0f times", a.Ledger["kept"]) +
		told(a.sum("away") >= 60, "; %s without pods", duration(a.sum("away")))
}

func duration(seconds float64) string {
	minutes := int(math.RoundToEven(seconds / 60))
	return told(minutes >= 60, "%d h ", minutes/60) + fmt.Sprintf("%d min", minutes%60)
}
