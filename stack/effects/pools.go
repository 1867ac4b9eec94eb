package effects

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
	"persia/gcp"
)

// Pool is a node pool.
type Pool struct {
	// Path is the path of the pool in the stack file. It is nil for a pool in the state.
	Path *field.Path
	// Nodes is the number of nodes, or 0 if GKE chooses it, which is up to Most nodes then.
	Nodes, Most int
	// Zones are the zones of the nodes, or empty if GKE chooses them.
	Zones []string
	// AtOnce is how many nodes GKE recreates at once, and Rounds how often it does so until it has
	// recreated all. They are 0 for a pool in the state.
	AtOnce, Rounds int
	// Labels are the labels of the nodes. They are nil for a pool of the stack file.
	Labels map[string]string
	// settings are the values of [poolSettings] by their fields.
	settings map[string]string
}

// NodePool is a node pool of the stack file, with the settings that it takes from the rest of the
// file.
type NodePool struct {
	config.Pool
	Cluster config.Cluster
	Driver  config.NVIDIADriver
}

// cost is the effect of a change on the nodes of a pool.
type cost int

const (
	// recreates is for an update in which GKE recreates the nodes in rounds.
	recreates cost = iota
	// replaces is for a change for which Google Cloud deletes the pool and creates another.
	replaces
)

// poolSettings are the settings of a node pool whose change costs nodes: the path of each in the pool or,
// if it begins with persia:, in the stack file, and its path in the state.
var poolSettings = []struct {
	field, output string
	// value returns the value in the terms of the state, if it is not the field's own.
	value func(NodePool) any
}{
	{field: "machineType", output: "nodeConfig.machineType"},
	// Not every machine has it, and without it the nodes of another machine type need another pool.
	{"machineType's gVNIC", "nodeConfig.gvnic.enabled", func(p NodePool) any { return p.HasGVNIC() }},
	{field: "disk.type", output: "nodeConfig.diskType"},
	{field: "disk.sizeGb", output: "nodeConfig.diskSizeGb"},
	{field: "spot", output: "nodeConfig.spot"},
	{field: "queuedProvisioning", output: "queuedProvisioning.enabled"},
	{field: "reservation", output: "nodeConfig.reservationAffinity.values.0"},
	{"compactPlacement", "placementPolicy.type", func(p NodePool) any { return map[bool]string{true: "COMPACT"}[p.CompactPlacement] }},
	{field: "gpu.type", output: accelerator + "type"},
	{field: "gpu.count", output: accelerator + "count"},
	{field: "gpu.partition", output: accelerator + "gpuPartitionSize"},
	{field: "imageType", output: "nodeConfig.imageType"},
	{field: "localSsdCount", output: "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount"},
	{field: "fastSocket", output: "nodeConfig.fastSocket.enabled"},
	{field: "maxPodsPerNode", output: "maxPodsPerNode"},
	{"persia:cluster.encryption.bootDisks", "nodeConfig.bootDiskKmsKey", func(p NodePool) any { return p.Cluster.Encryption.BootDisks }},
	{"persia:cluster.imageStreaming", "nodeConfig.gcfsConfig.enabled", func(p NodePool) any {
		return p.Cluster.ImageStreaming && p.ImageType == gcp.ImageCOS
	}},
	{driverVersion, accelerator + "gpuDriverInstallationConfig.gpuDriverVersion", func(p NodePool) any {
		switch {
		case p.GPU == nil:
			return ""
		case p.Driver.Installer == config.InstallerManaged:
			return p.Driver.Version
		default:
			return gcp.DriverDisabled
		}
	}},
}

const (
	// driverVersion is the path of the driver's version, which GKE is told only if it installs the driver.
	driverVersion = "persia:nvidiaDriver.version"
	accelerator   = "nodeConfig.guestAccelerators.0."
)

// costOf returns what a change of a setting costs: what the tag change of the pool's field says, or else a
// new pool.
func costOf(setting string) cost {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Pool]()) {
		name, _, _ := strings.Cut(setting, ".")
		if json, _, _ := strings.Cut(f.Tag.Get("json"), ","); json == name && f.Tag.Get("change") == "update" {
			return recreates
		}
	}
	return replaces
}

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
		value := output(fields, strings.Split(setting.field, "."))
		if setting.value != nil {
			value = setting.value(spec)
		}
		pool.settings[setting.field] = text(value)
	}
	s.Pools[spec.Name] = pool
}

