package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		tools = append(tools, slices.DeleteFunc(slices.Clone(all), func(t tool) bool { return t.group != group })...)
	}
	return tools
}

// tool is a program that is compiled from the module in a folder.
type tool struct {
	group Group
	name  string // of the binary
	dir   string // below the module root
	// module is the path of the module whose version the program has.
	module string
	// pkg is the path of the main package, or of the sandbox's own with ./ before it.
	pkg string
	// variables are set by the linker. In their values, {version} is the module's version, like v1.34.2,
	// {semver} the version without the v, and {major} (1) and {minor} (34).
	variables []variable
}

// own reports whether the tool's main package is the sandbox's.
func (t tool) own() bool { return strings.HasPrefix(t.pkg, "./") }

type variable struct{ name, value string }

// kubernetesVersion makes Kubernetes' programs report a release. Without it
// they report v0.0.0-master, which fails the version checks of their clients.
var kubernetesVersion = []variable{
	{"k8s.io/component-base/version.gitVersion", "{version}"},
	{"k8s.io/component-base/version.gitMajor", "{major}"},
	{"k8s.io/component-base/version.gitMinor", "{minor}"},
	{"k8s.io/client-go/pkg/version.gitVersion", "{version}"},
	{"k8s.io/client-go/pkg/version.gitMajor", "{major}"},
	{"k8s.io/client-go/pkg/version.gitMinor", "{minor}"},
}

// kwokVersion is what kwokctl writes into a cluster's configuration and compares with its own.
var kwokVersion = []variable{{"sigs.k8s.io/kwok/pkg/consts.Version", "{semver}"}}

// all are the programs, each group in the order of compilation: the quick ones first, so that a mistake
// in the environment shows early. The kubelet is quick once the control plane is compiled.
var all = []tool{
	{OfStacks, "etcd", "etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", nil},
	{OfStacks, "kwok", "kwok", "sigs.k8s.io/kwok", "sigs.k8s.io/kwok/cmd/kwok", kwokVersion},
	{OfStacks, "kwokctl", "kwok", "sigs.k8s.io/kwok", "sigs.k8s.io/kwok/cmd/kwokctl", kwokVersion},
	{OfStacks, "nats-operator", "nats-operator", "github.com/nats-io/nats-operator", "github.com/nats-io/nats-operator/cmd/operator", nil},
	{OfStacks, "pulumi", "pulumi", "github.com/pulumi/pulumi/pkg/v3", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
		[]variable{{"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", "{version}"}}},
	{OfStacks, "kube-apiserver", "kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesVersion},
	{OfStacks, "kube-controller-manager", "kubernetes", "k8s.io/kubernetes",
		"k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesVersion},
	{OfStacks, "kube-scheduler", "kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", kubernetesVersion},

	{OfPods, "nats-server", "nats-server", "github.com/nats-io/nats-server/v2", "github.com/nats-io/nats-server/v2", nil},
	{OfPods, "pushgateway", "pushgateway", "github.com/prometheus/pushgateway", "github.com/prometheus/pushgateway", nil},

	{OfJobSets, "jobset-controller", "jobset", "sigs.k8s.io/jobset", "./controller", nil},
	{OfJobSetImage, "jobset-manager", "jobset", "sigs.k8s.io/jobset", "sigs.k8s.io/jobset", nil},
	{OfQueues, "kueue", "kueue", "sigs.k8s.io/kueue", "sigs.k8s.io/kueue/cmd/kueue", nil},

	{OfNode, "pause", "node-network", "github.com/cloudnativelabs/kube-router", "./pause", nil},
	{OfNode, "coredns", "node-network", "github.com/coredns/coredns", "./coredns", nil},
	{OfNode, "network-policies", "node-network", "github.com/cloudnativelabs/kube-router", "./network-policies", nil},
	{OfNode, "kube-proxy", "kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", kubernetesVersion},
	{OfNode, "kubelet", "kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kubelet", kubernetesVersion},

	{OfBuckets, "gcsfuse", "gcsfuse", "github.com/googlecloudplatform/gcsfuse/v3", "github.com/googlecloudplatform/gcsfuse/v3",
		[]variable{{"github.com/googlecloudplatform/gcsfuse/v3/common.gcsfuseVersion", "{semver}"}}},

	{OfOfficial, "pulumi-resource-kubernetes", "kubernetes-provider", "github.com/pulumi/pulumi-kubernetes/provider/v4", "./", nil},

	{OfNextKubernetes, "kube-apiserver-next", "kubernetes-next", "k8s.io/kubernetes",
		"k8s.io/kubernetes/cmd/kube-apiserver", kubernetesVersion},
	{OfNextKubernetes, "kube-controller-manager-next", "kubernetes-next", "k8s.io/kubernetes",
		"k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesVersion},
	{OfNextKubernetes, "kube-scheduler-next", "kubernetes-next", "k8s.io/kubernetes",
		"k8s.io/kubernetes/cmd/kube-scheduler", kubernetesVersion},

	{OfBenchmarks, "kubectl", "kubectl", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kubectl", kubernetesVersion},
}
