package capacity

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"persia/gcp"
)

// String returns the plan as tables for people: the pools, the quotas, the cost.
func (p Plan) String() string {
	var text strings.Builder
	p.writePools(&text)
	p.writeStranded(&text)
	p.writePods(&text)
	p.writeUpgrades(&text)
	p.writeRanges(&text)
	p.writeQuotas(&text)
	p.writeCosts(&text)
	p.writeTrainings(&text)
	return text.String()
}

func (p Plan) writePools(text *strings.Builder) {
	table := newTable("NODE POOL", "MACHINE", "NODES", "CPU", "MEMORY", "GPUS")
	for _, pool := range p.Pools {
		table.row(pool.Name, pool.Machine.Type, fmt.Sprintf("%d of %d", pool.Needed, pool.Nodes),
			cpuShare(pool.Used, pool.Node.Times(pool.Nodes)),
			memoryShare(pool.Used, pool.Node.Times(pool.Nodes)),
			gpuShare(pool.Used, pool.Node.Times(pool.Nodes)))
	}
	table.row("all", "", fmt.Sprint(p.Nodes),
		cpuShare(p.Used, p.Allocatable), memoryShare(p.Used, p.Allocatable), gpuShare(p.Used, p.Allocatable))
	table.writeTo(text)
}

// writeStranded writes what no pod requests on the nodes that are needed, and which resource is
// used up first.
func (p Plan) writeStranded(text *strings.Builder) {
	table := newTable("STRANDED IN", "CPU", "MEMORY", "GPUS", "BOUND BY")
	for _, pool := range p.Pools {
		gpus := ""
		if pool.Node.GPUs > 0 {
			gpus = fmt.Sprint(pool.Stranded.GPUs)
		}
		table.row(pool.Name, fmt.Sprint(pool.Stranded.MilliCPU/1000), formatBytes(pool.Stranded.MemoryBytes), gpus, pool.BoundBy)
	}
	table.writeTo(text)
}

func (p Plan) writePods(text *strings.Builder) {
	table := newTable("PODS OF", "COUNT", "A NODE", "POD")
	for _, pool := range p.Pools {
		for _, pods := range pool.Pods {
			table.row(pool.Name, fmt.Sprint(pods.Count), fmt.Sprint(pool.Holds(pods)), pods.Name)
		}
	}
	table.row("all", fmt.Sprint(p.Pods))
	table.writeTo(text)
}

