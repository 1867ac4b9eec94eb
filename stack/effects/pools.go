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
	"persia/config/input"
	"persia/gcp"
	"persia/infra/gpu"
)

// pool is a node pool.
type pool struct {
	// path is the path of the pool in the stack file. It is nil for a pool in the state.
	path *field.Path
	// nodes is the number of nodes, or 0 if GKE chooses it, which is up to most nodes then.
	nodes, most int
	// zones are the zones of the nodes, or empty if GKE chooses them.
	zones []string
	// atOnce is how many nodes GKE recreates at once, and rounds how often it does so until it has recreated all.
	// They are 0 for a pool in the state.
	atOnce, rounds int
	// labels are the labels of the nodes. They are nil for a pool of the stack file.
	labels map[string]string
	// settings are the values of [poolSettings] by their fields.
	settings map[string]string
}

// WantedPool is a node pool of the stack file, with the settings that it takes from the rest of the file.
type WantedPool struct {
	config.Pool
	Cluster config.Cluster
	Driver  config.NVIDIADriver
}

// poolSettings are the settings of a node pool whose change costs nodes: the path of each in the pool or, if it
// begins with persia:, in the stack file, and its path in the state.
var poolSettings = []struct {
	field, output string
	// value returns the value in the terms of the state, if it is not the field's own.
	value func(WantedPool) any
	// recreates is true if GKE recreates the nodes in rounds. For other changes, Google Cloud deletes the pool and
	// creates another.
	recreates bool
}{
	{field: "machineType", output: "nodeConfig.machineType", recreates: true},
	// Not every machine has it, and without it the nodes of another machine type need another pool.
	{field: "machineType's gVNIC", output: "nodeConfig.gvnic.enabled", value: func(p WantedPool) any { return p.HasGVNIC() }, recreates: true},
	{field: "disk.type", output: "nodeConfig.diskType", recreates: true},
	{field: "disk.sizeGb", output: "nodeConfig.diskSizeGb", recreates: true},
	{field: "spot", output: "nodeConfig.spot"},
	{field: "queuedProvisioning", output: "queuedProvisioning.enabled"},
	{field: "reservation", output: "nodeConfig.reservationAffinity.values.0"},
	{field: "compactPlacement", output: "placementPolicy.type", value: func(p WantedPool) any {
		return map[bool]string{true: "COMPACT"}[p.CompactPlacement]
	}},
	{field: "gpu.type", output: accelerator + "type"},
	{field: "gpu.count", output: accelerator + "count"},
	{field: "imageType", output: "nodeConfig.imageType"},
	{field: "localSsdCount", output: "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount"},
	{field: "fastSocket", output: "nodeConfig.fastSocket.enabled", recreates: true},
	{field: "maxPodsPerNode", output: "maxPodsPerNode"},
	{field: "persia:cluster.encryption.bootDisks", output: "nodeConfig.bootDiskKmsKey", value: func(p WantedPool) any {
		return p.Cluster.Encryption.BootDisks
	}},
	{field: "persia:cluster.imageStreaming", output: "nodeConfig.gcfsConfig.enabled", value: func(p WantedPool) any {
		return p.Cluster.ImageStreaming && p.ImageType == gcp.ImageCOS
	}},
	{field: "persia:nvidiaDriver", output: accelerator + "gpuDriverInstallationConfig.gpuDriverVersion", value: func(p WantedPool) any {
		if p.GPU == nil {
			return ""
		}
		return gpu.DriverVersion(p.Driver)
	}},
}

const accelerator = "nodeConfig.guestAccelerators.0."

// AddPool adds a node pool of the stack file.
func (s State) AddPool(path *field.Path, spec WantedPool) {
	pool := pool{path: path, settings: map[string]string{}, zones: spec.Zones, atOnce: spec.NodesAtOnce(), rounds: spec.Rounds()}
	if spec.Nodes != nil {
		pool.nodes = *spec.Nodes
	}
	if spec.Autoscaling != nil {
		pool.most = spec.Autoscaling.MaxNodes
	}
	fields := plain(spec.Pool)
	for _, setting := range poolSettings {
		value := output(fields, setting.field)
		if setting.value != nil {
			value = setting.value(spec)
		}
		pool.settings[setting.field] = text(value)
	}
	s.pools[spec.Name] = pool
}

