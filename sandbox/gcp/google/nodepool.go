package google

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"persia/gcp"
)

func nodePoolRules() rules {
	return rules{
		defaults:  nodePoolDefaults,
		check:     checkNodePool,
		create:    createNodePool,
		normalize: normalizeNodePool,
		gke:       true,
	}
}

// nodePoolDefaults returns the defaults of the recorded pools.
func nodePoolDefaults(_ string, request Body) Body {
	body := serverSet("container.nodePool.autoscalingAndTaint")
	delete(body, "autoscaling")
	for _, own := range []string{"instanceGroupUrls", "locations", "version"} {
		delete(body, own)
	}
	remove(body, "config.bootDisk")
	if series(text(request, "config.machineType")) == "n4" {
		Set(body, "config.diskType", "hyperdisk-balanced")
	}
	if hasLocalSSDs(request) {
		ssd := Answers()["container.nodePool.localSsd"].Get
		Set(body, "config.kubeletConfig.maxParallelImagePulls", number(ssd, "config.kubeletConfig.maxParallelImagePulls"))
	}
	return body
}

func hasLocalSSDs(body Body) bool {
	return number(body, "config.ephemeralStorageLocalSsdConfig.localSsdCount") > 0
}

func createNodePool(c *Cloud, name string, body Body) error {
	if err := taintGPUs(c, name, body); err != nil {
		return err
	}
	// Machines that always bring local SSDs use them for ephemeral storage†.
	machine := text(body, "config.machineType")
	if count := bundledSSDs(machine); count > 0 && !has(body, "config.localNvmeSsdBlockConfig") {
		fill(body, "config.ephemeralStorageLocalSsdConfig", Body{"localSsdCount": float64(count)})
	}
	return nil
}

// taintGPUs taints the nodes of a GPU pool, but only if the cluster has a pool without GPUs at
// this moment (GKE, "Run GPUs in Standard node pools").
func taintGPUs(c *Cloud, name string, body Body) error {
	if !hasGPUs(body) {
		return nil
	}
	pools, err := c.kept.All("container.nodePool")
	if err != nil {
		return err
	}
	for other, pool := range pools {
		if clusterOf(other) == clusterOf(name) && !hasGPUs(pool) {
			Set(body, GPUTaints, []any{Body{"key": gcp.TaintGPU, "value": gcp.TaintGPUValue, "effect": "NO_SCHEDULE"}})
			return nil
		}
	}
	return nil
}

// GPUTaints is the field of a pool's body with the taint that GKE adds for GPUs. An update of the
// pool's own taints leaves it in place.
const GPUTaints = "config.gpuTaints"

// hasGPUs reports whether the nodes of a pool have GPUs, attached ones or GPUs of their machine
// type.
func hasGPUs(pool Body) bool {
	machine, _ := gcp.Lookup(text(pool, "config.machineType"))
	return machine.GPUs > 0 || len(list(pool, "config.accelerators")) > 0
}

// bundledSSDs returns the number of local SSDs that a machine comes with, if that
// cannot be chosen. They come back as ephemeral storage in pools that asked for
// nothing: A3 and A2 Ultra.
func bundledSSDs(machineType string) int {
	if !strings.HasPrefix(machineType, "a3-") && !strings.HasPrefix(machineType, "a2-ultragpu-") {
		return 0
	}
	machine, _ := gcp.Lookup(machineType)
	return machine.BundledLocalSSDs()
}

func normalizeNodePool(c *Cloud, name string, body Body) error {
	cluster, err := c.kept.Read("container.cluster", clusterOf(name))
	if err != nil {
		return err
	}
	body["name"] = segment(name)
	body["selfLink"] = "https://container.googleapis.com/v1beta1/" + selfPath(name)
	fill(body, "locations", list(cluster, "locations"))
	fill(body, "version", text(cluster, "currentNodeVersion"))
	groups := []any{}
	for _, zone := range list(body, "locations") {
		groups = append(groups, "https://www.googleapis.com/compute/v1/projects/"+element(name, "projects")+"/zones/"+zone.(string)+
			"/instanceGroupManagers/gke-"+element(name, "clusters")+"-"+segment(name)+"-"+hash(name)+"-grp")
	}
	body["instanceGroupUrls"] = groups
	if len(object(body, "autoscaling")) > 0 {
		fill(body, "autoscaling.locationPolicy", "BALANCED")
	} else {
		delete(body, "autoscaling")
	}
	poolNetwork(cluster, body)
	poolConfig(cluster, object(body, "config"))
	if has(body, "upgradeSettings.strategy") && text(body, "upgradeSettings.strategy") != "SURGE" {
		remove(body, "upgradeSettings.maxSurge")
	}
	return nil
}

// clusterOf returns the name of a pool's cluster.
func clusterOf(pool string) string {
	cluster, _, _ := strings.Cut(pool, "/nodePools/")
	return cluster
}

