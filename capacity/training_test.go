package capacity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/answer"
)

// simulatedShare lets failures interrupt a job at random, many times. A failure repeats what was
// trained after the last checkpoint, and may also come during a restart or a checkpoint.
func simulatedShare(job Training, interval float64, seed uint64) float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	useful, all, since := 0.0, 0.0, 0.0 // since is the time of training that servers have kept
	for range 50_000 {
		alive := random.ExpFloat64() * job.BetweenFailures
		all += alive
		if random.Float64() < job.Kept { // what was trained stays
			since += max(0, alive-job.Restart-denseHours)
			continue
		}
		if training := since + alive - job.Restart; training > 0 {
			useful += interval * math.Floor(training/(interval+job.Checkpoint))
		}
		since = 0
	}
	return useful / all
}

// TestTrainingAsSimulated holds the formulas against a simulation with failures at random: the
// best interval, the share of useful hours, and their cost are within a tenth.
func TestTrainingAsSimulated(t *testing.T) {
	const seed = 42
	t.Logf("seed %d", seed)
	cost := 250.0
	for name, job := range map[string]Training{
		"spot machines":    {Checkpoint: 5.0 / 60, Restart: 10.0 / 60, BetweenFailures: 3, HourlyCost: &cost},
		"a hundred nodes":  {Checkpoint: 0.1, Restart: 0.25, BetweenFailures: 20, HourlyCost: &cost},
		"long checkpoints": {Checkpoint: 0.5, Restart: 0.25, BetweenFailures: 8, HourlyCost: &cost},
		"partial recovery": {Checkpoint: 300.0 / 3600, Restart: 600.0 / 3600, BetweenFailures: 24, HourlyCost: &cost, Kept: GuessedKept},
	} {
		t.Run(name, func(t *testing.T) {
			best := job.BestInterval()
			share := simulatedShare(job, best, seed)
			assert.InEpsilon(t, share, job.UsefulShare(best), 0.1)
			require.NotNil(t, job.UsefulHourCost())
			assert.InEpsilon(t, cost/share, *job.UsefulHourCost(), 0.1)
			assert.InEpsilon(t, bestSimulated(job, best, seed), best, 0.1)
		})
	}
}

// bestSimulated returns the interval at which the simulated share is largest. Near that interval the share hardly
// changes, so a parabola through shares around it is more exact than the largest share.
func bestSimulated(job Training, around float64, seed uint64) float64 {
	const steps = 12
	var sum, sum2, sum4, shares, shares1, shares2 float64
	for step := -steps; step <= steps; step++ {
		x := 0.4 * float64(step) / steps
		share := simulatedShare(job, around*math.Exp(x), seed)
		sum, sum2, sum4 = sum+1, sum2+x*x, sum4+x*x*x*x
		shares, shares1, shares2 = shares+share, shares1+share*x, shares2+share*x*x
	}
	slope := shares1 / sum2
	bend := (shares2*sum - shares*sum2) / (sum4*sum - sum2*sum2)
	return around * math.Exp(-slope/(2*bend))
}

func TestTrainingOfUnknownCost(t *testing.T) {
	assert.Nil(t, Training{Checkpoint: 0.1, BetweenFailures: 10}.UsefulHourCost())
	assert.Equal(t, 1.0, Training{Checkpoint: 5, BetweenFailures: 1}.BestInterval(), "a checkpoint that takes longer than nodes live")
}

// TestTenInterruptions compares plans with the ledgers of two trainings of a day that were interrupted ten times at the same
// moments (workload/persia/python_test/test_ledger.py).
func TestTenInterruptions(t *testing.T) {
	text, err := os.ReadFile("testdata/interrupted.json")
	require.NoError(t, err)
	var recorded map[string]answer.Account
	require.NoError(t, json.Unmarshal(text, &recorded))
	for recovery, kept := range map[string]float64{"full": 0, "partial": GuessedKept} {
		seen := recorded[recovery]
		useful := seen.Useful() / seen.All()
		plan := Training{
			Checkpoint:      seen.Ledger["saving"] / seen.Ledger["checkpoints"] / 3600,
			Restart:         (seen.All() - seen.Work() + seen.Ledger["starting"]) / seen.Failures() / 3600,
			BetweenFailures: seen.Work() / seen.Failures() / 3600,
			Kept:            kept,
		}.UsefulShare(seen.Ledger["interval"] / 3600)
		t.Logf("%s recovery: planned %.1f%%, %s", recovery, 100*plan, seen)
		assert.InDelta(t, useful, plan, 0.03, recovery)
	}
}

// TestMeasure: the row of a measured job has what was measured alone.
func TestMeasure(t *testing.T) {
	guess := Training{Job: "train", Checkpoint: 0.1, Restart: 0.2, BetweenFailures: 375, HourlyCost: new(90.0)}
	for name, c := range map[string]struct{ record, want string }{
		"no failure": {`{"job": "a/b/c/train", "ledger": {"training": 7100, "saving": 100, "checkpoints": 5}}`, "measured in 2.0 h none yet unknown 99% 91.27 USD"},
		"two failures, after a night in a queue": {`{"ledger": {"waiting": 30600, "away": 28800, "starting": 360, "startup": 40, "training": 6000, "risk": 200, "training again": 400, "saving": 200, "checkpoints": 10},
			"causes": {"lost replica": 1, "no progress": 1}}`, "measured in 2.5 h 1.0 h 6 min 69% 130.65 USD"},
		"servers that kept their memory three times of four": {`{"ledger": {"training": 35000, "saving": 1000, "checkpoints": 10, "kept": 3}, "causes": {"lost replica": 4}}`,
			"measured in 10.0 h 2.5 h 34 min 97% 92.57 USD"},
		"checkpoints that take no time": {`{"ledger": {"training": 7200, "saving": 0, "checkpoints": 5}, "causes": {"lost replica": 1}}`, "measured in 2.0 h 2.0 h unknown 100% 90.00 USD"},
		"nothing but failures":          {`{"ledger": {"training again": 36}, "causes": {"failed command": 5}}`, "measured in 0.0 h 0.0 h unknown 0% unknown"},
	} {
		measured, err := guess.Measure(c.record, "a/b/c/train")
		require.NoError(t, err, name)
		lines := strings.Split(filled(Plan{Trainings: []Training{measured}}.trainings())[0], "\n")
		assert.Equal(t, "train, "+c.want, strings.Join(strings.Fields(lines[len(lines)-2]), " "), name)
	}
	for name, record := range map[string]string{
		"half": "{\"ledger\": {\"tra", "another job's": `{"job": "a/b/d/train", "ledger": {"training": 7200}}`, "new": `{"ledger": {}}`,
		"negative": `{"ledger": {"training": -5, "saving": 100}}`, "more than all": `{"ledger": {"training": 7200, "waiting": 10, "away": 3600}}`,
		"without time": `{"ledger": {"starting": 100, "away": 100}}`, "infinite": `{"ledger": {"training": 1e308, "risk": 1e308}}`,
		"no number": `{"ledger": {"training": NaN}}`, "negative failures": `{"ledger": {"training": 7200}, "causes": {"lost replica": -1}}`,
		"old": `{"attempt": 3}`, "empty": "null",
	} {
		_, err := guess.Measure(record, "a/b/c/train")
		assert.ErrorContains(t, err, "record of the job a/b/c/train: ", name)
	}
}
