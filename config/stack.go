package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/clusterspec"
	"persia/config/imagespec"
	"persia/config/jobspec"
	"persia/config/natsspec"
	"persia/config/operatorspec"
	"persia/config/pedlspec"
	"persia/config/poolspec"
	"persia/config/volumespec"
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

	Cluster      clusterspec.Cluster
	MachineTypes poolspec.Machines
	NodePools    []poolspec.Pool
	NVIDIADriver poolspec.NVIDIADriver
	Storage      []volumespec.Volume
	NATS         natsspec.Settings
	Images       imagespec.Settings
	Operator     operatorspec.Settings
	Jobs         []jobspec.Job
	PEDL         *pedlspec.Platform

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
const MachineTypesKey = poolspec.MachineTypesKey

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
