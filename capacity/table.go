package capacity

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// String is the plan as tables for people: the pools, the quotas, the cost.
func (p Plan) String() string {
	var text strings.Builder
	p.writePools(&text)
	p.writeUpgrades(&text)
	if len(p.Ranges) > 0 {
		text.WriteString("\n")
		p.writeRanges(&text)
	}
	if len(p.Quotas) > 0 {
		text.WriteString("\n")
		p.writeQuotas(&text)
	}
	if p.HourlyCost != nil {
		fmt.Fprintf(&text, "\nCost of all nodes: %.2f an hour\n", *p.HourlyCost)
	}
	return text.String()
}

func (p Plan) writePools(text *strings.Builder) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row(table, "NODE POOL", "MACHINE", "NODES", "CPU", "MEMORY", "GPUS", "STRANDED", "BOUND BY", "PODS")
	for _, pool := range p.Pools {
		row(table, pool.Name, pool.Machine.Type, fmt.Sprintf("%d of %d", pool.Needed, pool.Nodes),
			cpuShare(pool.Used, pool.Node.Times(pool.Nodes)),
			memoryShare(pool.Used, pool.Node.Times(pool.Nodes)),
			gpuShare(pool.Used, pool.Node.Times(pool.Nodes)),
			stranded(pool.Stranded), pool.BoundBy,
			strings.Join(pool.kindsANode(), "; "))
	}
	row(table, "all", "", fmt.Sprint(p.Nodes),
		cpuShare(p.Used, p.Allocatable), memoryShare(p.Used, p.Allocatable), gpuShare(p.Used, p.Allocatable),
		"", "", fmt.Sprint(p.Pods))
	_ = table.Flush() // into memory
}

// writeUpgrades writes nothing for an existing cluster, which others upgrade.
func (p Plan) writeUpgrades(text *strings.Builder) {
	if !slices.ContainsFunc(p.Pools, func(pool PoolPlan) bool { return pool.Upgrade.Rounds > 0 }) {
		return
	}
	text.WriteString("\n")
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row(table, "UPGRADE OF", "ADDITIONAL NODES", "UNAVAILABLE NODES", "ROUNDS", "ENDED ATTEMPTS")
	for _, pool := range p.Pools {
		u := pool.Upgrade
		ended := "none"
		if len(u.Jobs) > 0 {
			ended = fmt.Sprintf("%d of %s", u.Rounds, strings.Join(u.Jobs, ", "))
		}
		row(table, pool.Name, fmt.Sprint(u.Additional), fmt.Sprint(u.Unavailable), fmt.Sprint(u.Rounds), ended)
	}
	_ = table.Flush() // into memory
}

func (p Plan) writeRanges(text *strings.Builder) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row(table, "ADDRESSES OF", "RANGE", "NEEDED", "HELD")
	for _, r := range p.Ranges {
		row(table, r.Name, r.CIDR, fmt.Sprint(r.Needed), fmt.Sprint(r.Size))
	}
	_ = table.Flush() // into memory
}

func (p Plan) writeQuotas(text *strings.Builder) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row(table, "QUOTA", "REGION", "NEEDED")
	for _, quota := range p.Quotas {
		row(table, quota.Name, quota.Region, fmt.Sprint(quota.Amount))
	}
	_ = table.Flush() // into memory
}

func row(table *tabwriter.Writer, cells ...string) {
	_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) // into memory
}

// Kinds are the pods of a pool, like "8 × nnWorker of criteo".
func (p Pool) Kinds() []string {
	var kinds []string
	for _, pods := range p.Pods {
		kinds = append(kinds, fmt.Sprintf("%d × %s", pods.Count, pods.Name))
	}
	return kinds
}

// kindsANode tells with each kind how many a node holds of it alone.
func (p Pool) kindsANode() []string {
	kinds := p.Kinds()
	for i := range kinds {
		kinds[i] += fmt.Sprintf(", %d a node", p.Holds(p.Pods[i]))
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

// share is how much is used of what there is.
func share(used, all int64, text string) string {
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%% of %s", int64(float64(used)/float64(all)*100), text)
}

// stranded are the amounts worth telling.
func stranded(r Resources) string {
	if r.MilliCPU == 0 && r.MemoryBytes == 0 {
		return ""
	}
	text := fmt.Sprintf("%d CPU, %s", r.MilliCPU/1000, formatBytes(r.MemoryBytes))
	if r.GPUs > 0 {
		text += fmt.Sprintf(", %d GPUs", r.GPUs)
	}
	return text
}

// formatBytes is a number of bytes in GiB, as quantities are written.
func formatBytes(bytes int64) string {
	return fmt.Sprintf("%dGi", bytes/GiB)
}
