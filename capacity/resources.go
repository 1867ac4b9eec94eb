package capacity

// Units of memory, in bytes.
const (
	MiB = 1 << 20
	GiB = 1 << 30
)

// Resources are amounts of what the scheduler counts: what a node has, or what
// a pod asks for.
type Resources struct {
	// MilliCPU is CPU time in thousandths of a vCPU.
	MilliCPU int64
	// MemoryBytes is memory in bytes.
	MemoryBytes int64
	// GPUs is a number of whole GPUs.
	GPUs int64
}
