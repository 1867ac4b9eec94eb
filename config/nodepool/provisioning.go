package nodepool

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// reservationForm is a reservation's name, or its path in another project, and perhaps
// one of its blocks (cluster-toolkit, modules/compute/gke-node-pool, specific_reservations).
var reservationForm = regexp.MustCompile(`^(projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/reservations/)?[a-z]([a-z0-9-]{0,61}[a-z0-9])?(/reservationBlocks/[a-z0-9-]{1,63})?$`)

// provisioning checks the ways that nodes are come by, most of which exclude each
// other.
func (c *checker) provisioning(path *field.Path, pool Pool) {
	c.spot(path.Child("spot"), pool)
	if pool.QueuedProvisioning {
		c.queued(path, pool)
	}
	if pool.CompactPlacement {
		c.compact(path, pool)
	}
	if pool.Reservation != "" && !reservationForm.MatchString(pool.Reservation) {
		c.Invalid(path.Child("reservation"), pool.Reservation, "must be the name of a reservation, like trainers, or projects/P/reservations/R of another project, and for one of its blocks /reservationBlocks/B after that")
	}
}

func (c *checker) spot(path *field.Path, pool Pool) {
	switch {
	case !pool.Spot:
	case pool.QueuedProvisioning:
		c.Invalid(path, pool.Spot, "excludes queuedProvisioning, whose nodes are not taken back; remove one of the two")
	case pool.Reservation != "":
		c.Invalid(path, pool.Spot, "excludes reservation, which holds no spot machines; remove one of the two")
	}
}

// queued checks a pool of queued provisioning (GKE, "Run a large-scale workload
// with flex-start with queued provisioning", limitations).
func (c *checker) queued(path *field.Path, pool Pool) {
	if pool.Nodes != nil {
		c.Invalid(path.Child("nodes"), *pool.Nodes, "excludes queuedProvisioning, which makes the nodes when they are asked for; write autoscaling with minNodes 0 instead")
	}
	if a := pool.Autoscaling; a != nil && a.MinNodes > 0 {
		c.Invalid(path.Child("autoscaling", "minNodes"), a.MinNodes, "must be 0 with queuedProvisioning, which makes the nodes when they are asked for")
	}
	if a := pool.Autoscaling; a != nil && a.LocationPolicy == "BALANCED" {
		c.Invalid(path.Child("autoscaling", "locationPolicy"), a.LocationPolicy, "excludes queuedProvisioning, which takes all nodes where they are; write ANY, or remove it")
	}
	if pool.Reservation != "" {
		c.Invalid(path.Child("reservation"), pool.Reservation, "excludes queuedProvisioning, which takes no reserved machines; remove one of the two")
	}
	if pool.CompactPlacement {
		c.Invalid(path.Child("compactPlacement"), pool.CompactPlacement, "excludes queuedProvisioning; remove one of the two")
	}
	if pool.Upgrade.Strategy == blueGreen {
		c.Invalid(path.Child("upgrade", "strategy"), blueGreen, "excludes queuedProvisioning, whose nodes cannot be had twice; write %s, or remove it", surge)
	}
}

// mostCompactNodes is GKE's limit (GKE, "Define compact placement for GKE nodes").
const mostCompactNodes = 1500

// compact checks a pool whose nodes are close to each other.
func (c *checker) compact(path *field.Path, pool Pool) {
	at := path.Child("compactPlacement")
	if len(pool.Zones) > 1 {
		c.Invalid(at, pool.CompactPlacement, "puts all nodes in one zone, and the pool has the zones %s; write one in zones, or remove it", check.And(pool.Zones))
	}
	if pool.MostNodes() > mostCompactNodes {
		c.Invalid(at, pool.CompactPlacement, "is for at most %d nodes, and the pool has up to %d; write fewer, or remove it", mostCompactNodes, pool.MostNodes())
	}
	if pool.Upgrade.Strategy == blueGreen {
		c.Invalid(path.Child("upgrade", "strategy"), blueGreen, "excludes compactPlacement, as there is no room for the nodes twice; write %s, or remove one of the two", surge)
	}
}
