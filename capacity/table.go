package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"persia/gcp"
)

// String returns the plan as tables for people.
func (p Plan) String() string {
	changed, others := p.Since(nil)
	return changed + "\n" + others
}

// Since returns the tables for people to decide by that differ from [Plan.Decisive] of an earlier plan, and all others.
func (p Plan) Since(earlier []any) (changed, others string) {
	var differ, rest []string
	shown := p.decisive()
	for i, table := range p.planned().decisive() {
		text, planned := filled(shown[i]), strings.Join(filled(table), "")
		if planned == "" || slices.Contains(earlier, any(planned)) {
			rest = append(rest, text...)
		} else {
			differ = append(differ, text...)
		}
	}
	rest = append(rest, filled(p.idle(), p.pods(), p.upgrades(), p.ranges())...)
	return strings.Join(differ, "\n"), strings.Join(rest, "\n")
}

// Decisive returns the tables for people to decide by. What was measured is not in them, because it changes by itself.
func (p Plan) Decisive() []string { return filled(p.planned().decisive()...) }

func (p Plan) decisive() []*table { return []*table{p.pools(), p.quotas(), p.costs(), p.trainings()} }

// planned returns the plan without what was measured.
func (p Plan) planned() Plan {
	p.Trainings = slices.DeleteFunc(slices.Clone(p.Trainings), func(t Training) bool { return t.Measured != nil })
	return p
}

// Cost says in a line what all nodes cost, and the difference to a cost that may be nil, or which machines have no price.
func (p Plan) Cost(last *float64) string {
	if p.HourlyCost == nil {
		var machines []string
		for _, pool := range p.Pools {
			if pool.Unpriced != nil && !slices.Contains(machines, pool.Unpriced.Machine.Type) {
				machines = append(machines, pool.Unpriced.Machine.Type)
			}
		}
		return fmt.Sprintf("cost unknown: no price of %s (`bin/persia prices`)", strings.Join(machines, ", "))
	}
	hourly := math.Round(*p.HourlyCost*100) / 100
	text := fmt.Sprintf("%s %.2f an hour, %s a month", gcp.PriceCurrency, hourly, thousands(int(hourly*hoursAMonth)))
	if last != nil && dollars(*last) != dollars(hourly) {
		text += fmt.Sprintf(" (%+.2f an hour)", hourly-*last)
	}
	return text
}

// hoursAMonth is the length of Google's average month.
const hoursAMonth = 730

// thousands returns a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func (p Plan) pools() *table {
	table := newTable("NODE POOL", "MACHINE", "NODES", "CPU", "MEMORY", "GPUS")
	for _, pool := range p.Pools {
		cpu, memory, gpus := shares(pool.Used, pool.Node.Times(pool.Nodes))
		table.row(pool.Name, pool.Machine.Type, fmt.Sprintf("%d of %d", pool.Needed, pool.Nodes), cpu, memory, gpus)
	}
	cpu, memory, gpus := shares(p.Used, p.Allocatable)
	table.row("all", "", fmt.Sprint(p.Nodes), cpu, memory, gpus)
	return table
}

// idle says what no pod requests on the nodes that are needed, and which resource is used up first.
func (p Plan) idle() *table {
	table := newTable("IDLE IN", "CPU", "MEMORY", "GPUS", "LIMIT")
	for _, pool := range p.Pools {
		gpus := ""
		if pool.Node.GPUs > 0 {
			gpus = fmt.Sprint(pool.Stranded.GPUs)
		}
		table.row(pool.Name, fmt.Sprint(pool.Stranded.MilliCPU/1000), formatBytes(pool.Stranded.MemoryBytes), gpus, pool.BoundBy)
	}
	return table
}

func (p Plan) pods() *table {
	table := newTable("PODS OF", "COUNT", "PER NODE", "POD")
	for _, pool := range p.Pools {
		for _, pods := range pool.Pods {
			table.row(pool.Name, fmt.Sprint(pods.Count), fmt.Sprint(pool.Holds(pods)), pods.Name)
		}
	}
	table.row("all", fmt.Sprint(p.Pods))
	return table
}

// upgrades is empty for an existing cluster, which others upgrade.
func (p Plan) upgrades() *table {
	table := newTable("UPGRADE OF", "EXTRA", "DOWN AT ONCE", "ROUNDS", "RESTARTS")
	if !slices.ContainsFunc(p.Pools, func(pool PoolPlan) bool { return pool.Upgrade.Rounds > 0 }) {
		return table
	}
	for _, pool := range p.Pools {
		u := pool.Upgrade
		ended := "none"
		if len(u.Jobs) > 0 {
			ended = fmt.Sprintf("%d of %s", u.Rounds, names(u.Jobs))
		}
		table.row(pool.Name, fmt.Sprint(u.Additional), fmt.Sprint(u.Unavailable), fmt.Sprint(u.Rounds), ended)
	}
	return table
}

// names lists jobs, or counts them if their names would make a table too wide.
func names(jobs []string) string {
	const most = 32
	text := strings.Join(jobs, ", ")
	if len(text) > most && len(jobs) > 1 {
		return fmt.Sprintf("each of %d jobs", len(jobs))
	}
	return text
}

