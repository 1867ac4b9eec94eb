package gcp

import (
	_ "embed"
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// catalogue is the content of catalogue.yaml, whose comments name the sources.
type catalogue struct {
	MultiRegions map[string][]string
	Disks        map[string][2]int
	GPUs         map[string]gpu
	PriceRegions []string
	// MachinePrices are by the beginning of the names of machine types.
	MachinePrices map[string]machinePrice
	GPUPrices     map[string]rate
	Series        []series

	// machines are the types of all series, by name.
	machines map[string]Machine
}

// gpu is a type of GPU.
type gpu struct {
	// Quota is the GPU's name in quotas, and OwnQuota says that it does not share GPUS_PER_GPU_FAMILY.
	Quota    string
	OwnQuota bool
	// Attachable maps the numbers of GPUs that can be attached to an N1 machine to its largest number of vCPUs.
	Attachable map[int]int
}

// rate is a price of an hour, in PriceCurrency: on demand, and of spot capacity. A zero is unknown.
type rate struct{ OnDemand, Spot float64 }

// machinePrice is the price of a number of vCPUs with their memory.
type machinePrice struct {
	rate
	CPUs int
	// WithGPUs says that the price includes the GPUs of the machine.
	WithGPUs bool
}

// series describes the machines of a series.
type series struct {
	// Prefix begins the names of the types.
	Prefix string
	// Sizes are types whose memory is proportional to their vCPUs, and whose name ends with the number of vCPUs.
	Sizes map[string]struct {
		GiBPerCPU float64
		CPUs      []int
	}
	// Types are the other types. Their names lack the prefix.
	Types map[string]struct {
		CPUs    int
		GiB     float64
		GPUs    int
		GPUType string
	}
	// Disks are the types of boot disk, the best general choice first.
	Disks []string
	// GVNIC is only for machines that have no network interface but Google's, none for
	// machines without it, and empty for machines that have either.
	GVNIC string
	// LocalSSDs maps the largest number of vCPUs to the numbers of local SSDs that such machines take.
	LocalSSDs map[int][]int
	// Bundled local SSDs are part of the machine.
	Bundled         bool
	NoSpot, Compact bool
	// Quota is the quota that vCPUs count to: own is the series' own, like N2_CPUS, shared is
	// CPUS, which the oldest series share, and empty is CPUS_PER_VM_FAMILY.
	Quota string
}

// tables returns the catalogue, which the first call reads.
var tables = sync.OnceValue(func() catalogue {
	var c catalogue
	if err := yaml.UnmarshalStrict(catalogueYAML, &c); err != nil {
		panic(fmt.Sprintf("gcp/catalogue.yaml: %v", err))
	}
	c.machines = map[string]Machine{}
	for _, s := range c.Series {
		add := func(name string, cpus int, gib float64, gpus int, gpuType string) {
			name = s.Prefix + "-" + name
			c.machines[name] = Machine{Type: name, CPUs: cpus, MemoryBytes: int64(gib * (1 << 30)), GPUs: gpus, GPUType: gpuType}
		}
		for name, size := range s.Sizes {
			for _, cpus := range size.CPUs {
				add(fmt.Sprintf("%s-%d", name, cpus), cpus, size.GiBPerCPU*float64(cpus), 0, "")
			}
		}
		for name, t := range s.Types {
			add(name, t.CPUs, t.GiB, t.GPUs, t.GPUType)
		}
	}
	return c
})
