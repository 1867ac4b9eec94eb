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