func (p Plan) ranges() *table {
	table := newTable("ADDRESSES OF", "RANGE", "NEEDED", "AVAILABLE")
	for _, r := range p.Ranges {
		table.row(r.Name, r.CIDR, fmt.Sprint(r.Needed), fmt.Sprint(r.Size))
	}
	return table
}

func (p Plan) quotas() *table {
	table := newTable("QUOTA", "REGION", "NEEDED")
	for _, quota := range p.Quotas {
		table.row(quota.Name, quota.Region, fmt.Sprint(quota.Amount))
	}
	return table
}

// costs says what the nodes cost, and what has no known price.
func (p Plan) costs() *table {
	table := newTable("COST OF", gcp.PriceCurrency+" AN HOUR", "PRICE")
	for _, pool := range p.Pools {
		switch {
		case pool.HourlyCost == nil && p.NoRegion:
			table.row(pool.Name, "unknown", "region unknown: name the context gke_PROJECT_REGION_CLUSTER, or set "+pool.unpriced())
		case pool.HourlyCost == nil:
			table.row(pool.Name, "unknown", "no list price: set "+pool.unpriced())
		case pool.Listed:
			table.note = fmt.Sprintf("List prices of %s: not your contract, and without disks, traffic, and the control plane.\n", gcp.PriceDate)
			table.row(pool.Name, pool.cost(), "list price")
		default:
			table.row(pool.Name, pool.cost(), "of the stack file")
		}
	}
	if p.HourlyCost != nil {
		table.row("all", dollars(*p.HourlyCost))
	}
	return table
}

// unpriced names the price that is not known in a stack file.
func (p PoolPlan) unpriced() string {
	of := Rung{Machine: p.Machine, Spot: p.Spot}
	if p.Unpriced != nil {
		of = *p.Unpriced
	}
	if of.Spot {
		return "spotHourlyPrice of " + of.Machine.Type
	}
	return "hourlyPrice of " + of.Machine.Type
}

func (p PoolPlan) cost() string {
	if least := dollars(*p.LeastHourlyCost); least != dollars(*p.HourlyCost) {
		return least + " to " + dollars(*p.HourlyCost)
	}
	return dollars(*p.HourlyCost)
}

func dollars(price float64) string { return fmt.Sprintf("%.2f", price) }

// trainings says how often each job should write a checkpoint.
func (p Plan) trainings() *table {
	table := newTable("CHECKPOINTS OF", "A FAILURE EVERY", "BEST INTERVAL", "USEFUL HOURS", "COST OF A USEFUL HOUR")
	for _, training := range p.Trainings {
		if !training.Known() && training.Measured == nil {
			continue
		}
		if training.Kept > 0 && training.Measured == nil {
			full := training
			full.Job, full.Kept = training.Job+", full recovery", 0
			table.row(full.cells()...)
			training.Job += ", partial recovery"
		}
		table.row(training.cells()...)
	}
	return table
}

// cells returns the row of a training.
func (t Training) cells() []string {
	fails, interval, cost := "none yet", "unknown", "unknown"
	if t.BetweenFailures > 0 {
		fails = fmt.Sprintf("%.1f h", t.BetweenFailures)
	}
	if t.Known() {
		interval = fmt.Sprintf("%.0f min", t.BestInterval()*60)
	}
	if useful := t.UsefulHourCost(); useful != nil {
		cost = dollars(*useful) + " " + gcp.PriceCurrency
	}
	return []string{t.Job, fails, interval, fmt.Sprintf("%.0f%%", t.Useful()*100), cost}
}

// table aligns columns. The last cells of a row may be left out.
type table struct {
	text  strings.Builder
	cells *tabwriter.Writer
	rows  int
	// note is a line below the table.
	note string
}

func newTable(header ...string) *table {
	var t table
	t.cells = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	t.row(header...)
	return &t
}

func (t *table) row(cells ...string) {
	t.rows++
	_, _ = fmt.Fprintln(t.cells, strings.Join(cells, "\t")) // into memory
}

// filled returns the tables that have more than a header.
func filled(tables ...*table) []string {
	var texts []string
	for _, t := range tables {
		if t.rows < 2 {
			continue
		}
		_ = t.cells.Flush() // into memory
		text := ""
		for line := range strings.Lines(t.text.String()) {
			text += strings.TrimRight(line, " \n") + "\n"
		}
		texts = append(texts, text+t.note)
	}
	return texts
}

// Kinds returns the pods of a pool, like "8 × nnWorker of criteo".
func (p Pool) Kinds() []string {
	var kinds []string
	for _, pods := range p.Pods {
		kinds = append(kinds, fmt.Sprintf("%d × %s", pods.Count, pods.Name))
	}
	return kinds
}

// shares formats how much of each resource is used.
func shares(used, all Resources) (cpu, memory, gpus string) {
	return share(used.MilliCPU, all.MilliCPU, fmt.Sprint(all.MilliCPU/1000)),
		share(used.MemoryBytes, all.MemoryBytes, formatBytes(all.MemoryBytes)),
		share(used.GPUs, all.GPUs, fmt.Sprint(all.GPUs))
}

// share formats how much of an amount is used.
func share(used, all int64, text string) string {
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%% of %s", int64(float64(used)/float64(all)*100), text)
}

// formatBytes returns a number of bytes in GiB, as quantities are written.
func formatBytes(bytes int64) string { return fmt.Sprintf("%dGi", bytes/GiB) }
