package effects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
	"persia/gcp"
	"persia/infra/gpu"
)

// Pool is a node pool.
type Pool struct {
	// Path is the path of the pool in the stack file. It is nil for a pool in the state.
	Path *field.Path
	// Nodes is the number of nodes, or 0 if GKE chooses it, which is up to Most nodes then.
	Nodes, Most int
	// Zones are the zones of the nodes, or empty if GKE chooses them.
	Zones []string
	// AtOnce is how many nodes GKE recreates at once, and Rounds how often it does so until it has recreated all.
	// They are 0 for a pool in the state.
	AtOnce, Rounds int
	// Labels are the labels of the nodes. They are nil for a pool of the stack file.
	Labels map[string]string
	// settings are the values of [poolSettings] by their fields.
	settings map[string]string
}

// NodePool is a node pool of the stack file, with the settings that it takes from the rest of the file.
type NodePool struct {
	config.Pool
	Cluster config.Cluster
	Driver  config.NVIDIADriver
}

// poolSettings are the settings of a node pool whose change costs nodes: the path of each in the pool or, if it
// begins with persia:, in the stack file, and its path in the state.
var poolSettings = []struct {
	field, output string
	// value returns the value in the terms of the state, if it is not the field's own.
	value func(NodePool) any
	// recreates is true if GKE recreates the nodes in rounds. For other changes, Google Cloud deletes the pool and
	// creates another.
	recreates bool
}{
	{field: "machineType", output: "nodeConfig.machineType", recreates: true},
	// Not every machine has it, and without it the nodes of another machine type need another pool.
	{field: "machineType's gVNIC", output: "nodeConfig.gvnic.enabled", value: func(p NodePool) any { return p.HasGVNIC() }, recreates: true},
	{field: "disk.type", output: "nodeConfig.diskType", recreates: true},
	{field: "disk.sizeGb", output: "nodeConfig.diskSizeGb", recreates: true},
	{field: "spot", output: "nodeConfig.spot"},
	{field: "queuedProvisioning", output: "queuedProvisioning.enabled"},
	{field: "reservation", output: "nodeConfig.reservationAffinity.values.0"},
	{field: "compactPlacement", output: "placementPolicy.type", value: func(p NodePool) any { return map[bool]string{true: "COMPACT"}[p.CompactPlacement] }},
	{field: "gpu.type", output: accelerator + "type"},
	{field: "gpu.count", output: accelerator + "count"},
	{field: "imageType", output: "nodeConfig.imageType"},
	{field: "localSsdCount", output: "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount"},
	{field: "fastSocket", output: "nodeConfig.fastSocket.enabled", recreates: true},
	{field: "maxPodsPerNode", output: "maxPodsPerNode"},
	{field: "persia:cluster.encryption.bootDisks", output: "nodeConfig.bootDiskKmsKey", value: func(p NodePool) any { return p.Cluster.Encryption.BootDisks }},
	{field: "persia:cluster.imageStreaming", output: "nodeConfig.gcfsConfig.enabled", value: func(p NodePool) any {
		return p.Cluster.ImageStreaming && p.ImageType == gcp.ImageCOS
	}},
	{field: "persia:nvidiaDriver", output: accelerator + "gpuDriverInstallationConfig.gpuDriverVersion", value: func(p NodePool) any {
		if p.GPU == nil {
			return ""
		}
		return gpu.DriverVersion(p.Driver)
	}},
}

const accelerator = "nodeConfig.guestAccelerators.0."

// AddPool adds a node pool of the stack file.
func (s Stack) AddPool(path *field.Path, spec NodePool) {
	pool := Pool{Path: path, settings: map[string]string{}, Zones: spec.Zones, AtOnce: spec.NodesAtOnce(), Rounds: spec.Rounds()}
	if spec.Nodes != nil {
		pool.Nodes = *spec.Nodes
	}
	if spec.Autoscaling != nil {
		pool.Most = spec.Autoscaling.MaxNodes
	}
	fields := plain(spec.Pool)
	for _, setting := range poolSettings {
		value := output(fields, setting.field)
		if setting.value != nil {
			value = setting.value(spec)
		}
		pool.settings[setting.field] = text(value)
	}
	s.Pools[spec.Name] = pool
}

