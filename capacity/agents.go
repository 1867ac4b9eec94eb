package capacity

// NodeAgents are the requests of the pods of GKE's own DaemonSets on each node: network,
// logging, metrics, metadata, DNS and storage drivers. GKE publishes no figure and
// changes it with its versions; this is a node's usual sum, rounded up.
var NodeAgents = Resources{MilliCPU: 500, MemoryBytes: GiB, Pods: 12}

// ClusterAgents are GKE's own pods, such as DNS and metrics, on the nodes of the system pool. A
// cluster has a few of each, and they outrank all other pods.
var ClusterAgents = Pods{
	Name:     "GKE's own",
	Count:    2,
	Requests: Resources{MilliCPU: 500, MemoryBytes: 512 * MiB, Pods: 1},
	Priority: 2_000_000_000,
}

// What the program's own pods, other than the roles, request.
var (
	// NATSOperator runs once per stack.
	NATSOperator = Resources{MilliCPU: 100, MemoryBytes: 128 * MiB, Pods: 1}
	// PERSIAOperator runs once per stack with jobs of the engine operator.
	PERSIAOperator = Resources{MilliCPU: 100, MemoryBytes: 128 * MiB, Pods: 1}
	// JobSetController runs once per stack with jobs of the engine jobset or with queues.
	JobSetController = Resources{MilliCPU: 500, MemoryBytes: 128 * MiB, Pods: 1}
	// MetricsGateway runs once per job, with the engine jobset as a part of CompletionWithGateway.
	MetricsGateway = Resources{MilliCPU: 100, MemoryBytes: 256 * MiB, Pods: 1}
	// Completion runs once per other job.
	Completion = Resources{MilliCPU: 10, MemoryBytes: 16 * MiB, Pods: 1}
	// CompletionWithGateway runs once per job of the engine jobset with metrics.
	CompletionWithGateway = Resources{MilliCPU: 110, MemoryBytes: 272 * MiB, Pods: 1}
	// OperatorCompletion runs once per job of the engine operator.
	OperatorCompletion = Resources{MilliCPU: 10, MemoryBytes: 48 * MiB, Pods: 1}
	// PEDLSupportCheck runs once per stack that asks for it.
	PEDLSupportCheck = Resources{MilliCPU: 100, MemoryBytes: 128 * MiB, Pods: 1}
	// Kueue runs once per stack with queues.
	Kueue = Resources{MilliCPU: 500, MemoryBytes: 512 * MiB, Pods: 1}
	// Provisioner runs once per stack with jobs on pools with queued provisioning.
	Provisioner = Resources{MilliCPU: 10, MemoryBytes: 64 * MiB, Pods: 1}
	// DriverInstaller runs on each node with a GPU if a DaemonSet installs the driver.
	DriverInstaller = Resources{MilliCPU: 150, Pods: 1}
)
