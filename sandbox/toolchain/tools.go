package toolchain

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"persia/sandbox/files"
)

// Tools is the folder of the compiled programs.
type Tools string

// Path returns the path of a program, compiled or not.
func (t Tools) Path(name string) string { return filepath.Join(string(t), name) }

// ControlPlane returns the path of one of Kubernetes' own programs.
func (t Tools) ControlPlane(name string) string {
	if next() {
		name += "-next"
	}
	return t.Path(name)
}

// Official reports whether the engine starts the official Kubernetes provider.
func Official() bool { return os.Getenv("SANDBOX_KUBERNETES_PROVIDER") == "official" }

// next reports whether control planes have the next minor version of Kubernetes.
func next() bool { return os.Getenv("SANDBOX_KUBERNETES") == "next" }

// Chosen returns the groups that SANDBOX_KUBERNETES and SANDBOX_KUBERNETES_PROVIDER ask for.
func Chosen() []Group {
	var groups []Group
	if Official() {
		groups = append(groups, OfOfficial)
	}
	if next() {
		groups = append(groups, OfNextKubernetes)
	}
	return groups
}

// Group names a part of the sandbox that needs some of the programs.
type Group string

const (
	// OfStacks are the programs that every stack needs.
	OfStacks Group = "stacks"
	// OfPods are the programs that pods really run, on a real node or in tests.
	OfPods Group = "pods"
	// OfJobSets has the controller of stacks with JobSets.
	OfJobSets Group = "JobSets"
	// OfQueues are the programs that stacks with queues need.
	OfQueues Group = "queues"
	// OfJobSetImage has JobSet's own program, for a real node.
	OfJobSetImage Group = "the image of JobSet"
	// OfNode are the programs of a real node, which most stacks do not need.
	OfNode Group = "a real node"
	// OfBuckets has Cloud Storage FUSE, for stacks and tests that really mount a bucket.
	OfBuckets Group = "buckets"
	// OfOfficial has Pulumi's own Kubernetes provider, which takes longer to compile than all others.
	OfOfficial Group = "the official Kubernetes provider"
	// OfNextKubernetes is the control plane of the next minor version.
	OfNextKubernetes Group = "the next Kubernetes"
	// OfBenchmarks has what a benchmark compares the program with.
	OfBenchmarks Group = "benchmarks"
)

// archived are the programs of the archive: all that stacks run without a real node.
var archived = of(OfStacks, OfPods, OfJobSets, OfQueues)

// of returns the programs of groups.
func of(groups ...Group) []tool {
	var tools []tool
	for _, group := range groups {
		tools = append(tools, slices.DeleteFunc(slices.Clone(all), func(t tool) bool { return t.Group != group })...)
	}
	return tools
}

// tool is a program that is compiled from the module in a folder.
type tool struct {
	Group Group
	Name  string // of the binary
	Dir   string // below the module root
	// Module is the path of the module whose version the program has.
	Module string
	// Package is the path of the main package, or of the sandbox's own with ./ before it.
	Package string
	// Variables are set by the linker. In their values, {version} is the module's version, like v1.34.2,
	// {semver} the version without the v, and {major} (1) and {minor} (34).
	Variables []variable
}

// own reports whether the tool's main package is the sandbox's.
func (t tool) own() bool { return strings.HasPrefix(t.Package, "./") }

type variable struct{ Name, Value string }

//go:embed tools.yaml
var toolsYAML []byte

// all are the programs, each group in the order of compilation.
var all = files.Embedded[[]tool]("tools.yaml", toolsYAML)()
