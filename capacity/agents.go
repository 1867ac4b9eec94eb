package capacity

// NodeAgents is what the pods of GKE's own DaemonSets ask for on each node: network,
// logging, metrics, metadata, DNS and storage drivers. GKE publishes no figure and
// changes it with its versions; this is a node's usual sum, rounded up.
var NodeAgents = Resources{MilliCPU: 500, MemoryBytes: GiB, Pods: 12}

// ClusterAgents are GKE's own pods of which a cluster has a few, like those of DNS
// and of metrics, on the nodes of the system pool. They outrank all others.
var ClusterAgents = Pods{
	Name:     "GKE's own",
	Count:    2,
	Requests: Resources{MilliCPU: 500, MemoryBytes: 512 * MiB, Pods: 1},
	Priority: 2_000_000_000,
}

// What the program's own pods, other than the roles, request.
var (
	// NATSOperator is one a stack.
	NATSOperator = Resources{MilliCPU: 100, MemoryBytes: 128 * MiB, Pods: 1}
	// PERSIAOperator is one a stack that leaves jobs to it.
	PERSIAOperator = Resources{MilliCPU: 100, MemoryBytes: 128 * MiB, Pods: 1}
	// NATSReloader is one a NATS server, in its pod.
	NATSReloader = Resources{MilliCPU: 10, MemoryBytes: 32 * MiB}
	// MetricsGateway is one a job.
	MetricsGateway = Resources{MilliCPU: 100, MemoryBytes: 256 * MiB, Pods: 1}
	// Completion is one a job.
	Completion = Resources{MilliCPU: 10, MemoryBytes: 16 * MiB, Pods: 1}
	// OperatorCompletion is one a job that is left to PERSIA's operator.
	OperatorCompletion = Resources{MilliCPU: 10, MemoryBytes: 48 * MiB, Pods: 1}
	// PEDLSupportCheck is one a stack that asks for it.
	PEDLSupportCheck = Resources{MilliCPU: 100, MemoryBytes: 128 * MiB, Pods: 1}
	// DriverInstaller is one a node with a GPU, where the driver comes from a
	// DaemonSet.
	DriverInstaller = Resources{MilliCPU: 150, Pods: 1}
)
