package toolchain

import (
	"path/filepath"
	"strings"
	"time"
)

// Tools are the paths of the compiled programs.
type Tools struct {
	Pulumi string
	// PulumiState serves the state of Pulumi's stacks.
	PulumiState           string
	Etcd                  string
	KubeAPIServer         string
	KubeControllerManager string
	KubeScheduler         string
	Kwok                  string
	Kwokctl               string
	NATSOperator          string
	// The programs of pods, which [BuildPods] compiles. Tests run them, and the images of a
	// training contain them.
	NATSServer   string
	NATSReloader string
	Pushgateway  string
	// JobSet is the controller of stacks with JobSets, which [BuildJobSet] compiles.
	JobSet string
	// JobSetManager is JobSet's own program, for a real node, which [BuildJobSetImage] compiles.
	JobSetManager string
	// The programs of a real node, which [BuildNode] compiles.
	Kubelet         string
	KubeProxy       string
	CoreDNS         string
	NetworkPolicies string
	Pause           string
	// Kubectl is what a benchmark compares the program with, which [BuildKubectl] compiles.
	Kubectl string
	// Kueue is for stacks with queues, and [BuildKueue] compiles it.
	Kueue string
}

// In returns the paths that the tools have in binDir, compiled or not.
func In(binDir string) Tools {
	return Tools{
		Pulumi:                filepath.Join(binDir, pulumi.name),
		PulumiState:           filepath.Join(binDir, pulumiState.name),
		Etcd:                  filepath.Join(binDir, etcd.name),
		KubeAPIServer:         filepath.Join(binDir, kubeAPIServer.name),
		KubeControllerManager: filepath.Join(binDir, kubeControllerManager.name),
		KubeScheduler:         filepath.Join(binDir, kubeScheduler.name),
		Kwok:                  filepath.Join(binDir, kwok.name),
		Kwokctl:               filepath.Join(binDir, kwokctl.name),
		NATSOperator:          filepath.Join(binDir, natsOperator.name),
		NATSServer:            filepath.Join(binDir, natsServer.name),
		NATSReloader:          filepath.Join(binDir, natsReloader.name),
		Pushgateway:           filepath.Join(binDir, pushgateway.name),
		JobSet:                filepath.Join(binDir, jobSet.name),
		JobSetManager:         filepath.Join(binDir, jobSetManager.name),
		Kubelet:               filepath.Join(binDir, kubelet.name),
		KubeProxy:             filepath.Join(binDir, kubeProxy.name),
		CoreDNS:               filepath.Join(binDir, coreDNS.name),
		NetworkPolicies:       filepath.Join(binDir, networkPolicies.name),
		Pause:                 filepath.Join(binDir, pause.name),
		Kubectl:               filepath.Join(binDir, kubectl.name),

		Kueue: filepath.Join(binDir, kueue.name),
	}
}