// Leaving returns the pools of the state that an update deletes after it has created or enlarged others, with the
// settings that decide about quotas and reservations.
func (s State) Leaving(pools []config.Pool) []config.Pool {
	var leaving []config.Pool
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		if !slices.ContainsFunc(pools, s.Grows) || slices.ContainsFunc(pools, func(p config.Pool) bool { return p.Name == name }) {
			continue
		}
		was := s.pools[name].settings
		number := func(field string) int { n, _ := strconv.Atoi(was[field]); return n }
		leaving = append(leaving, config.Pool{
			Name: name, MachineType: was["machineType"], Nodes: new(s.pools[name].mostNodes()),
			Spot: was["spot"] != "", Reservation: was["reservation"],
			Disk: config.Disk{Type: was["disk.type"], SizeGB: number("disk.sizeGb")}, LocalSSDs: number("localSsdCount"),
			GPU: &config.GPU{Type: was["gpu.type"], Count: number("gpu.count")},
		})
	}
	return leaving
}

// Grows reports whether a pool of the stack file is new, or has more nodes than in the state.
func (s State) Grows(pool config.Pool) bool { return pool.MostNodes() > s.pools[pool.Name].mostNodes() }

func (p pool) mostNodes() int { return max(p.nodes, p.most) }

// addPool adds a node pool of the state.
func (s State) addPool(outputs map[string]any) {
	pool := pool{settings: map[string]string{}, labels: map[string]string{}}
	zones, _ := outputs["nodeLocations"].([]any)
	for _, zone := range zones {
		pool.zones = append(pool.zones, fmt.Sprint(zone))
	}
	if perZone, fixed := outputs["nodeCount"].(float64); fixed && outputs["autoscaling"] == nil {
		pool.nodes = int(perZone) * len(pool.zones)
	}
	if most, known := output(outputs, "autoscaling.totalMaxNodeCount").(float64); known {
		pool.most = int(most)
	}
	labels, _ := output(outputs, "nodeConfig.labels").(map[string]any)
	for name, value := range labels {
		pool.labels[name] = fmt.Sprint(value)
	}
	for _, setting := range poolSettings {
		pool.settings[setting.field] = text(output(outputs, setting.output))
	}
	s.pools[fmt.Sprint(outputs["name"])] = pool
}

// pools says which nodes go, and what that does to the jobs on them.
func (u *update) pools() {
	for _, name := range slices.Sorted(maps.Keys(u.before.pools)) {
		was := u.before.pools[name]
		is, stays := u.after.pools[name]
		changes, recreates := changesOf(was, is)
		switch {
		case !stays:
			u.onPool(name, 0, true, u.say("the pool %s is no longer in the stack file: GKE deletes its nodes", name))
		case len(changes) == 0:
			if lost := lostNodes(was, is); len(lost) > 0 {
				u.onPool(name, 1, false, u.say("%s: GKE deletes nodes of the pool %s: %s", is.path, name, strings.Join(lost, ", ")))
			}
		case recreates:
			u.onPool(name, is.rounds, true, u.say("%s: GKE recreates the nodes of the pool %s, %d at once, about %s",
				strings.Join(changes, ", "), name, is.atOnce, minutes(time.Duration(is.rounds)*config.UpgradeRoundTime)))
		default:
			u.onPool(name, 0, true, u.say("%s: Google Cloud deletes all nodes of the pool %s, and creates them again: about %s without nodes",
				strings.Join(changes, ", "), name, minutes(2*config.UpgradeRoundTime)))
		}
	}
}

// changesOf returns the changes of a pool's settings, and whether GKE keeps the pool and recreates its nodes.
func changesOf(was, is pool) (changes []string, recreates bool) {
	recreates = true
	for _, setting := range poolSettings {
		old, now := was.settings[setting.field], is.settings[setting.field]
		if old == now {
			continue
		}
		path := setting.field
		if !strings.HasPrefix(path, "persia:") {
			path = is.path.String() + "." + path
		}
		changes = append(changes, fmt.Sprintf("%s was %s and is now %s", path, cmp.Or(old, "not set"), cmp.Or(now, "not set")))
		recreates = recreates && setting.recreates
	}
	return changes, recreates
}

// losesNodes reports whether a pool loses nodes, or gets others instead of them.
func (u *update) losesNodes(pool string) bool {
	was, had := u.before.pools[pool]
	is, stays := u.after.pools[pool]
	changes, _ := changesOf(was, is)
	return had && (!stays || len(changes)+len(lostNodes(was, is)) > 0)
}