// addPool adds a node pool of the state.
func (s Stack) addPool(outputs map[string]any) {
	pool := Pool{settings: map[string]string{}, Zones: texts(outputs["nodeLocations"]), Labels: map[string]string{}}
	if perZone, fixed := outputs["nodeCount"].(float64); fixed && outputs["autoscaling"] == nil {
		pool.Nodes = int(perZone) * len(pool.Zones)
	}
	if most, known := output(outputs, []string{"autoscaling", "totalMaxNodeCount"}).(float64); known {
		pool.Most = int(most)
	}
	labels, _ := output(outputs, []string{"nodeConfig", "labels"}).(map[string]any)
	for name, value := range labels {
		pool.Labels[name] = fmt.Sprint(value)
	}
	for _, setting := range poolSettings {
		pool.settings[setting.field] = text(output(outputs, strings.Split(setting.output, ".")))
	}
	s.Pools[fmt.Sprint(outputs["name"])] = pool
}

// output returns the value at a path, or nil.
func output(value any, path []string) any {
	for _, name := range path {
		switch in := value.(type) {
		case map[string]any:
			value = in[name]
		case []any:
			if len(in) == 0 {
				return nil
			}
			value = in[0]
		default:
			return nil
		}
	}
	return value
}

// text returns a value in the form of a stack file, or "" for a default.
func text(value any) string {
	if number, is := value.(float64); is {
		value = strconv.FormatFloat(number, 'f', -1, 64)
	}
	switch said := fmt.Sprint(value); said {
	case "<nil>", "false", "0":
		return ""
	default:
		return said
	}
}

// pools says which nodes go, and what that does to the jobs on them.
func pools(before, after Stack) []string {
	if after.Replaced != nil {
		return nil // all of them go
	}
	var effects []string
	for _, name := range slices.Sorted(maps.Keys(before.Pools)) {
		was := before.Pools[name]
		is, stays := after.Pools[name]
		if !stays {
			effects = append(effects, fmt.Sprintf("persia:nodePools: the pool %s is no longer in the stack file. %sGKE deletes its nodes%s",
				name, refused(before.Protected), before.onPool(after, name, 0)))
			continue
		}
		effects = append(effects, poolChanges(before, after, name, was, is)...)
	}
	return effects
}

// refused says that Pulumi deletes nothing that is protected.
func refused(protected bool) string {
	if !protected {
		return ""
	}
	return "Pulumi refuses this: set persia:cluster.deletionProtection: false and run `pulumi up` first. Then "
}

// poolChanges describes the effects on the nodes of a pool that stays.
func poolChanges(before, after Stack, name string, was, is Pool) []string {
	var changes []string
	highest := recreates
	for _, setting := range poolSettings {
		path, old, new := setting.field, was.settings[setting.field], is.settings[setting.field]
		if old == new {
			continue
		}
		switch {
		case path == driverVersion && before.Driver.Installer != after.Driver.Installer:
			path, old, new = "persia:nvidiaDriver.installer", string(before.Driver.Installer), string(after.Driver.Installer)
		case !strings.HasPrefix(path, "persia:"):
			path = is.Path.String() + "." + path
		}
		changes = append(changes, fmt.Sprintf("%s was %s and is now %s", path, written(old), written(new)))
		highest = max(highest, costOf(setting.field))
	}
	if len(changes) == 0 {
		return resized(before, after, name, was, is)
	}
	if highest == replaces {
		// Pulumi also replaces a pool that loses its protection in the same update.
		return []string{fmt.Sprintf("%s: %sGoogle Cloud deletes all nodes of the pool %s, and creates the pool again when they are gone: about %s without nodes, if each of the two takes %s%s",
			strings.Join(changes, ", "), refused(before.Protected && after.Protected), name,
			minutes(2*config.UpgradeRoundTime), minutes(config.UpgradeRoundTime), before.onPool(after, name, 0))}
	}
	return []string{fmt.Sprintf("%s: GKE drains and recreates the nodes of the pool %s, %d at once. This takes %s, about %s if a round takes %s%s",
		strings.Join(changes, ", "), name, is.AtOnce, count(is.Rounds, "round"), minutes(time.Duration(is.Rounds)*config.UpgradeRoundTime), minutes(config.UpgradeRoundTime), before.onPool(after, name, is.Rounds))}
}

// drivers describes the effects on nodes if a DaemonSet installs another version of the driver. GKE
// replaces a pool for any other change of the driver.
func drivers(before, after Stack) []string {
	was, is := before.Driver, after.Driver
	if after.Replaced != nil || was == is || was.Installer != is.Installer || was.Installer == config.InstallerManaged {
		return nil
	}
	return []string{fmt.Sprintf("%s was %s and is now %s: nodes that GKE creates from now on load it. A node that has loaded a driver keeps it until GKE recreates the node; no training stops",
		driverVersion, written(was.Version), written(is.Version))}
}