// tool is a program compiled from a module.
type tool struct {
	// name is the binary's.
	name string
	// dir is the folder of the go.mod, relative to the module root.
	dir string
	// module is the one whose version is the program's.
	module string
	// pkg is the path of the main package. One below dir is the sandbox's own, around
	// the module's packages.
	pkg string
	// takes is how long its compilation took after those before it, on two cores with
	// nothing cached: what the progress estimates with. Zero is less than five seconds.
	takes time.Duration
	// variables are set by the linker. Values may hold {version} (v1.34.2),
	// {semver} (1.34.2), {major} (1) and {minor} (34).
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

// kwokVersion is what kwokctl writes into a cluster's configuration and
// compares with its own.
var kwokVersion = []variable{{"sigs.k8s.io/kwok/pkg/consts.Version", "{semver}"}}

var (
	kwok = tool{
		name: "kwok", dir: "kwok", module: "sigs.k8s.io/kwok",
		takes: 41 * time.Second,
		pkg:   "sigs.k8s.io/kwok/cmd/kwok", variables: kwokVersion,
	}
	kwokctl = tool{
		name: "kwokctl", dir: "kwok", module: "sigs.k8s.io/kwok",
		takes: 15 * time.Second,
		pkg:   "sigs.k8s.io/kwok/cmd/kwokctl", variables: kwokVersion,
	}
	etcd = tool{
		name: "etcd", dir: "etcd", module: "go.etcd.io/etcd/server/v3",
		takes: 32 * time.Second,
		pkg:   "go.etcd.io/etcd/server/v3",
	}
	natsOperator = tool{
		name: "nats-operator", dir: "nats-operator", module: "github.com/nats-io/nats-operator",
		takes: 84 * time.Second,
		pkg:   "github.com/nats-io/nats-operator/cmd/operator",
	}
	natsReloader = tool{
		name: "nats-server-config-reloader", dir: "nats-operator", module: "github.com/nats-io/nats-operator",
		pkg: "github.com/nats-io/nats-operator/cmd/reloader",
	}
	natsServer = tool{
		name: "nats-server", dir: "nats-server", module: "github.com/nats-io/nats-server/v2",
		takes: 23 * time.Second,
		pkg:   "github.com/nats-io/nats-server/v2",
	}
	pushgateway = tool{
		name: "pushgateway", dir: "pushgateway", module: "github.com/prometheus/pushgateway",
		takes: 23 * time.Second,
		pkg:   "github.com/prometheus/pushgateway",
	}
	kubeAPIServer = tool{
		name: "kube-apiserver", dir: "kubernetes", module: "k8s.io/kubernetes",
		takes: 165 * time.Second,
		pkg:   "k8s.io/kubernetes/cmd/kube-apiserver", variables: kubernetesVersion,
	}
	kubeControllerManager = tool{
		name: "kube-controller-manager", dir: "kubernetes", module: "k8s.io/kubernetes",
		takes: 103 * time.Second,
		pkg:   "k8s.io/kubernetes/cmd/kube-controller-manager", variables: kubernetesVersion,
	}
	kubeScheduler = tool{
		name: "kube-scheduler", dir: "kubernetes", module: "k8s.io/kubernetes",
		takes: 12 * time.Second,
		pkg:   "k8s.io/kubernetes/cmd/kube-scheduler", variables: kubernetesVersion,
	}
	kubelet = tool{
		name: "kubelet", dir: "kubernetes", module: "k8s.io/kubernetes",
		pkg: "k8s.io/kubernetes/cmd/kubelet", variables: kubernetesVersion,
	}
	kubeProxy = tool{
		name: "kube-proxy", dir: "kubernetes", module: "k8s.io/kubernetes",
		pkg: "k8s.io/kubernetes/cmd/kube-proxy", variables: kubernetesVersion,
	}
	coreDNS = tool{
		name: "coredns", dir: "node-network", module: "github.com/coredns/coredns",
		pkg: "./coredns",
	}
	networkPolicies = tool{
		name: "network-policies", dir: "node-network", module: "github.com/cloudnativelabs/kube-router",
		pkg: "./network-policies",
	}
	pause = tool{
		name: "pause", dir: "node-network", module: "github.com/cloudnativelabs/kube-router",
		pkg: "./pause",
	}
	kueue = tool{
		name: "kueue", dir: "kueue", module: "sigs.k8s.io/kueue",
		takes: 119 * time.Second,
		pkg:   "sigs.k8s.io/kueue/cmd/kueue",
	}
	kubectl = tool{
		name: "kubectl", dir: "kubectl", module: "k8s.io/kubernetes",
		pkg: "k8s.io/kubernetes/cmd/kubectl", variables: kubernetesVersion,
	}
	jobSet = tool{
		name: "jobset-controller", dir: "jobset", module: "sigs.k8s.io/jobset",
		pkg: "./controller",
	}
	jobSetManager = tool{
		name: "jobset-manager", dir: "jobset", module: "sigs.k8s.io/jobset",
		pkg: "sigs.k8s.io/jobset",
	}
	pulumiState = tool{
		name: "pulumi-state", dir: "pulumi", module: "github.com/pulumi/pulumi/pkg/v3",
		pkg: "./state",
	}
	pulumi = tool{
		name: "pulumi", dir: "pulumi", module: "github.com/pulumi/pulumi/pkg/v3",
		takes: 228 * time.Second,
		pkg:   "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
		variables: []variable{
			{"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", "{version}"},
		},
	}
)

// ofStack are the programs that every stack needs, in the order of compilation: the
// quick ones first, so that a mistake in the environment shows early.
var ofStack = []tool{
	etcd, kwok, kwokctl, natsOperator, pulumi, pulumiState,
	kubeAPIServer, kubeControllerManager, kubeScheduler,
}

// ofPods are the programs that pods really run, on a real node or in tests.
var ofPods = []tool{natsServer, natsReloader, pushgateway}

// ofJobSet are the programs that stacks with JobSets need.
var ofJobSet = []tool{jobSet}

// ofJobSetImage are the programs that stacks with JobSets need on a real node.
var ofJobSetImage = []tool{jobSetManager}

// ofNode are the programs of a real node, which most stacks do not need. The kubelet is
// quick once the control plane is compiled, with which it shares most packages.
var ofNode = []tool{pause, coreDNS, networkPolicies, kubeProxy, kubelet}

// ofQueues are the programs that stacks with queues need.
var ofQueues = []tool{kueue}

// ofBenchmarks is the tool with which a benchmark compares the program.
var ofBenchmarks = []tool{kubectl}