// Leaving returns the pools of the state that an update deletes after it has created or enlarged others, with the
// settings that decide about quotas and reservations.
func (s Stack) Leaving(pools []config.Pool) []config.Pool {
	var leaving []config.Pool
	for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
		if !slices.ContainsFunc(pools, s.Grows) || slices.ContainsFunc(pools, func(p config.Pool) bool { return p.Name == name }) {
			continue
		}
		was := s.Pools[name].settings
		number := func(field string) int { n, _ := strconv.Atoi(was[field]); return n }
		leaving = append(leaving, config.Pool{
			Name: name, MachineType: was["machineType"], Nodes: new(s.Pools[name].mostNodes()), Spot: was["spot"] != "", Reservation: was["reservation"],
			Disk: config.Disk{Type: was["disk.type"], SizeGB: number("disk.sizeGb")}, LocalSSDs: number("localSsdCount"),
			GPU: &config.GPU{Type: was["gpu.type"], Count: number("gpu.count")},
		})
	}
	return leaving
}

// Grows reports whether a pool of the stack file is new, or has more nodes than in the state.
func (s Stack) Grows(pool config.Pool) bool { return pool.MostNodes() > s.Pools[pool.Name].mostNodes() }

func (p Pool) mostNodes() int { return max(p.Nodes, p.Most) }

// addPool adds a node pool of the state.
func (s Stack) addPool(outputs map[string]any) {
	pool := Pool{settings: map[string]string{}, Labels: map[string]string{}}
	zones, _ := outputs["nodeLocations"].([]any)
	for _, zone := range zones {
		pool.Zones = append(pool.Zones, fmt.Sprint(zone))
	}
	if perZone, fixed := outputs["nodeCount"].(float64); fixed && outputs["autoscaling"] == nil {
		pool.Nodes = int(perZone) * len(pool.Zones)
	}
	if most, known := output(outputs, "autoscaling.totalMaxNodeCount").(float64); known {
		pool.Most = int(most)
	}
	labels, _ := output(outputs, "nodeConfig.labels").(map[string]any)
	for name, value := range labels {
		pool.Labels[name] = fmt.Sprint(value)
	}
	for _, setting := range poolSettings {
		pool.settings[setting.field] = text(output(outputs, setting.output))
	}
	s.Pools[fmt.Sprint(outputs["name"])] = pool
}

// pools says which nodes go, and what that does to the jobs on them.
func (u *update) pools() {
	last := ""
	for name, is := range u.after.Pools {
		if is.mostNodes() > u.before.Pools[name].mostNodes() {
			last = " when the others have theirs. Until then, the quotas count both"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.before.Pools)) {
		was := u.before.Pools[name]
		is, stays := u.after.Pools[name]
		changes, recreates := changesOf(was, is)
		switch {
		case !stays:
			u.say("persia:nodePools", "the pool %s is no longer in the stack file. GKE deletes its nodes%s%s", name, last, u.onPool(name, 0))
		case len(changes) == 0:
			if lost := lostNodes(was, is); len(lost) > 0 {
				u.say(is.Path.String(), "GKE deletes nodes of the pool %s: %s%s", name, strings.Join(lost, ", "), u.onPool(name, 1))
			}
		case recreates:
			u.say(strings.Join(changes, ", "), "GKE drains and recreates the nodes of the pool %s, %d at once. This takes %s, about %s if a round takes %s%s",
				name, is.AtOnce, count(is.Rounds, "round"), minutes(time.Duration(is.Rounds)*config.UpgradeRoundTime), minutes(config.UpgradeRoundTime), u.onPool(name, is.Rounds))
		default:
			u.say(strings.Join(changes, ", "), "Google Cloud deletes all nodes of the pool %s, and creates the pool again when they are gone: about %s without nodes, if each of the two takes %s%s",
				name, minutes(2*config.UpgradeRoundTime), minutes(config.UpgradeRoundTime), u.onPool(name, 0))
		}
	}
}