// lostNodes says which nodes a pool loses because it has fewer nodes, or other zones.
func lostNodes(was, is pool) []string {
	if len(is.zones) == 0 {
		is.zones = was.zones // GKE has chosen them, and keeps them
	}
	var lost []string
	had, has := was.perZone(), is.perZone()
	for _, zone := range was.zones {
		if !slices.Contains(is.zones, zone) {
			lost = append(lost, "all in "+zone)
		} else if has > 0 && has < had {
			lost = append(lost, fmt.Sprintf("%d of %d in %s, which it chooses", had-has, had, zone))
		}
	}
	if had == 0 && has > 0 && is.nodes < was.most {
		lost = append(lost, fmt.Sprintf("down to %s, which it chooses, if autoscaling has created more", input.Count(is.nodes, "node")))
	}
	return lost
}

// perZone returns the number of nodes in each zone, or 0 if GKE chooses it.
func (p pool) perZone() int { return p.nodes / max(1, len(p.zones)) }

// onPool adds to an effect what becomes of the pods on a pool, if GKE recreates its nodes in some rounds, or all of them
// at once if rounds is 0. Not all nodes go if it chooses some.
func (u *update) onPool(pool string, rounds int, all bool, effect *Effect) {
	say := func(format string, args ...any) { effect.Text += fmt.Sprintf("; "+format, args...) }
	end := func(sure bool, names ...string) {
		list := &effect.Risks
		if sure {
			list = &effect.Ends
		}
		*list = append(*list, names...)
	}
	end(all || u.before.pools[pool].nodes > 0, "pool "+pool)
	for _, name := range slices.Sorted(maps.Keys(u.before.Brokers)) {
		if u.before.Brokers[name].Pool == pool {
			end(all, name)
		}
	}
	for _, name := range u.before.Running() {
		training, is := u.before.Trainings[name], u.after.Trainings[name]
		if is.Replicas() == 0 {
			continue // which the effects of the job say
		}
		if roles := u.before.rolesOn(training, pool); len(roles) > 0 {
			sure := all && !training.byOperator() && !training.onList(roles[0])
			end(sure, training.workloads(name, roles...)...)
			switch restarts := map[bool]string{true: "restarts", false: "may restart"}[sure]; {
			case training.byOperator():
				say("%s fails if its %s runs there, because the operator creates no pod again", name, strings.Join(roles, " or "))
			case rounds > 1:
				say("%s %s up to %d times%s: to restart it once, suspend it first", name, restarts, rounds, u.resumes(name))
			default:
				say("%s %s on other nodes%s", name, restarts, u.resumes(name))
			}
		}
		servers := u.before.Brokers[training.contract().NATS]
		if servers.Pool == pool && (rounds == 0 || servers.Size == 1) {
			say("the NATS cluster %s runs there: %s", training.contract().NATS, u.withoutNATS(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.before.pedl)) {
		if workload := u.before.pedl[name]; u.before.runsOn(workload.Pod, pool) {
			end(all, name)
			say("%s restarts on other nodes%s", name, lostData(workload))
		}
	}
}

// onList reports whether a role's pods may run on each pool of a list.
func (t Training) onList(role string) bool {
	selected := t.Roles[role].Pod.NodeSelector
	return selected[gcp.LabelComputeClass] != "" || selected[config.PoolsLabel] != ""
}

// rolesOn returns the roles of a job with pods on a pool. PERSIA's operator chooses no nodes: its pods with GPUs are
// on any pool with GPUs, and the others on any without.
func (s State) rolesOn(training Training, pool string) []string {
	var roles []string
	for _, name := range slices.Sorted(maps.Keys(training.Roles)) {
		role := training.Roles[name]
		_, wants := role.container().Resources.Limits[gcp.GPUResource]
		may := training.byOperator() && wants == (s.pools[pool].settings["gpu.type"] != "")
		if role.Replicas > 0 && (may || s.runsOn(role.Pod, pool)) {
			roles = append(roles, name)
		}
	}
	return roles
}

// runsOn reports whether pods run on a pool, as far as their node selector decides.
func (s State) runsOn(pod corev1.PodSpec, pool string) bool {
	if on, chosen := pod.NodeSelector[gcp.LabelNodePool]; chosen {
		return on == pool
	}
	for name, value := range pod.NodeSelector {
		if s.pools[pool].labels[name] != value {
			return false
		}
	}
	return len(pod.NodeSelector) > 0
}
