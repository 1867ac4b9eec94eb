package google

import (
	"math/bits"
	"strconv"
	"strings"

	"persia/gcp"
)

// poolDefaults returns the defaults of the recorded pools.
func poolDefaults(request Body) Body {
	body := serverSet("container.nodePool.autoscalingAndTaint")
	remove(body, "autoscaling", "instanceGroupUrls", "locations", "version", "config.bootDisk")
	if Number(request, "config.ephemeralStorageLocalSsdConfig.localSsdCount") > 0 {
		const pulls = "config.kubeletConfig.maxParallelImagePulls"
		Set(body, pulls, at[any](recorded("container.nodePool.localSsd"), pulls))
	}
	return body
}

// GPUTaints is the field of a pool's body with the taint that GKE adds for GPUs. An update of the
// pool's own taints leaves it in place.
const GPUTaints = "config.gpuTaints"

func completePool(c *Cloud, name string, body, old Body) error {
	cluster, err := c.Get(Cluster, ClusterOf(name, nil))
	if err != nil {
		return err
	}
	if old == nil {
		if err := taintGPUs(c, name, body); err != nil {
			return err
		}
		// Machines that always bring local SSDs use them for ephemeral storage†.
		if count := bundledSSDs(Text(body, "config.machineType")); count > 0 {
			fill(body, "config.ephemeralStorageLocalSsdConfig", Body{"localSsdCount": float64(count)})
		}
	}
	body["name"] = Segment(name)
	body["selfLink"] = "https://container.googleapis.com/v1beta1/" + name
	fill(body, "locations", cluster["locations"])
	if err := checkGPUs(body); err != nil {
		return err
	}
	fill(body, "version", cluster["currentNodeVersion"])
	groups := []any{}
	for _, zone := range Texts(body, "locations") {
		groups = append(groups, computeURL+"projects/"+Element(name, "projects")+"/zones/"+zone+
			"/instanceGroupManagers/gke-"+Element(name, "clusters")+"-"+Segment(name)+"-"+hash(name)+"-grp")
	}
	body["instanceGroupUrls"] = groups
	if len(Object(body, "autoscaling")) > 0 {
		fill(body, "autoscaling.locationPolicy", "BALANCED")
	} else {
		delete(body, "autoscaling")
	}
	poolNetwork(cluster, body)
	poolConfig(cluster, Object(body, "config"))
	return nil
}

// ClusterOf returns the name of a pool's cluster.
func ClusterOf(pool string, _ Body) string {
	cluster, _, _ := strings.Cut(pool, "/nodePools/")
	return cluster
}

// taintGPUs taints the nodes of a GPU pool, but only if the cluster has a pool without GPUs at
// this moment (GKE, "Run GPUs in Standard node pools").
func taintGPUs(c *Cloud, name string, body Body) error {
	pools, err := c.List(NodePool)
	for other, pool := range pools {
		if hasGPUs(body) && !hasGPUs(pool) && ClusterOf(other, nil) == ClusterOf(name, nil) {
			Set(body, GPUTaints, []any{Body{"key": gcp.TaintGPU, "value": gcp.TaintGPUValue, "effect": "NO_SCHEDULE"}})
		}
	}
	return err
}

// hasGPUs reports whether the nodes of a pool have GPUs, attached ones or GPUs of their machine type.
func hasGPUs(pool Body) bool {
	machine, _ := gcp.Lookup(Text(pool, "config.machineType"))
	return machine.GPUs > 0 || len(Objects(pool, "config.accelerators")) > 0
}

// bundledSSDs returns the number of local SSDs that a machine comes with, if that cannot be chosen. They come back as
// ephemeral storage in pools that asked for nothing: A3 and A2 Ultra.
func bundledSSDs(machineType string) int {
	if !strings.HasPrefix(machineType, "a3-") && !strings.HasPrefix(machineType, "a2-ultragpu-") {
		return 0
	}
	machine, _ := gcp.Lookup(machineType)
	return machine.BundledLocalSSDs()
}

func poolNetwork(cluster, body Body) {
	fill(body, "networkConfig.podRange", Text(cluster, "ipAllocationPolicy.clusterSecondaryRangeName"))
	Set(body, "networkConfig.podIpv4CidrBlock", Text(cluster, "ipAllocationPolicy.clusterIpv4CidrBlock"))
	Set(body, "networkConfig.subnetwork", Text(cluster, "networkConfig.subnetwork"))
	if Truth(cluster, "privateClusterConfig.enablePrivateNodes") {
		fill(body, "networkConfig.enablePrivateNodes", true)
	}
	const pods = "maxPodsConstraint.maxPodsPerNode"
	if asked := Number(body, pods); asked > 0 {
		Set(body, pods, strconv.Itoa(asked))
	}
	fill(body, pods, "110")
	// A node has at least twice as many addresses as pods.
	most, _ := strconv.Atoi(Text(body, pods))
	body["podIpv4CidrSize"] = float64(32 - bits.Len(uint(2*most-1)))
}

func poolConfig(cluster, config Body) {
	fill(config, "metadata.disable-legacy-endpoints", "true")
	Set(config, "bootDisk", Body{"diskType": Text(config, "diskType"), "sizeGb": strconv.Itoa(Number(config, "diskSizeGb"))})
	// Only the label of on-demand machines is recorded.
	model := "on-demand"
	if Truth(config, "spot") {
		model = "spot" // †
	}
	Set(config, "resourceLabels.goog-gke-node-pool-provisioning-model", model)
	for _, accelerator := range Objects(config, "accelerators") {
		Set(config, "resourceLabels.goog-gke-accelerator-type", Text(accelerator, "acceleratorType")) // †
	}
	// Answered in any case, whatever an update sends.
	for field, value := range Object(recorded("container.nodePool.autoscalingAndTaint"), "config.kubeletConfig") {
		fill(config, "kubeletConfig."+field, value)
	}
	if has(cluster, "workloadIdentityConfig.workloadPool") {
		fill(config, "workloadMetadataConfig.mode", "GKE_METADATA")
	}
	// A message whose only field is false is dropped for these two†.
	for _, feature := range []string{"gcfsConfig", "gvnic"} {
		if !Truth(config, feature+".enabled") {
			delete(config, feature)
		}
	}
}
