package capacity

// Units of memory, in bytes.
const (
	MiB = 1 << 20
	GiB = 1 << 30
)

// Resources are the amounts that the scheduler counts, of a node or of a pod.
type Resources struct {
	MilliCPU, MemoryBytes, EphemeralBytes int64
	// GPUs is a number of nvidia.com/gpu: whole GPUs, or places on shared ones.
	GPUs int64
	// Pods is a number of pods. A pod is one of itself.
	Pods int64
}

// Plus returns the sum.
func (r Resources) Plus(other Resources) Resources {
	for _, d := range dimensions {
		*d.of(&r) += d.amount(other)
	}
	return r
}

// Times returns a multiple.
func (r Resources) Times(n int) Resources {
	for _, d := range dimensions {
		*d.of(&r) *= int64(n)
	}
	return r
}

// Minus returns the difference.
func (r Resources) Minus(other Resources) Resources { return r.Plus(other.Times(-1)) }

// AtMost returns the smaller of each amount.
func (r Resources) AtMost(other Resources) Resources {
	for _, d := range dimensions {
		*d.of(&r) = min(d.amount(r), d.amount(other))
	}
	return r
}

// Share returns part i of n equal parts, counted from 0. The first part also has the remainder.
func (r Resources) Share(i, n int) Resources {
	share := r
	for _, d := range dimensions {
		*d.of(&share) /= int64(n)
	}
	if i == 0 {
		return r.Minus(share.Times(n - 1))
	}
	return share
}

// Within reports whether no amount is larger than the other's.
func (r Resources) Within(other Resources) bool { return r.AtMost(other) == r }

// dimension is one of the amounts.
type dimension struct {
	name   string
	of     func(*Resources) *int64
	plenty int64
}

var dimensions = []dimension{
	{"CPU", func(r *Resources) *int64 { return &r.MilliCPU }, 1 << 40},
	{"memory", func(r *Resources) *int64 { return &r.MemoryBytes }, 1 << 60},
	{"GPUs", func(r *Resources) *int64 { return &r.GPUs }, 1 << 20},
	{EphemeralStorageName, func(r *Resources) *int64 { return &r.EphemeralBytes }, 1 << 60},
	{PodsName, func(r *Resources) *int64 { return &r.Pods }, 1 << 20},
}

func (d dimension) amount(r Resources) int64 { return *d.of(&r) }

// The names of two resources that [PoolPlan.Short] returns.
const (
	EphemeralStorageName = "ephemeral storage"
	PodsName             = "pods"
)
