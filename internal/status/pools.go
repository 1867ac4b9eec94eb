package status

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"persia/gcp"
)

// nodePool sums up the nodes of a pool that the cluster has.
type nodePool struct {
	Name    string `json:"name"`
	Machine string `json:"machineType"`
	Ready   int    `json:"ready"`
	Nodes   int    `json:"nodes"`
	// GPUs is how many the nodes have, and Held how many of them the pods of each job have.
	GPUs int64            `json:"gpus"`
	Held map[string]int64 `json:"gpusOfJobs"`
	// HourlyCost is the list price of the nodes, in [gcp.PriceCurrency]. If that of some is not known, Unpriced is true.
	HourlyCost float64 `json:"hourlyCost"`
	Unpriced   bool    `json:"unpriced"`
}

// poolsOf returns the pools of nodes, by name.
func poolsOf(nodes []corev1.Node, trainings []Training) []nodePool {
	pools, of := map[string]*nodePool{}, map[string]*nodePool{}
	for _, node := range nodes {
		name := node.Labels[gcp.LabelNodePool]
		if pools[name] == nil {
			pools[name] = &nodePool{Name: name, Machine: node.Labels[corev1.LabelInstanceTypeStable], Held: map[string]int64{}}
		}
		pool := pools[name]
		of[node.Name] = pool
		pool.Nodes++
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				pool.Ready++
			}
		}
		gpus := node.Status.Capacity[gcp.GPUResource]
		pool.GPUs += gpus.Value()
		machine, _ := gcp.Lookup(pool.Machine)
		if machine.TakesGPUs() {
			machine = machine.WithGPUs(node.Labels[gcp.LabelAccelerator], int(gpus.Value()))
		}
		price, known := machine.ListPrice(node.Labels[corev1.LabelTopologyRegion], node.Labels[gcp.LabelSpot] == "true")
		pool.HourlyCost += price
		pool.Unpriced = pool.Unpriced || !known
	}
	for _, training := range trainings {
		for _, pod := range training.Pods {
			pool := of[pod.Spec.NodeName]
			if pool == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
				continue
			}
			for _, container := range pod.Spec.Containers {
				if gpus := container.Resources.Limits[gcp.GPUResource]; !gpus.IsZero() {
					pool.Held[training.Job] += gpus.Value()
				}
			}
		}
	}
	all := []nodePool{}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		all = append(all, *pools[name])
	}
	return all
}

func printPools(out io.Writer, pools []nodePool) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nNODE POOL\tMACHINE\tNODES READY\tGPUS\t%s AN HOUR, LISTED %s\n", gcp.PriceCurrency, gcp.PriceDate)
	for _, pool := range pools {
		fmt.Fprintf(table, "%s\t%s\t%d/%d\t%s\t%s\n", pool.Name, pool.Machine, pool.Ready, pool.Nodes, pool.gpus(), pool.cost())
	}
	fmt.Fprintf(table, "all\t\t\t\t%s\n", costOf(pools, 1))
	_ = table.Flush()
}

// costOf returns what pools cost in some hours, for people.
func costOf(pools []nodePool, hours float64) string {
	var sum nodePool
	for _, pool := range pools {
		sum.HourlyCost += pool.HourlyCost * hours
		sum.Unpriced = sum.Unpriced || pool.Unpriced
	}
	return sum.cost()
}

// gpus says which jobs have the GPUs of the pool.
func (p nodePool) gpus() string {
	if p.GPUs == 0 {
		return ""
	}
	free, parts := p.GPUs, []string{}
	for _, job := range slices.Sorted(maps.Keys(p.Held)) {
		parts = append(parts, fmt.Sprintf("%d %s", p.Held[job], job))
		free -= p.Held[job]
	}
	return strings.Join(append(parts, fmt.Sprintf("%d free", free)), ", ")
}

func (p nodePool) cost() string {
	switch {
	case !p.Unpriced:
		return fmt.Sprintf("%.2f", p.HourlyCost)
	case p.HourlyCost == 0:
		return "unknown"
	default:
		return fmt.Sprintf("%.2f and more", p.HourlyCost)
	}
}
