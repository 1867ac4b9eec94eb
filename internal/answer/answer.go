// Package answer reads what the coordinator of a training job answers, and has the sentences for people.
package answer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// version is the one of the documents that this package reads.
const version = 1

// Document is the state of a job (document in workload/persia/machine.py). All times are in seconds.
type Document struct {
	Version, Attempt           int
	Run, Phase, Reason, Record string
	// Waits are why no attempt can start. Without any, the job waits for time to pass, or Looks for its checkpoints.
	Waits few
	Looks bool
	// Partial is true if servers have kept their memory for the attempt.
	Partial bool
	// Finished and Replicas are how many replicas of a role have finished, and how many there are.
	Finished, Replicas map[string]int
	// Troubles are for people to mend.
	Troubles struct {
		Lacks, Read, Write string
		Reads, Writes      int
		Full               bool
		Stuck              float64
		Strange            few
		// Slow are replicas whose machines are slow, and what to do.
		Slow few
	}
	// Hangs is how long a volume has not answered, if that is too long.
	Hangs      float64
	Checkpoint *struct {
		Path string
		Age  float64
	}
	// Progress is the time since the script last reported some, or nil if it never does.
	Progress *float64
	Account
}

// few has the first of some texts, and how many there are.
type few struct {
	First []string
	All   int
}

func (f few) String() string {
	return strings.Join(f.First, "; ") + told(f.All > len(f.First), " and %d more", f.All-len(f.First))
}

// Read reads an answer. Before version 1, it was a text. An error tells of an answer of another release.
func Read(text string) (d Document, err error) {
	if !strings.HasPrefix(text, "{") {
		return d, errors.New("the coordinator is of an older release of this program: run `pulumi up`, which restarts its pods")
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("the coordinator's answer cannot be read: %w", err)
	}
	if d.Version != version {
		return d, fmt.Errorf("the coordinator answers in version %d, and this program reads %d: use the release of the stack", d.Version, version)
	}
	return d, nil
}

// String says in one line what the job does, and what people have to mend.
func (d Document) String() string {
	t := d.Troubles
	read := told(t.Read != "", "the checkpoints cannot be read: %s%s", t.Read, times(t.Reads))
	write := cmp.Or(told(t.Write != "", "this cannot be recorded: %s%s", t.Write, times(t.Writes)), told(t.Full, "the volume is full"))
	hangs := told(d.Hangs > 0, "a volume has not answered for %.0f s", d.Hangs)
	switch d.Phase {
	case "running":
		return joined(fmt.Sprintf("running attempt %d%s: %d of %d nn-workers and %d of %d dataloaders have finished", d.Attempt,
			told(d.Partial, ", with the memory of servers"),
			d.Finished["nn-worker"], d.Replicas["nn-worker"], d.Finished["dataloader"], d.Replicas["dataloader"]),
			d.Waits.String(), t.Slow.String(),
			told(t.Stuck > 0, "no sign of progress for %g s or longer", t.Stuck), cmp.Or(hangs, read), write, t.Strange.String())
	case "waiting":
		waits := cmp.Or(d.Waits.String(), told(d.Looks, "reading the checkpoints"), "backing off")
		return joined(fmt.Sprintf("waiting after attempt %d (%s): %s", d.Attempt, cmp.Or(read, d.Reason), waits),
			t.Lacks, t.Slow.String(), hangs, write, t.Strange.String())
	case "recording":
		// Until its end is recorded, the loss of all pods would start the job again.
		return fmt.Sprintf("finished in attempt %d; %s", d.Attempt,
			cmp.Or(write, told(read != "", "this cannot be recorded: %s", read), "recording that in "+d.Record))
	case "done":
		return fmt.Sprintf("complete in attempt %d", d.Attempt)
	case "failed":
		return joined("failed: "+d.Reason, write, t.Strange.String())
	case "superseded":
		return "waiting: the coordinator of another pod has the run"
	default:
		return "waiting: the coordinator is of " + d.Phase
	}
}

// told returns a text if something is so, or "".
func told(so bool, format string, values ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, values...)
}

func times(n int) string { return told(n > 1, ", %d times in a row", n) }

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

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

// Useful returns the seconds of training that no failure has undone, Work the seconds of all attempts, and All the seconds
// between attempts too. Time without pods costs nothing, so it does not count.
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
