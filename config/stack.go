package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/cluster"
	"persia/config/images"
	"persia/config/job"
	"persia/config/nats"
	"persia/config/nodepool"
	"persia/config/operator"
	"persia/config/pedl"
	"persia/config/volume"
)

// Stack is one deployment: the keys of a stack file, decoded, completed with
// defaults and valid.
//
// The fields have the tags of package decode. Three more are for the reference and for
// package manifest: form is quantity for a text that is a quantity, change is what Google
// Cloud does when a field of a node pool changes, and beside is manifest for fields that
// no PersiaJob has.
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
	Images       images.Settings
	Operator     operator.Settings
	Jobs         []job.Job
	PEDL         *pedl.Platform

	// pathOf is the path at which the user wrote what the program has at a path.
	pathOf func(*field.Path) string
}
