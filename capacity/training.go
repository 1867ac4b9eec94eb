package capacity

import (
	"encoding/json"
	"fmt"
	"math"

	"persia/internal/answer"
)

// Training is a job that failures interrupt. All times are in hours.
type Training struct {
	Job string
	// Checkpoint is how long the job takes to write one, and Restart how long a new attempt takes until it trains.
	Checkpoint, Restart float64
	// BetweenFailures is the expected time between two failures of any node of the job.
	BetweenFailures float64
	// HourlyCost is the cost of the node pools that the job uses, or nil if it is unknown.
	HourlyCost *float64
	// Kept is the share of failures after which servers keep their memory, and all else continues from a dense state.
	Kept float64
	// Measured is the share of hours that were useful, or nil for a plan.
	Measured *float64
}

// Known reports whether the times are known that the best interval depends on.
func (t Training) Known() bool { return t.Checkpoint > 0 && t.BetweenFailures > 0 }

// Measure returns what the coordinator of a job has measured (workload/persia/ledger.py), from the record of
// its run. What has not happened yet is unknown. Time without pods costs nothing, and in a queue no node fails.
func (t Training) Measure(record, job string) (Training, error) {
	var measured answer.Account
	if err := json.Unmarshal([]byte(record), &measured); err != nil {
		return Training{}, fmt.Errorf("record of the job %s: %w", job, err)
	}
	useful, work, all, least := measured.Useful(), measured.Work(), measured.All(), 0.0
	for _, numbers := range []map[string]float64{measured.Ledger, measured.Causes} {
		for _, number := range numbers {
			least = min(least, number)
		}
	}
	if measured.Job != "" && measured.Job != job || work == 0 {
		return Training{}, fmt.Errorf("record of the job %s: the job %q has measured %.0f s", job, measured.Job, work)
	}
	if least < 0 || all <= 0 || useful > all || math.IsInf(all, 0) {
		return Training{}, fmt.Errorf("record of the job %s: times that cannot be: %.0f of %.0f s, and %.0f", job, useful, all, least)
	}
	useful /= all
	t = Training{Job: fmt.Sprintf("%s, measured in %.1f h", t.Job, all/3600), HourlyCost: t.HourlyCost, Measured: &useful}
	if saved := measured.Ledger["checkpoints"]; saved > 0 {
		t.Checkpoint = measured.Ledger["saving"] / saved / 3600
	}
	if failures := measured.Failures(); failures > 0 {
		t.BetweenFailures = work / failures / 3600
		t.Kept = measured.Ledger["kept"] / (failures + 1) // the next one may need a checkpoint
	}
	return t, nil
}

const (
	// GuessedKept is Kept of a job with partial recovery that has measured nothing: several servers may be lost, and the next
	// attempt may end before it makes progress.
	GuessedKept = 0.9
	// denseHours is the training that partial recovery repeats: half a minute, if the job saves a dense state every minute.
	denseHours = 0.5 / 60
)

// betweenCheckpoints returns the expected time between two failures after which all replicas start from a checkpoint.
func (t Training) betweenCheckpoints() float64 { return t.BetweenFailures / (1 - t.Kept) }

// BestInterval returns the time of training between two checkpoints with which the job makes
// the most progress (J. T. Daly, "A higher order estimate of the optimum checkpoint interval for
// restart dumps", 2006, equation 37, which refines Young's formula of 1974).
func (t Training) BestInterval() float64 {
	m := t.betweenCheckpoints()
	if t.Checkpoint >= 2*m {
		return m
	}
	ratio := t.Checkpoint / (2 * m)
	return math.Sqrt(2*t.Checkpoint*m)*(1+math.Sqrt(ratio)/3+ratio/9) - t.Checkpoint
}

// UsefulShare returns the share of the hours that is training which no failure makes the job
// repeat, with an interval between checkpoints (Daly, for failures at random).
func (t Training) UsefulShare(interval float64) float64 {
	m, kept := t.betweenCheckpoints(), math.Exp(-t.Kept*(t.Restart+denseHours)/t.BetweenFailures)
	return kept * interval / (m * math.Exp(t.Restart/m) * math.Expm1((interval+t.Checkpoint)/m))
}

// Useful returns the share of useful hours: as measured, or as planned with the best interval.
func (t Training) Useful() float64 {
	if t.Measured != nil {
		return *t.Measured
	}
	return t.UsefulShare(t.BestInterval())
}

// UsefulHourCost returns the cost of an hour of training, or nil if the cost of the nodes is unknown or
// almost no hour is useful.
func (t Training) UsefulHourCost() *float64 {
	useful := t.Useful()
	if t.HourlyCost == nil || useful < 0.005 {
		return nil
	}
	cost := *t.HourlyCost / useful
	return &cost
}