// writeUpgrades writes nothing for an existing cluster, which others upgrade.
func (p Plan) writeUpgrades(text *strings.Builder) {
	if !slices.ContainsFunc(p.Pools, func(pool PoolPlan) bool { return pool.Upgrade.Rounds > 0 }) {
		return
	}
	table := newTable("UPGRADE OF", "ADDITIONAL NODES", "UNAVAILABLE NODES", "ROUNDS", "ENDED ATTEMPTS")
	for _, pool := range p.Pools {
		u := pool.Upgrade
		ended := "none"
		if len(u.Jobs) > 0 {
			ended = fmt.Sprintf("%d of %s", u.Rounds, names(u.Jobs))
		}
		table.row(pool.Name, fmt.Sprint(u.Additional), fmt.Sprint(u.Unavailable), fmt.Sprint(u.Rounds), ended)
	}
	table.writeTo(text)
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

func (p Plan) writeRanges(text *strings.Builder) {
	table := newTable("ADDRESSES OF", "RANGE", "NEEDED", "HELD")
	for _, r := range p.Ranges {
		table.row(r.Name, r.CIDR, fmt.Sprint(r.Needed), fmt.Sprint(r.Size))
	}
	table.writeTo(text)
}

func (p Plan) writeQuotas(text *strings.Builder) {
	table := newTable("QUOTA", "REGION", "NEEDED")
	for _, quota := range p.Quotas {
		table.row(quota.Name, quota.Region, fmt.Sprint(quota.Amount))
	}
	table.writeTo(text)
}

// writeCosts says what the nodes cost, and what has no known price.
func (p Plan) writeCosts(text *strings.Builder) {
	table := newTable("COST OF", gcp.PriceCurrency+" AN HOUR", "PRICE")
	listed := false
	for _, pool := range p.Pools {
		switch {
		case pool.HourlyCost == nil && p.NoRegion:
			table.row(pool.Name, "unknown", "region unknown: name the context gke_PROJECT_REGION_CLUSTER, or set hourlyPrice of "+pool.Machine.Type)
		case pool.HourlyCost == nil:
			table.row(pool.Name, "unknown", "no list price: set hourlyPrice of "+pool.Machine.Type)
		case pool.Listed:
			listed = true
			table.row(pool.Name, dollars(*pool.HourlyCost), "list price of "+gcp.PriceDate)
		default:
			table.row(pool.Name, dollars(*pool.HourlyCost), "of the stack file")
		}
	}
	if p.HourlyCost != nil {
		last := ""
		if p.LastHourlyCost != nil {
			last = "at the last update: " + dollars(*p.LastHourlyCost)
		}
		table.row("all", dollars(*p.HourlyCost), last)
	}
	table.writeTo(text)
	if listed {
		fmt.Fprintf(text, "List prices of %s: not your contract, and without disks, traffic, and the control plane.\n", gcp.PriceDate)
	}
}

func dollars(price float64) string { return fmt.Sprintf("%.2f", price) }

// writeTrainings says how often each job should write a checkpoint.
func (p Plan) writeTrainings(text *strings.Builder) {
	table := newTable("CHECKPOINTS OF", "A FAILURE EVERY", "BEST INTERVAL", "USEFUL HOURS", "COST OF A USEFUL HOUR")
	for _, training := range p.Trainings {
		if !training.Known() && training.Measured == nil {
			continue
		}
		fails, interval, cost := "none yet", "unknown", "unknown"
		if training.BetweenFailures > 0 {
			fails = fmt.Sprintf("%.1f h", training.BetweenFailures)
		}
		if training.Known() {
			interval = fmt.Sprintf("%.0f min", training.BestInterval()*60)
		}
		if useful := training.UsefulHourCost(); useful != nil {
			cost = dollars(*useful) + " " + gcp.PriceCurrency
		}
		table.row(training.Job, fails, interval, fmt.Sprintf("%.0f%%", training.Useful()*100), cost)
	}
	table.writeTo(text)
}

// table aligns columns. The last cells of a row may be left out. A table without rows is not written.
type table struct {
	text  strings.Builder
	cells *tabwriter.Writer
	rows  int
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

func (t *table) writeTo(text *strings.Builder) {
	if t.rows < 2 {
		return // nothing but the header
	}
	if text.Len() > 0 {
		text.WriteString("\n")
	}
	_ = t.cells.Flush() // into memory
	for line := range strings.Lines(t.text.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// Kinds returns the pods of a pool, like "8 × nnWorker of criteo".
func (p Pool) Kinds() []string {
	var kinds []string
	for _, pods := range p.Pods {
		kinds = append(kinds, fmt.Sprintf("%d × %s", pods.Count, pods.Name))
	}
	return kinds
}

func cpuShare(used, all Resources) string {
	return share(used.MilliCPU, all.MilliCPU, fmt.Sprint(all.MilliCPU/1000))
}

func memoryShare(used, all Resources) string {
	return share(used.MemoryBytes, all.MemoryBytes, formatBytes(all.MemoryBytes))
}

func gpuShare(used, all Resources) string {
	return share(used.GPUs, all.GPUs, fmt.Sprint(all.GPUs))
}

// share formats how much of an amount is used.
func share(used, all int64, text string) string {
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%% of %s", int64(float64(used)/float64(all)*100), text)
}

// formatBytes returns a number of bytes in GiB, as quantities are written.
func formatBytes(bytes int64) string {
	return fmt.Sprintf("%dGi", bytes/GiB)
}
