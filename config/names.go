package config

// The variables of replicas that more than one part of the program knows.
const (
	// EnvCheckpoints has the directory of the checkpoints of all attempts, and EnvOwnCheckpoints one that the job
	// chooses itself.
	EnvCheckpoints    = "PERSIA_CKPT_ROOT"
	EnvOwnCheckpoints = "PERSIA_CKPT_DIR"
	// EnvState has the directory of the run's record.
	EnvState = "PERSIA_STATE_DIR"
	// EnvNATS has the URL of the job's NATS, and EnvOlderNATS does in older releases of PERSIA.
	EnvNATS      = "PERSIA_NATS_URL"
	EnvOlderNATS = "PERSIA_NATS_IP"
)

// Names that the program writes, and that tools read.
const (
	// PodsAnnotation has a digest of the pods that an object asks for. In the state of a stack, the API server has
	// filled in the pods themselves, so only digests tell whether an update replaces them.
	PodsAnnotation = "persia.com/pods"
	// Completion and MetricsGateway are the label app.kubernetes.io/name of what a job runs besides its roles.
	Completion     = "completion"
	MetricsGateway = "metrics-gateway"
	// NeedsTitle and EffectsTitle begin what the program says of a stack's needs, and of what an update does.
	NeedsTitle   = "What the stack needs:"
	EffectsTitle = "What this update does to what runs:"
)
