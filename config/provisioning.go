package config

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reservationForm is a reservation's name, or its path in another project.
var reservationForm = regexp.MustCompile(`^(projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/reservations/)?[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// provisioning checks the ways that nodes are come by, most of which exclude each
// other.
func (v *validator) provisioning(path *field.Path, p NodePool) {
	v.spot(path.Child("spot"), p)
	if p.QueuedProvisioning {
		v.queued(path, p)
	}
	if p.CompactPlacement {
		v.compact(path, p)
	}
	if p.Reservation != "" && !reservationForm.MatchString(p.Reservation) {
		v.invalid(path.Child("reservation"), p.Reservation, "must be the name of a reservation, like trainers, or projects/P/reservations/R of another project")
	}
}

func (v *validator) spot(path *field.Path, p NodePool) {
	switch {
	case !p.Spot:
	case p.QueuedProvisioning:
		v.invalid(path, p.Spot, "excludes queuedProvisioning, whose nodes are not taken back; remove one of the two")
	case p.Reservation != "":
		v.invalid(path, p.Spot, "excludes reservation, which holds no spot machines; remove one of the two")
	}
}

// queued checks a pool of queued provisioning (GKE, "Run a large-scale workload
// with flex-start with queued provisioning", limitations).
func (v *validator) queued(path *field.Path, p NodePool) {
	if p.Nodes != nil {
		v.invalid(path.Child("nodes"), *p.Nodes, "excludes queuedProvisioning, which makes the nodes when they are asked for; write autoscaling with minNodes 0 instead")
	}
	if a := p.Autoscaling; a != nil && a.MinNodes > 0 {
		v.invalid(path.Child("autoscaling", "minNodes"), a.MinNodes, "must be 0 with queuedProvisioning, which makes the nodes when they are asked for")
	}
	if a := p.Autoscaling; a != nil && a.LocationPolicy == "BALANCED" {
		v.invalid(path.Child("autoscaling", "locationPolicy"), a.LocationPolicy, "excludes queuedProvisioning, which takes all nodes where they are; write ANY, or remove it")
	}
	if p.Reservation != "" {
		v.invalid(path.Child("reservation"), p.Reservation, "excludes queuedProvisioning, which takes no reserved machines; remove one of the two")
	}
	if p.CompactPlacement {
		v.invalid(path.Child("compactPlacement"), p.CompactPlacement, "excludes queuedProvisioning; remove one of the two")
	}
	if p.Upgrade.Strategy == blueGreen {
		v.invalid(path.Child("upgrade", "strategy"), blueGreen, "excludes queuedProvisioning, whose nodes cannot be had twice; write %s, or remove it", surge)
	}
}

// mostCompactNodes is GKE's limit (GKE, "Define compact placement for GKE nodes").
const mostCompactNodes = 1500

// compact checks a pool whose nodes are close to each other.
func (v *validator) compact(path *field.Path, p NodePool) {
	at := path.Child("compactPlacement")
	if len(p.Zones) > 1 {
		v.invalid(at, p.CompactPlacement, "puts all nodes in one zone, and the pool has the zones %s; write one in zones, or remove it", and(p.Zones))
	}
	if p.mostNodes() > mostCompactNodes {
		v.invalid(at, p.CompactPlacement, "is for at most %d nodes, and the pool has up to %d; write fewer, or remove it", mostCompactNodes, p.mostNodes())
	}
	if p.Upgrade.Strategy == blueGreen {
		v.invalid(path.Child("upgrade", "strategy"), blueGreen, "excludes compactPlacement, as there is no room for the nodes twice; write %s, or remove one of the two", surge)
	}
}
