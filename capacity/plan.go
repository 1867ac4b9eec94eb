// Package capacity works out what GKE leaves of machines to pods, and whether a stack's pods fit its node pools.
//
// It computes with the machines of package gcp and calls no cloud API, so the program refuses a
// stack that does not fit before anything is paid for.
package capacity

import (
	"cmp"
	"slices"

	"persia/gcp"
)

// Plan compares what a stack's node pools must hold with their room.
type Plan struct {
	Pools []PoolPlan
	// Nodes and Pods count all pools, with every pool at its maximum.
	Nodes, Pods int
	// Allocatable is the room that these nodes leave to pods, and Used the sum of the pods' requests.
	Allocatable, Used Resources
	// Ranges are the address ranges of the network, and Quotas the Compute Engine quotas that the stack uses.
	Ranges []Range
	Quotas []Quota
	// HourlyCost is the cost of all nodes, or nil if a machine has no known price.
	HourlyCost *float64
	// NoRegion is true if the region of the nodes is unknown, and so are list prices.
	NoRegion bool
	// Trainings are the running jobs, as the stack file expects them and as they were measured.
	Trainings []Training
}

// PoolPlan compares the pods of a pool with its nodes.
type PoolPlan struct {
	Pool
	// Needed is the number of nodes that hold all pods, in whatever order they
	// come, and the spare nodes. It is 0 if TooLarge is not empty.
	Needed int
	// TooLarge are the pods that fit no node of the pool, not even an empty one.
	TooLarge []Pods
	// Used is the sum of the requests of all pods.
	Used Resources
	// Stranded is the room of the needed nodes that no pod requests, although it is paid for.
	Stranded Resources
	// BoundBy is the resource that decides how many nodes are needed, the scarcest.
	BoundBy string
	// HourlyCost is the cost of all nodes that the pool may have, or nil if the machine has no known price. LeastHourlyCost is
	// less for a list of pools: for that, HourlyCost is the cost of the needed nodes on the dearest pools.
	HourlyCost, LeastHourlyCost *float64
	// Listed is true if that is Google's list price, and false for a price of the stack file.
	Listed bool
	// Unpriced is a machine without a known price, or nil.
	Unpriced *Rung
}

// Price is the price of a machine for an hour, in gcp.PriceCurrency.
type Price struct {
	Hourly float64
	// Listed is true for Google's list price.
	Listed bool
}

// Prices returns the price of a machine, if it is known.
type Prices func(machine gcp.Machine, spot bool) (price Price, known bool)

// NewPlan plans for pools.
func NewPlan(pools []Pool, prices Prices) Plan {
	plan := Plan{}
	cost, known := 0.0, true
	for _, pool := range pools {
		p := newPoolPlan(pool, prices)
		plan.Pools = append(plan.Pools, p)
		plan.Nodes += pool.Nodes
		plan.Pods += int(p.Used.Pods)
		plan.Allocatable = plan.Allocatable.Plus(pool.Node.Times(pool.Nodes))
		plan.Used = plan.Used.Plus(p.Used)
		if p.HourlyCost == nil {
			known = false
			continue
		}
		cost += *p.HourlyCost
	}
	if known && len(pools) > 0 {
		plan.HourlyCost = &cost
	}
	return plan
}

func newPoolPlan(pool Pool, prices Prices) PoolPlan {
	pool.Pods = slices.DeleteFunc(slices.Clone(pool.Pods), func(pods Pods) bool { return pods.Count == 0 })
	p := PoolPlan{Pool: pool}
	for _, pods := range pool.Pods {
		p.Used = p.Used.Plus(pods.Requests.Times(pods.Count))
		if pool.Holds(pods) == 0 {
			p.TooLarge = append(p.TooLarge, pods)
		}
	}
	if len(p.TooLarge) == 0 {
		p.Needed = pool.Needed()
	}
	if p.Needed > 0 {
		p.Stranded = pool.Node.Times(p.Needed).Minus(p.Used)
		p.BoundBy = pool.boundBy(p.Used)
		p.Needed += pool.Spare
	}
	p.addCost(prices)
	return p
}

// addCost adds what the nodes cost: all of a pool, and of a list those that are needed, on its cheapest and its dearest pools.
func (p *PoolPlan) addCost(prices Prices) {
	if len(p.Rungs) < 2 {
		p.Rungs = []Rung{{p.Machine, p.Spot, p.Node, p.Nodes, p.Nodes}}
	}
	type offer struct {
		Rung
		price float64
	}
	var offers []offer
	more := p.Needed
	for _, rung := range p.Rungs {
		price, known := prices(rung.Machine, rung.Spot)
		if !known {
			p.Unpriced = &rung
			return
		}
		offers, more, p.Listed = append(offers, offer{rung, price.Hourly}), more-rung.Least, p.Listed || price.Listed
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.price, b.price) })
	cost := func(more int) *float64 {
		sum := 0.0
		for _, o := range offers {
			grows := max(0, min(more, o.Most-o.Least))
			more -= grows
			sum += o.price * float64(o.Least+grows)
		}
		return &sum
	}
	p.LeastHourlyCost = cost(more)
	slices.Reverse(offers)
	if p.Queued {
		more = p.Nodes
	}
	p.HourlyCost = cost(more)
}

// Fits reports whether all pods find room.
func (p PoolPlan) Fits() bool { return len(p.TooLarge) == 0 && p.Needed <= p.Nodes }

// FitsOn reports whether all pods find room on as many nodes with another room.
func (p PoolPlan) FitsOn(node Resources) bool {
	p.Node = node
	return p.Used.Within(node.Times(p.Nodes)) &&
		!slices.ContainsFunc(p.Pods, func(pods Pods) bool { return p.Holds(pods) == 0 }) && p.Pool.Needed()+p.Spare <= p.Nodes
}

// Short returns the resource that the nodes are short of, or "" if more of a single resource would not
// give all pods room.
func (p PoolPlan) Short() string {
	for _, d := range dimensions {
		more := p.Node
		*d.of(&more) += d.plenty
		if p.FitsOn(more) {
			return d.name
		}
	}
	return ""
}

// Missing returns how many pods find no room, for a pool whose pods are alike. For other pools the
// number depends on the order of the pods, and known is false.
func (p PoolPlan) Missing() (missing int, known bool) {
	if len(p.Pods) != 1 {
		return 0, false
	}
	return max(0, p.Pods[0].Count-p.Nodes*p.Holds(p.Pods[0])), true
}

// boundBy returns the resource with the highest utilization. If all pods are alike, it is the
// resource that a full node lacks for another pod.
func (p Pool) boundBy(used Resources) string {
	if len(p.Pods) == 1 {
		if p.Pods[0].Apart {
			return "anti-affinity"
		}
		used = p.Pods[0].Requests
	}
	scarcest, most := "", 0.0
	for _, d := range dimensions {
		if d.amount(used) == 0 || d.amount(p.Node) <= 0 {
			continue
		}
		if share := float64(d.amount(used)) / float64(d.amount(p.Node)); share > most {
			scarcest, most = d.name, share
		}
	}
	return scarcest
}
