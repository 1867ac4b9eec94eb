package capacity

import "fmt"

// catalogue holds the machine types by name (Compute Engine, "Machine families
// resource and comparison guide").
var catalogue = newCatalogue()

func newCatalogue() map[string]Machine {
	c := map[string]Machine{}
	add := func(m Machine, gib float64) {
		m.MemoryBytes = int64(gib * GiB)
		c[m.Type] = m
	}
	for _, s := range regular {
		for _, cpus := range s.cpus {
			add(Machine{Type: fmt.Sprintf("%s-%d", s.name, cpus), CPUs: cpus}, s.gibPerCPU*float64(cpus))
		}
	}
	for _, s := range irregular {
		add(Machine{Type: s.name, CPUs: s.cpus}, s.gib)
	}
	for _, s := range accelerated {
		add(Machine{Type: s.name, CPUs: s.cpus, GPUs: s.gpus, GPUType: s.gpuType}, s.gib)
	}
	return c
}

// regular are the types whose memory is in proportion to their vCPUs, and whose
// name ends with the number of vCPUs.
var regular = []struct {
	name      string
	gibPerCPU float64
	cpus      []int
}{
	{"c2-standard", 4, []int{4, 8, 16, 30, 60}},
	{"c2d-highcpu", 2, []int{2, 4, 8, 16, 32, 56, 112}},
	{"c2d-highmem", 8, []int{2, 4, 8, 16, 32, 56, 112}},
	{"c2d-standard", 4, []int{2, 4, 8, 16, 32, 56, 112}},
	{"c3-highcpu", 2, []int{4, 8, 22, 44, 88, 176}},
	{"c3-highmem", 8, []int{4, 8, 22, 44, 88, 176}},
	{"c3-standard", 4, []int{4, 8, 22, 44, 88, 176}},
	{"c3d-highmem", 8, []int{4, 8, 16, 30, 60, 90, 180, 360}},
	{"c3d-standard", 4, []int{4, 8, 16, 30, 60, 90, 180, 360}},
	{"c4-highcpu", 2, []int{2, 4, 8, 16, 32, 48, 96, 192}},
	{"c4-highmem", 7.75, []int{4, 8, 16, 32, 48, 96, 192}},
	{"c4-standard", 3.75, []int{4, 8, 16, 32, 48, 96, 192}},
	{"e2-highcpu", 1, []int{2, 4, 8, 16, 32}},
	{"e2-highmem", 8, []int{2, 4, 8, 16}},
	{"e2-standard", 4, []int{2, 4, 8, 16, 32}},
	{"n1-highmem", 6.5, []int{2, 4, 8, 16, 32, 64, 96}},
	{"n1-standard", 3.75, []int{1, 2, 4, 8, 16, 32, 64, 96}},
	{"n2-highcpu", 1, []int{2, 4, 8, 16, 32, 48, 64, 80, 96}},
	{"n2-highmem", 8, []int{2, 4, 8, 16, 32, 48, 64, 80, 96}},
	{"n2-standard", 4, []int{2, 4, 8, 16, 32, 48, 64, 80, 96, 128}},
	{"n2d-highmem", 8, []int{2, 4, 8, 16, 32, 48, 64, 80, 96}},
	{"n2d-standard", 4, []int{2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224}},
	{"n4-highcpu", 2, []int{2, 4, 8, 16, 32, 48, 64, 80}},
	{"n4-highmem", 8, []int{2, 4, 8, 16, 32, 48, 64, 80}},
	{"n4-standard", 4, []int{2, 4, 8, 16, 32, 48, 64, 80}},
}

// irregular are the types whose memory is out of proportion.
var irregular = []struct {
	name string
	cpus int
	gib  float64
}{
	{"c4-highmem-2", 2, 15},
	{"c4-standard-2", 2, 7},
	{"m1-megamem-96", 96, 1433.6},
	{"m1-ultramem-40", 40, 961},
	{"m1-ultramem-80", 80, 1922},
	{"m1-ultramem-160", 160, 3844},
	{"m2-hypermem-416", 416, 8832},
	{"m2-megamem-416", 416, 5888},
	{"m2-ultramem-208", 208, 5888},
	{"m2-ultramem-416", 416, 11776},
	{"m3-megamem-64", 64, 976},
	{"m3-megamem-128", 128, 1952},
	{"m3-ultramem-32", 32, 976},
	{"m3-ultramem-64", 64, 1952},
	{"m3-ultramem-128", 128, 3904},
	{"n2-highmem-128", 128, 864},
}

// accelerated are the types that come with GPUs.
var accelerated = []struct {
	name    string
	cpus    int
	gib     float64
	gpus    int
	gpuType string
}{
	{"a2-highgpu-1g", 12, 85, 1, "nvidia-tesla-a100"},
	{"a2-highgpu-2g", 24, 170, 2, "nvidia-tesla-a100"},
	{"a2-highgpu-4g", 48, 340, 4, "nvidia-tesla-a100"},
	{"a2-highgpu-8g", 96, 680, 8, "nvidia-tesla-a100"},
	{"a2-megagpu-16g", 96, 1360, 16, "nvidia-tesla-a100"},
	{"a2-ultragpu-1g", 12, 170, 1, "nvidia-a100-80gb"},
	{"a2-ultragpu-2g", 24, 340, 2, "nvidia-a100-80gb"},
	{"a2-ultragpu-4g", 48, 680, 4, "nvidia-a100-80gb"},
	{"a2-ultragpu-8g", 96, 1360, 8, "nvidia-a100-80gb"},
	{"a3-highgpu-1g", 26, 234, 1, "nvidia-h100-80gb"},
	{"a3-highgpu-2g", 52, 468, 2, "nvidia-h100-80gb"},
	{"a3-highgpu-4g", 104, 936, 4, "nvidia-h100-80gb"},
	{"a3-highgpu-8g", 208, 1872, 8, "nvidia-h100-80gb"},
	{"a3-megagpu-8g", 208, 1872, 8, "nvidia-h100-mega-80gb"},
	{"a3-ultragpu-8g", 224, 2952, 8, "nvidia-h200-141gb"},
	{"g2-standard-4", 4, 16, 1, "nvidia-l4"},
	{"g2-standard-8", 8, 32, 1, "nvidia-l4"},
	{"g2-standard-12", 12, 48, 1, "nvidia-l4"},
	{"g2-standard-16", 16, 64, 1, "nvidia-l4"},
	{"g2-standard-24", 24, 96, 2, "nvidia-l4"},
	{"g2-standard-32", 32, 128, 1, "nvidia-l4"},
	{"g2-standard-48", 48, 192, 4, "nvidia-l4"},
	{"g2-standard-96", 96, 384, 8, "nvidia-l4"},
}