// changesOf returns the changes of a pool's settings, and whether GKE keeps the pool and recreates its nodes.
func changesOf(was, is Pool) (changes []string, recreates bool) {
	recreates = true
	for _, setting := range poolSettings {
		old, now := was.settings[setting.field], is.settings[setting.field]
		if old == now {
			continue
		}
		path := setting.field
		if !strings.HasPrefix(path, "persia:") {
			path = is.Path.String() + "." + path
		}
		changes = append(changes, fmt.Sprintf("%s was %s and is now %s", path, cmp.Or(old, "not set"), cmp.Or(now, "not set")))
		recreates = recreates && setting.recreates
	}
	return changes, recreates
}

// losesNodes reports whether a pool loses nodes, or gets others instead of them.
func losesNodes(was, is Pool) bool {
	changes, _ := changesOf(was, is)
	return len(changes)+len(lostNodes(was, is)) > 0
}

// lostNodes says which nodes a pool loses because it has fewer nodes, or other zones.
func lostNodes(was, is Pool) []string {
	if len(is.Zones) == 0 {
		is.Zones = was.Zones // GKE has chosen them, and keeps them
	}
	var lost []string
	had, has := was.perZone(), is.perZone()
	for _, zone := range was.Zones {
		if !slices.Contains(is.Zones, zone) {
			lost = append(lost, "all in "+zone)
		} else if has > 0 && has < had {
			lost = append(lost, fmt.Sprintf("%d of %d in %s, which it chooses", had-has, had, zone))
		}
	}
	if had == 0 && has > 0 && is.Nodes < was.Most {
		lost = append(lost, fmt.Sprintf("down to %s, which it chooses, if autoscaling has created more", count(is.Nodes, "node")))
	}
	return lost
}

// perZone returns the number of nodes in each zone, or 0 if GKE chooses it.
func (p Pool) perZone() int { return p.Nodes / max(1, len(p.Zones)) }

// onPool says what becomes of the pods on a pool, if GKE recreates its nodes in some rounds, or all of them at once
// if rounds is 0.
func (u *update) onPool(pool string, rounds int) string {
	var says strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&says, ". "+format, args...) }
	for _, name := range u.before.Running() {
		job, is := u.before.Jobs[name], u.after.Jobs[name]
		if is.Replicas() == 0 {
			continue // which the effects of the job say
		}
		switch roles := u.before.rolesOn(job, pool); {
		case roles == "":
		case job.byOperator():
			say("Pods of %s of the job %s may run there: if the node of one goes, the job fails, because the operator creates no pod again", roles, name)
		case rounds > 0:
			say("Pods of %s of the job %s run there: the job loses up to %s, and trains %s. To lose one attempt only, suspend the job first", roles, name, count(rounds, "attempt"), u.start(is))
		default:
			say("Pods of %s of the job %s run there: the job does not train until all of its pods are ready on other nodes, and trains %s", roles, name, u.start(is))
		}
		if servers, has := u.before.NATS[job.contract().NATS]; has && servers.Pool == pool && (rounds == 0 || servers.Size == 1) {
			say("%s of the job %s: %s", count(servers.Size, "NATS server"), name, u.withoutNATS(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.before.PEDL)) {
		if role := u.before.PEDL[name]; u.before.runsOn(role.Pod, pool) {
			say("The pods of %s of PEDL end there, and start on other nodes%s", name, lostData(name, role))
		}
	}
	return says.String()
}

// rolesOn returns the roles of a job with pods on a pool. PERSIA's operator chooses no nodes: its pods with GPUs are
// on any pool with GPUs, and the others on any without.
func (s Stack) rolesOn(job Job, pool string) string {
	var roles []string
	for _, name := range slices.Sorted(maps.Keys(job.Roles)) {
		role := job.Roles[name]
		_, wants := role.container().Resources.Limits[gcp.GPUResource]
		may := job.byOperator() && wants == (s.Pools[pool].settings["gpu.type"] != "")
		if role.Replicas > 0 && (may || s.runsOn(role.Pod, pool)) {
			roles = append(roles, name)
		}
	}
	return strings.Join(roles, ", ")
}

// runsOn reports whether pods run on a pool, as far as their node selector decides.
func (s Stack) runsOn(pod corev1.PodSpec, pool string) bool {
	if on, chosen := pod.NodeSelector[gcp.LabelNodePool]; chosen {
		return on == pool
	}
	for name, value := range pod.NodeSelector {
		if s.Pools[pool].Labels[name] != value {
			return false
		}
	}
	return len(pod.NodeSelector) > 0
}