func poolNetwork(cluster, body Body) {
	fill(body, "networkConfig", Body{})
	fill(body, "networkConfig.podRange", text(cluster, "ipAllocationPolicy.clusterSecondaryRangeName"))
	Set(body, "networkConfig.podIpv4CidrBlock", text(cluster, "ipAllocationPolicy.clusterIpv4CidrBlock"))
	Set(body, "networkConfig.subnetwork", text(cluster, "networkConfig.subnetwork"))
	if truth(cluster, "privateClusterConfig.enablePrivateNodes") {
		fill(body, "networkConfig.enablePrivateNodes", true)
	}
	pods := 110
	switch asked, _ := Lookup(body, "maxPodsConstraint.maxPodsPerNode"); asked := asked.(type) {
	case float64:
		pods = int(asked)
	case string:
		pods, _ = strconv.Atoi(asked)
	}
	Set(body, "maxPodsConstraint.maxPodsPerNode", strconv.Itoa(pods))
	// A node has at least twice as many addresses as pods.
	body["podIpv4CidrSize"] = float64(32 - bits.Len(uint(2*pods-1)))
}

func poolConfig(cluster, config Body) {
	fill(config, "metadata", Body{})
	fill(object(config, "metadata"), "disable-legacy-endpoints", "true")
	Set(config, "bootDisk", Body{"diskType": text(config, "diskType"), "sizeGb": strconv.Itoa(int(number(config, "diskSizeGb")))})
	labels(config)
	// Answered in any case, whatever an update sends.
	kubelet := object(Answers()["container.nodePool.autoscalingAndTaint"].Get, "config.kubeletConfig")
	for field, value := range kubelet {
		fill(config, "kubeletConfig."+field, value)
	}
	if has(cluster, "workloadIdentityConfig.workloadPool") {
		fill(config, "workloadMetadataConfig.mode", "GKE_METADATA")
	}
	switch text(config, "workloadMetadataConfig.mode") {
	case "GKE_METADATA":
		Set(config, "workloadMetadataConfig.nodeMetadata", "GKE_METADATA_SERVER")
	case "GCE_METADATA":
		Set(config, "workloadMetadataConfig.nodeMetadata", "EXPOSE")
	}
	// A message whose only field is false is dropped for these two†.
	for _, feature := range []string{"gcfsConfig", "gvnic"} {
		if has(config, feature) && !truth(config, feature+".enabled") {
			delete(config, feature)
		}
	}
}

// labels sets the labels that GKE gives to machines. Only on-demand is recorded.
func labels(config Body) {
	const prefix = "goog-gke-"
	resourceLabels := object(config, "resourceLabels")
	if resourceLabels == nil {
		resourceLabels = Body{}
		config["resourceLabels"] = resourceLabels
	}
	model := "on-demand"
	if truth(config, "spot") {
		model = "spot" // †
	}
	resourceLabels[prefix+"node-pool-provisioning-model"] = model
	for _, accelerator := range list(config, "accelerators") {
		resourceLabels[prefix+"accelerator-type"] = text(accelerator.(Body), "acceleratorType") // †
	}
}

// checkNodePool refuses what GKE refuses of a pool.
func checkNodePool(c *Cloud, name string, body Body) error {
	cluster, err := c.kept.Read("container.cluster", clusterOf(name))
	if err != nil {
		return err
	}
	if cluster == nil {
		return recordedError("container.cluster.regional.404", nil)
	}
	return checkMachine(object(body, "config"))
}

// checkMachine refuses machines that Compute Engine does not make†.
func checkMachine(config Body) error {
	machine, disk := text(config, "machineType"), text(config, "diskType")
	family := series(machine)
	if refused, known := refusedDisks[family]; known && slices.ContainsFunc(refused, func(prefix string) bool { return strings.HasPrefix(disk, prefix) }) {
		return refuse(400, "badRequest", "%s disk type cannot be used by %s machine type.", disk, machine)
	}
	image := text(config, "imageType")
	cos := image == "" || strings.HasPrefix(strings.ToUpper(image), "COS")
	switch gvnic := truth(config, "gvnic.enabled"); {
	case truth(config, "gcfsConfig.enabled") && !cos:
		return refuse(400, "badRequest", "Image streaming is not supported with image type %s.", image)
	case gvnic && !cos:
		return refuse(400, "badRequest", "gVNIC is not supported with image type %s.", image)
	case gvnic && (family == "m1" || family == "m2"):
		return refuse(400, "badRequest", "gVNIC is not supported with machine type %s.", machine)
	}
	return nil
}

// refusedDisks are the types of disk, by their beginnings, that machines of a
// series cannot have, after Google's documentation†.
var refusedDisks = map[string][]string{
	"a3":  {"pd-standard"},
	"c3":  {"pd-standard", "hyperdisk-throughput"},
	"c3d": {"pd-standard"},
	"g2":  {"pd-standard"},
	"h3":  {"pd-standard", "pd-ssd"},
	"a4":  {"pd-"},
	"c4":  {"pd-"},
	"c4a": {"pd-"},
	"c4d": {"pd-"},
	"n4":  {"pd-"},
	"m4":  {"pd-"},
	"x4":  {"pd-"},
	"g4":  {"pd-"},
	"h4d": {"pd-"},
}

func series(machineType string) string {
	family, _, _ := strings.Cut(machineType, "-")
	return family
}
