package poolspec

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// The strategies of upgrades.
const (
	surge     = "SURGE"
	blueGreen = "BLUE_GREEN"
)

const (
	// mostUpgradedAtOnce is the node limit of GKE (GKE API, UpgradeSettings).
	mostUpgradedAtOnce = 20
	// longestSoak is seven days, the limit of GKE (GKE, "Node pool upgrade strategies").
	longestSoak = 7 * 24 * 3600
	// upgradeRounds is the number of rounds in which all nodes are upgraded by default.
	// Upgrading 100 nodes one by one takes a working day, with a restart of the job each
	// time.
	upgradeRounds = 20
)

// resolve fills in the settings of the strategy, and leaves out the settings of the other one.
// With noSurge, an upgrade takes nodes away before it adds their replacements, by default.
func (u *Upgrade) resolve(nodes int, noSurge bool) {
	atOnce := min(max(1, (nodes+upgradeRounds-1)/upgradeRounds), mostUpgradedAtOnce)
	switch u.Strategy {
	case surge:
		if u.MaxSurge == nil {
			u.MaxSurge = new(atOnce)
			if noSurge {
				u.MaxSurge = new(0)
			}
		}
		if u.MaxUnavailable == nil {
			u.MaxUnavailable = new(0)
			if *u.MaxSurge == 0 {
				u.MaxUnavailable = new(atOnce)
			}
		}
	case blueGreen:
		if u.BatchNodes == 0 {
			u.BatchNodes = atOnce
		}
		if u.SoakSeconds == 0 {
			u.SoakSeconds = 3600
		}
	}
}

// RoundTime is how long we expect GKE to drain and recreate the nodes of a round. GKE documents
// no time.
const RoundTime = 10 * time.Minute

// NodesAtOnce returns how many nodes of a valid pool GKE recreates at once.
func (p Pool) NodesAtOnce() int {
	if p.Upgrade.Strategy == surge {
		return *p.Upgrade.MaxSurge + *p.Upgrade.MaxUnavailable
	}
	return p.Upgrade.BatchNodes
}

// Rounds returns the number of rounds in which GKE recreates all nodes of a valid pool.
func (p Pool) Rounds() int {
	atOnce := p.NodesAtOnce()
	return (p.MostNodes() + atOnce - 1) / atOnce
}

// UpgradeNodes returns the number of nodes that the pool has in addition while GKE upgrades it.
// The pool must be valid.
func (p Pool) UpgradeNodes() int {
	if p.Upgrade.Strategy == blueGreen {
		return p.MostNodes()
	}
	return *p.Upgrade.MaxSurge
}

// UpgradeUnavailable returns the number of nodes that the pool lacks while GKE upgrades it. The
// pool must be valid.
func (p Pool) UpgradeUnavailable() int {
	if p.Upgrade.Strategy == blueGreen {
		return 0
	}
	return *p.Upgrade.MaxUnavailable
}

func checkUpgrade(p *check.Problems, path *field.Path, u Upgrade) {
	if u.Strategy != surge && u.Strategy != blueGreen {
		return // reported as it was decoded
	}
	for _, f := range []struct {
		name     string
		strategy string
		written  bool
	}{
		{"maxSurge", surge, u.MaxSurge != nil},
		{"maxUnavailable", surge, u.MaxUnavailable != nil},
		{"batchNodes", blueGreen, u.BatchNodes != 0},
		{"soakSeconds", blueGreen, u.SoakSeconds != 0},
	} {
		if f.written && f.strategy != u.Strategy {
			p.Forbidden(path.Child(f.name), "applies only to the strategy %s, but the pool uses %s; remove it", f.strategy, u.Strategy)
		}
	}
	if u.Strategy == surge {
		checkSurge(p, path, *u.MaxSurge, *u.MaxUnavailable)
		return
	}
	if u.BatchNodes < 1 {
		p.Invalid(path.Child("batchNodes"), u.BatchNodes, "must be at least 1")
	}
	check.Range(p, path.Child("soakSeconds"), u.SoakSeconds, 1, longestSoak, ", seven days")
}

func checkSurge(p *check.Problems, path *field.Path, maxSurge, maxUnavailable int) {
	if !check.Range(p, path.Child("maxSurge"), maxSurge, 0, mostUpgradedAtOnce, "") ||
		!check.Range(p, path.Child("maxUnavailable"), maxUnavailable, 0, mostUpgradedAtOnce, "") {
		return
	}
	switch both := maxSurge + maxUnavailable; {
	case both == 0:
		p.Invalid(path.Child("maxUnavailable"), 0, "maxSurge is also 0, so no node could be upgraded; set one of them to at least 1")
	case both > mostUpgradedAtOnce:
		p.Invalid(path.Child("maxUnavailable"), maxUnavailable, "makes %d together with maxSurge, but GKE upgrades at most %d nodes at a time; write fewer", both, mostUpgradedAtOnce)
	}
}
