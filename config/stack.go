package config

import (
	"persia/config/cachespec"
	"persia/config/clusterspec"
	"persia/config/jobspec"
	"persia/config/natsspec"
	"persia/config/operatorspec"
	"persia/config/pedlspec"
	"persia/config/poolspec"
	"persia/config/queuespec"
	"persia/config/volumespec"
)

// Stack is one deployment: the values of a stack file, complete and valid.
//
// Fields have the tags of package decode, and three more for the reference and for package
// manifest: form:"quantity" marks strings that are quantities, change says what Google Cloud
// does when a field of a node pool changes, and beside:"manifest" marks fields that no
// PersiaJob has.
type Stack struct {
	// Project is the ID of the Google Cloud project in which the stack creates everything.
	// It is empty on an existing cluster.
	Project string

	Cluster      clusterspec.Cluster
	MachineTypes poolspec.Machines
	NodePools    []poolspec.Pool
	NVIDIADriver poolspec.NVIDIADriver
	Storage      []volumespec.Volume
	NATS         natsspec.Settings
	Images       cachespec.Settings
	Operator     operatorspec.Settings
	Queue        queuespec.Settings
	Jobs         []jobspec.Job
	PEDL         *pedlspec.Platform

	warnings []string
}

// key is a key of the stack file.
type key struct {
	name string
	into func(*Stack) any
	// missing is the remedy if a required key is missing.
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
	{queueKey, func(s *Stack) any { return &s.Queue }, ""},
	{jobsKey, func(s *Stack) any { return &s.Jobs },
		"write the list of jobs, or [] for none"},
	{pedlKey, func(s *Stack) any { return &s.PEDL }, ""},
}

// Namespace is the namespace of the keys, the name of the project in Pulumi.yaml.
const Namespace = "persia"

// MachineTypesKey is the key of machine types that the program does not know.
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
	queueKey        = Namespace + ":queue"
	jobsKey         = Namespace + ":jobs"
	pedlKey         = Namespace + ":pedl"
)
