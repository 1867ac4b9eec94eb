package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/cluster"
	"persia/config/job"
	"persia/config/nats"
	"persia/config/nodepool"
	"persia/config/volume"
)

// Stack is one deployment: the keys of a stack file, decoded, completed with
// defaults and valid.
//
// Besides json, the fields here and below it have tags for package reference:
// values lists the only texts that a field may have, and form is quantity for a
// text that is one.
type Stack struct {
	// Project is the id of the Google Cloud project that everything is created
	// in. On an existing cluster it is left out.
	Project string

	Cluster      cluster.Cluster
	MachineTypes nodepool.Machines
	NodePools    []nodepool.Pool
	NVIDIADriver nodepool.NVIDIADriver
	Storage      []volume.Volume
	NATS         nats.Settings
	Jobs         []job.Job
	PEDL         *PEDL

	// pathOf is the path at which the user wrote what the program has at a path.
	pathOf func(*field.Path) string
}
