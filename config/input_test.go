package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/stacktest"
)

// withVolume gives the job of the base stack a Kubernetes volume that its dataloader mounts.
func withVolume(source edits, mountPath string) edits {
	volume := edits{"name": "data"}
	for name, value := range source {
		volume[name] = value
	}
	return edits{"persia:jobs[0].volumes": []any{volume},
		"persia:jobs[0].dataloader.volumeMounts": []any{edits{"name": "data", "mountPath": mountPath}}}
}

func hostPath(path string) edits { return edits{"hostPath": edits{"path": path}} }

// TestRefusesInput checks the messages for input that would otherwise fail, or do harm, long
// after `pulumi up`.
func TestRefusesInput(t *testing.T) {
	const limits, mount = "persia:jobs[0].dataloader.resources.limits", "persia:jobs[0].mounts[0].mountPath"
	const podMount, podVolume = "persia:jobs[0].dataloader.volumeMounts[0].mountPath", "persia:jobs[0].volumes[0].hostPath.path"
	asking := func(name string, amount any) edits {
		return edits{limits: edits{"cpu": 1, "memory": "12Gi", name: amount}}
	}
	env := func(name string) edits { return edits{"persia:jobs[0].env[0].name": name} }
	network := func(name, cidr string) edits { return edits{"persia:cluster.network": edits{name: cidr}} }
	bucket := func(name string) edits { return edits{"persia:storage[0].gcsFuse.bucket": name} }
	stacktest.Refused(t, []stacktest.Refusal{
		// Resources.
		{"extended resource", asking("example.com/fpga", 1), limits + "[example.com/fpga]", []string{`"1"`, `not a resource of any node of pool "loaders"`, "remove it"}},
		{"hugepages", asking("hugepages-2Mi", "4Mi"), limits + "[hugepages-2Mi]", []string{`"4Mi"`, "not a resource of any node", "remove it"}},
		{"MIG by name", asking("nvidia.com/mig-1g.5gb", 1), limits + "[nvidia.com/mig-1g.5gb]", []string{"nvidia.com/gpu", "must request that"}},
		{"memory in bytes", edits{limits: edits{"cpu": 1, "memory": 12}}, limits + "[memory]", []string{`"12"`, "in bytes", "600Gi"}},
		{"disk in bytes", asking("ephemeral-storage", 10), limits + "[ephemeral-storage]", []string{`"10"`, "in bytes", "without a unit is in bytes"}},
		{"negative", edits{limits: edits{"cpu": -1, "memory": "12Gi"}}, limits + "[cpu]", []string{`"-1"`, "more than 0"}},
		{"CPUs overflow", edits{"persia:jobs[0].dataloader.resources": edits{"limits": edits{"cpu": "9E", "memory": "12Gi"}, "requests": edits{"cpu": 1}}}, limits + "[cpu]", []string{`"9E"`, "more than any machine has"}},
		{"memory overflows", edits{"persia:jobs[0].dataloader.resources": edits{"limits": edits{"cpu": 1, "memory": "16Ei"}, "requests": edits{"memory": "1Gi"}}}, limits + "[memory]", []string{"more than any machine has"}},
		{"replicas overflow", edits{"persia:jobs[0].dataloader.replicas": 4294967297}, "persia:jobs[0].dataloader.replicas", []string{"4294967297", "at most 200000"}},
		{"grace period of years", edits{"persia:jobs[0].dataloader.terminationGracePeriodSeconds": 63072000}, "persia:jobs[0].dataloader.terminationGracePeriodSeconds", []string{"63072000", "at most 86400, one day"}},
		{"price that is not finite", edits{"persia:machineTypes": edits{"n2-standard-8": edits{"hourlyPrice": 1e308}}}, "persia:machineTypes[n2-standard-8].hourlyPrice", []string{"at most 100000", "omit it"}},
		// Directories.
		{"system directory of the node", withVolume(hostPath("/etc/kubernetes"), "/data"), podVolume, []string{`"/etc/kubernetes"`, "/etc, which belongs to the node", "/var/lib/data"}},
		{"all of the node", withVolume(hostPath("/"), "/data"), podVolume, []string{"belongs to the node"}},
		{"Docker's socket", withVolume(hostPath("/var/run/docker.sock"), "/data"), podVolume, []string{"/var/run"}},
		{"read-only directory of Container-Optimized OS", withVolume(hostPath("/data"), "/data"), podVolume, []string{`"/data"`, "pool loaders", "read-only", "UBUNTU_CONTAINERD"}},
		{"a way around", withVolume(hostPath("/var/lib/../../etc"), "/data"), podVolume, []string{"write /etc"}},
		{"system directory as a local volume", edits{"persia:storage[0]": edits{"name": "checkpoints", "size": "1Gi", "local": edits{"path": "/var/lib/kubelet/x", "node": "n"}}, "persia:jobs[0].mounts": nil}, "persia:storage[0].local.path", []string{"/var/lib/kubelet"}},
		{"mount below the script", edits{mount: "/opt/persia/data"}, mount, []string{"below /opt/persia", "/data"}},
		{"mount over the script", edits{mount: "/opt"}, mount, []string{"would hide /opt/persia"}},
		{"mount in shared memory", edits{mount: "/dev/shm/data"}, mount, []string{"below /dev/shm"}},
		{"mount over what the image has", edits{mount: "/usr"}, mount, []string{"would hide"}},
		{"mount over libraries", edits{mount: "/usr/lib"}, mount, []string{"would hide what the image has there"}},
		{"mount in the kernel's files", edits{mount: "/proc/sys"}, mount, []string{"/proc, which the kernel keeps"}},
		{"mount over the token", edits{mount: "/var/run/secrets"}, mount, []string{"token of a service account"}},
		{"volume of the job below the script", withVolume(edits{"emptyDir": edits{}}, "/opt/persia/data"), podMount, []string{"below /opt/persia"}},
		{"volume of the job over devices", withVolume(edits{"emptyDir": edits{}}, "/dev"), podMount, []string{"would hide /dev/shm"}},
		// Images and variables.
		{"image in capitals", edits{"persia:jobs[0].dataloader.image": "registry.example.com/Loader"}, "persia:jobs[0].dataloader.image", []string{"must be an image reference", "lowercase"}},
		{"image with half a digest", edits{"persia:jobs[0].dataloader.image": "persia@sha256:12"}, "persia:jobs[0].dataloader.image", []string{"must be an image reference"}},
		{"image of NATS with a tag", edits{"persia:nats.image": "nats:2"}, "persia:nats.image", []string{"without a tag"}},
		{"pull secret twice", edits{"persia:jobs[0].imagePullSecrets": []any{edits{"name": "a"}, edits{"name": "a"}}}, "persia:jobs[0].imagePullSecrets[1].name", []string{"Duplicate", `"a"`, "once"}},
		{"variable of the script", env("PERSIA_ROLE"), "persia:jobs[0].env[0].name", []string{"PERSIA_ROLE", "set by replicas and nprocPerNode"}},
		{"variable of persiaEnv", env("PERSIA_GLOBAL_CONFIG"), "persia:jobs[0].env[0].name", []string{"set by persiaEnv"}},
		{"variable of the GPUs", env("PERSIA_GPUS"), "persia:jobs[0].env[0].name", []string{"set by resources"}},
		// Names.
		{"NATS with the operator's name", edits{"persia:nats.name": "nats-operator"}, "persia:nats.name", []string{"NATS operator"}},
		{"cluster called default", edits{"persia:cluster.name": "default"}, "persia:cluster.name", []string{`"default"`, "network", "choose another"}},
		{"pool of GKE's", edits{"persia:nodePools[3]": edits{"name": "default-pool", "machineType": "n2-standard-8", "nodes": 1}}, "persia:nodePools[3].name", []string{"default-pool", "choose another"}},
		{"pool of auto-provisioning", edits{"persia:nodePools[3]": edits{"name": "nap-1", "machineType": "n2-standard-8", "nodes": 1}}, "persia:nodePools[3].name", []string{"nap-", "choose another"}},
		{"taint of Kubernetes", edits{"persia:nodePools[1].taints[0].key": "node.kubernetes.io/unreachable"}, "persia:nodePools[1].taints[0].key", []string{"kubernetes.io", "your own prefix"}},
		{"address as a bucket", bucket("192.168.5.4"), "persia:storage[0].gcsFuse.bucket", []string{"is an IP address"}},
		{"bucket called after Google", bucket("goog-checkpoints"), "persia:storage[0].gcsFuse.bucket", []string{"resembles Google's name"}},
		{"bucket that looks like Google's", bucket("my-g00gle-data"), "persia:storage[0].gcsFuse.bucket", []string{"resembles Google's name"}},
		{"bucket with dots, created", edits{"persia:storage[0].gcsFuse": edits{"bucket": "data.example.com", "create": edits{}}}, "persia:storage[0].gcsFuse.create", []string{"dot in its name", "remove create"}},
		{"size in bytes", edits{"persia:storage[0].size": "10"}, "persia:storage[0].size", []string{`"10"`, "in bytes", "10Gi"}},
		{"size that overflows", edits{"persia:storage[0].size": "16Ei"}, "persia:storage[0].size", []string{"more than any storage can hold"}},
		{"sidecar in bytes", edits{"persia:storage[0].gcsFuse.sidecar": edits{"memory": "256"}}, "persia:storage[0].gcsFuse.sidecar.memory", []string{`"256"`, "in bytes"}},
		// The network, disks and rights.
		{"loopback", network("services", "127.0.0.0/20"), "persia:cluster.network.services", []string{"127.0.0.0/8, which is reserved for loopback", "private range"}},
		{"link-local", network("nodes", "169.254.0.0/20"), "persia:cluster.network.nodes", []string{"link-local"}},
		{"multicast", network("pods", "224.0.0.0/14"), "persia:cluster.network.pods", []string{"multicast"}},
		{"Docker's bridge", network("services", "172.17.0.0/20"), "persia:cluster.network.services", []string{"Docker's bridge"}},
		{"Google's own", network("controlPlane", "199.36.153.0/28"), "persia:cluster.network.controlPlane", []string{"Google's own APIs"}},
		{"boot disk below the image", edits{"persia:nodePools[1].disk": edits{"sizeGb": 11}}, "persia:nodePools[1].disk.sizeGb", []string{"from 12", "image"}},
		{"boot disk below the image with a driver", edits{"persia:nodePools[0].disk": edits{"sizeGb": 14}}, "persia:nodePools[0].disk.sizeGb", []string{"from 15", "image"}},
		{"boot disk that the machine refuses", edits{"persia:nodePools[2].disk": edits{"type": "hyperdisk-throughput"}}, "persia:nodePools[2].disk.type", []string{"pd-"}},
		{"administrator of storage", edits{"persia:cluster.nodeRoles": []any{"roles/storage.admin"}}, "persia:cluster.nodeRoles[0]", []string{"administer", "roles/storage.objectViewer"}},
		{"who lends identities", edits{"persia:cluster.nodeRoles": []any{"roles/iam.serviceAccountTokenCreator"}}, "persia:cluster.nodeRoles[0]", []string{"administer"}},
	}, "replicas overflow")
}