// resized says which nodes a pool loses because it has fewer nodes, or other zones.
func resized(before, after Stack, name string, was, is Pool) []string {
	if len(is.Zones) == 0 {
		is.Zones = was.Zones // GKE has chosen them, and keeps them
	}
	path := is.Path.Child("nodes").String()
	if !slices.Equal(was.Zones, is.Zones) {
		path = is.Path.Child("zones").String()
		if !slices.Equal(before.Zones, after.Zones) && slices.Equal(is.Zones, after.Zones) {
			path = "persia:cluster.zones" // which the pool follows
		}
	}
	var loses []string
	most := "" // the loss of all zones together
	for _, zone := range was.Zones {
		had, has := was.perZone(), is.perZone()
		switch stays := slices.Contains(is.Zones, zone); {
		case !stays:
			loses = append(loses, "all in "+zone)
		case has > 0 && had == 0 && has*len(is.Zones) < was.Most:
			most = "down to " + count(is.Nodes, "node") + ", which it chooses, if autoscaling has created more"
		case has > 0 && has < had:
			loses = append(loses, fmt.Sprintf("%d of %d in %s, which it chooses", had-has, had, zone))
		}
	}
	if most != "" {
		loses = append(loses, most)
	}
	if len(loses) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: GKE deletes nodes of the pool %s: %s%s", path, name, strings.Join(loses, ", "), before.onPool(after, name, 1))}
}

// perZone returns the number of nodes in each zone, or 0 if GKE chooses it.
func (p Pool) perZone() int { return p.Nodes / max(1, len(p.Zones)) }

// count returns a number and the noun that it counts.
func count(number int, of string) string {
	if number == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", number, of)
}

// minutes returns a duration without seconds, like 2h30m.
func minutes(d time.Duration) string { return strings.TrimSuffix(d.String(), "0s") }

// onPool describes the effects on the pods of a pool, if GKE recreates its nodes in some
// rounds, or all of them at once if rounds is 0.
func (s Stack) onPool(after Stack, pool string, rounds int) string {
	var says strings.Builder
	for _, name := range s.Running() {
		job, is := s.Jobs[name], after.Jobs[name]
		if is.Replicas() == 0 {
			continue // which the effects of the job say
		}
		if roles := s.rolesOn(job, pool); len(roles) > 0 {
			fmt.Fprintf(&says, ". Pods of %s of the job %s %s there: ", strings.Join(roles, ", "), name, map[bool]string{false: "run", true: "may run"}[job.ByOperator])
			switch {
			case job.ByOperator:
				says.WriteString("if the node of one goes, the job fails, because the operator creates no pod again")
				if rounds > 0 {
					says.WriteString("; GKE waits for them for up to an hour in each round")
				}
				fmt.Fprintf(&says, ". After your next change of the job, it trains %s", after.start(is))
			case rounds > 0:
				fmt.Fprintf(&says, "the job loses up to %s, and trains %s. To lose one attempt only, suspend the job first", count(rounds, "attempt"), after.start(is))
			default:
				fmt.Fprintf(&says, "the job does not train until all of its pods are ready on other nodes, and trains %s", after.start(is))
			}
		}
		if servers, has := s.NATS[job.nats()]; has && s.runsOn(servers.Pod, pool) {
			fmt.Fprintf(&says, ". %s there: ", servers.run(name))
			if rounds > 0 && servers.Size > 1 {
				says.WriteString("GKE moves one at a time, its clients reconnect to another, and messages in transit are lost")
			} else {
				says.WriteString(after.withoutNATS(name, is))
			}
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.PEDL)) {
		if s.runsOn(s.PEDL[name].Pod.Spec, pool) {
			parts = append(parts, name)
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(&says, ". Pods of %s of PEDL run there, and are away until they are ready on other nodes", strings.Join(parts, ", "))
	}
	for _, name := range parts {
		if keepsNothing(s.PEDL[name]) {
			says.WriteString(lostData(name))
		}
	}
	return says.String()
}

// rolesOn returns the roles of a job with pods on a pool.
func (s Stack) rolesOn(job Job, pool string) []string {
	var roles []string
	for _, role := range slices.Sorted(maps.Keys(job.Roles)) {
		of := job.Roles[role]
		if of.Replicas > 0 && (job.ByOperator && s.admits(of, pool) || s.runsOn(of.Pod.Spec, pool)) {
			roles = append(roles, role)
		}
	}
	return roles
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

// admits reports whether pods that PERSIA's operator creates, which name no node, can run on a
// pool: pods without GPUs on a pool without GPUs, and pods with GPUs on a pool with GPUs.
func (s Stack) admits(role Role, pool string) bool {
	_, wants := role.container().Resources.Limits[gcp.GPUResource]
	return wants == (s.Pools[pool].settings["gpu.type"] != "")
}
