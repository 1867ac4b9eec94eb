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

// key is a key of the stack file: where its value goes, and what to write if it
// is missing. Without such a text it has a default, or the validation decides.
type key struct {
	name    string
	into    func(*Stack) any
	missing string
}

var keys = []key{
	{projectKey, func(s *Stack) any { return &s.Project }, ""},
	{clusterKey, func(s *Stack) any { return &s.Cluster },
		"write an object with name, region and zones"},
	{MachineTypesKey, func(s *Stack) any { return &s.MachineTypes }, ""},
	{nodePoolsKey, func(s *Stack) any { return &s.NodePools },
		"write the list of node pools, or [] for none"},
	{nvidiaDriverKey, func(s *Stack) any { return &s.NVIDIADriver }, ""},
	{storageKey, func(s *Stack) any { return &s.Storage }, ""},
	{natsKey, func(s *Stack) any { return &s.NATS }, ""},
	{imagesKey, func(s *Stack) any { return &s.Images }, ""},
	{operatorKey, func(s *Stack) any { return &s.Operator }, ""},
	{jobsKey, func(s *Stack) any { return &s.Jobs },
		"write the list of jobs, or [] for none"},
	{pedlKey, func(s *Stack) any { return &s.PEDL }, ""},
}

// Namespace is that of the keys: the name of the project in Pulumi.yaml.
const Namespace = "persia"

// MachineTypesKey is the key of the machine types that a stack file describes.
const MachineTypesKey = nodepool.MachineTypesKey

const (
	projectKey      = Namespace + ":project"
	clusterKey      = Namespace + ":cluster"
	nodePoolsKey    = Namespace + ":nodePools"
	nvidiaDriverKey = Namespace + ":nvidiaDriver"
	storageKey      = Namespace + ":storage"
	natsKey         = Namespace + ":nats"
	imagesKey       = Namespace + ":images"
	operatorKey     = Namespace + ":operator"
	jobsKey         = Namespace + ":jobs"
	pedlKey         = Namespace + ":pedl"
)