// TestWarnsOfInput checks the warnings for unlikely input.
func TestWarnsOfInput(t *testing.T) {
	const ps = "persia:jobs[0].embeddingParameterServer"
	platform := edits{"persia:pedl": edits{"registry": edits{"password": "word"}, "nodePool": "loaders", "nodeSelector": edits{},
		"resources":  edits{"limits": edits{"cpu": 1, "memory": "1Gi"}},
		"postgresql": edits{"postgresqlPassword": "word", "resources": edits{"limits": edits{"cpu": 1, "memory": "1Gi"}}}}}
	for name, test := range map[string]struct {
		edits edits
		says  string
	}{
		"limit beyond the node": {edits{"persia:jobs[0].dataloader.resources": edits{"limits": edits{"cpu": 1, "memory": "1Ti"}, "requests": edits{"memory": "12Gi"}}},
			"persia:jobs[0].dataloader.resources.limits[memory]: 1Ti is more than the 256Gi of a n2-highmem-32"},
		"parameter servers on spot": {edits{"persia:nodePools[1].spot": true, ps: edits{"nodePool": "loaders", "resources": edits{"limits": edits{"cpu": 1, "memory": "12Gi"}}}},
			ps + ".nodePool: pool loaders has spot machines"},
		"bucket far away": {edits{"persia:storage[0].gcsFuse.create": edits{"location": "europe-west4"}},
			"persia:storage[0].gcsFuse.create.location: EUROPE-WEST4 is far from the cluster in us-central1"},
		"bucket in another multi-region": {edits{"persia:storage[0].gcsFuse.create": edits{"location": "EU"}}, "EU is far from"},
		"PEDL open to the world": {platform.And(edits{"persia:pedl.service": edits{"type": "LoadBalancer", "loadBalancerSourceRanges": []any{"0.0.0.0/0"}}}),
			"persia:pedl.service.loadBalancerSourceRanges[0]: 0.0.0.0/0 admits practically everyone"},
		"PEDL on a port of the nodes": {platform.And(edits{"persia:pedl.service": edits{"type": "NodePort"}}),
			"persia:pedl.service.type: opens a port on every node, and anyone who can reach a node can run containers"},
		"PEDL behind an ingress": {platform.And(edits{"persia:pedl.ingress": edits{"enabled": true, "tls": []any{edits{"secretName": "pedl"}}}}),
			"persia:pedl.ingress.enabled: anyone who can reach the ingress can run containers"},
		"PEDL over plain HTTP": {platform.And(edits{"persia:pedl.ingress": edits{"enabled": true}}), "persia:pedl.ingress.tls: without a certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stacktest.Load(t, test.edits)
			require.NoError(t, err)
			assert.Contains(t, strings.Join(s.Warnings(), "\n"), test.says)
		})
	}
	for _, location := range []string{"us-central1", "US", "NAM4"} {
		s, err := stacktest.Load(t, edits{"persia:storage[0].gcsFuse.create": edits{"location": location}})
		require.NoError(t, err)
		assert.NotContains(t, strings.Join(s.Warnings(), "\n"), "far from", location)
	}
}
