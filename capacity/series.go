package capacity

import "slices"

// What some machine series lack or insist on.
var (
	// withoutSpot have no spot machines (Compute Engine, "Spot VMs", limitations).
	withoutSpot = []string{"m2", "m3", "x4"}
	// withoutCompactPlacement cannot be placed close to each other (GKE, "Define
	// compact placement for GKE nodes", limitations).
	withoutCompactPlacement = []string{"e2", "m1", "m2", "m3", "n1", "n4", "t2a", "t2d", "x4"}
	// onlyGVNIC have no other network interface (Compute Engine, "Using Google
	// Virtual NIC").
	onlyGVNIC = []string{"a3", "c3", "c3d", "c4", "m3", "n4"}
)

// HasSpot reports whether there are spot machines of the series.
func (m Machine) HasSpot() bool { return !slices.Contains(withoutSpot, m.Family()) }

// TakesCompactPlacement reports whether machines of the series can be placed close
// to each other.
func (m Machine) TakesCompactPlacement() bool {
	return !slices.Contains(withoutCompactPlacement, m.Family())
}

// NeedsGVNIC reports whether the series has no other network interface.
func (m Machine) NeedsGVNIC() bool { return slices.Contains(onlyGVNIC, m.Family()) }
