package poolspec

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// reservationForm matches the name of a reservation, or its path in another project, with an
// optional block (cluster-toolkit, modules/compute/gke-node-pool, specific_reservations).
var reservationForm = regexp.MustCompile(`^(projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/reservations/)?[a-z]([a-z0-9-]{0,61}[a-z0-9])?(/reservationBlocks/[a-z0-9-]{1,63})?$`)

// provisioning checks spot, queued provisioning, compact placement and reservations. Most of
// them exclude each other.
func (c *checker) provisioning(path *field.Path, pool Pool) {
	c.spot(path.Child("spot"), pool)
	if pool.QueuedProvisioning {
		c.queued(path, pool)
	}
	if pool.CompactPlacement {
		c.compact(path, pool)
	}
	if pool.Reservation != "" && !reservationForm.MatchString(pool.Reservation) {
		c.Invalid(path.Child("reservation"), pool.Reservation, "must be the name of a reservation, like nn-workers, or projects/P/reservations/R for one in another project; append /reservationBlocks/B for one of its blocks")
	}
}

func (c *checker) spot(path *field.Path, pool Pool) {
	switch {
	case !pool.Spot:
	case pool.QueuedProvisioning:
		c.Invalid(path, pool.Spot, "cannot be combined with queuedProvisioning, whose nodes are never preempted; remove one of them")
	case pool.Reservation != "":
		c.Invalid(path, pool.Spot, "cannot be combined with reservation, because reservations have no spot machines; remove one of them")
	}
}

// queued checks a pool with queued provisioning (GKE, "Run a large-scale workload with
// flex-start with queued provisioning", limitations).
func (c *checker) queued(path *field.Path, pool Pool) {
	if pool.Nodes != nil {
		c.Invalid(path.Child("nodes"), *pool.Nodes, "cannot be combined with queuedProvisioning, which creates nodes on request; use autoscaling with minNodes 0 instead")
	}
	if a := pool.Autoscaling; a != nil && a.MinNodes > 0 {
		c.Invalid(path.Child("autoscaling", "minNodes"), a.MinNodes, "must be 0 with queuedProvisioning, which creates nodes on request")
	}
	if a := pool.Autoscaling; a != nil && a.LocationPolicy == "BALANCED" {
		c.Invalid(path.Child("autoscaling", "locationPolicy"), a.LocationPolicy, "cannot be combined with queuedProvisioning, which creates nodes wherever they are available; write ANY, or remove it")
	}
	if pool.Reservation != "" {
		c.Invalid(path.Child("reservation"), pool.Reservation, "cannot be combined with queuedProvisioning, which does not use reserved machines; remove one of them")
	}
	if pool.CompactPlacement {
		c.Invalid(path.Child("compactPlacement"), pool.CompactPlacement, "cannot be combined with queuedProvisioning; remove one of them")
	}
	if pool.Upgrade.Strategy == blueGreen {
		c.Invalid(path.Child("upgrade", "strategy"), blueGreen, "cannot be combined with queuedProvisioning, which cannot provide a second set of nodes; write %s, or remove it", surge)
	}
}

// mostCompactNodes is the limit of GKE (GKE, "Define compact placement for GKE nodes").
const mostCompactNodes = 1500

// compact checks a pool with compact placement.
func (c *checker) compact(path *field.Path, pool Pool) {
	at := path.Child("compactPlacement")
	if len(pool.Zones) == 0 && !c.context.Unknown {
		c.Invalid(at, pool.CompactPlacement, "requires a single zone, but GKE chooses three zones for a pool without zones; write one in zones of the pool, or remove it")
	}
	if len(pool.Zones) > 1 {
		c.Invalid(at, pool.CompactPlacement, "requires a single zone, but the pool has the zones %s; write one zone, or remove it", check.And(pool.Zones))
	}
	if pool.MostNodes() > mostCompactNodes {
		c.Invalid(at, pool.CompactPlacement, "supports at most %d nodes, but the pool has up to %d; use fewer nodes, or remove it", mostCompactNodes, pool.MostNodes())
	}
	if pool.Upgrade.Strategy == blueGreen {
		c.Invalid(path.Child("upgrade", "strategy"), blueGreen, "cannot be combined with compactPlacement, which has no room for a second set of nodes; write %s, or remove one of them", surge)
	}
}
