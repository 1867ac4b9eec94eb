package config

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// ContractAnnotation has the [Contract] of a job, on each of its workloads.
const ContractAnnotation = "persia.com/contract"

// Contract is what the program has decided about a job. The next update and `persia status` read it.
type Contract struct {
	Version int `json:"version"`
	// NATS is the name of the job's NatsCluster.
	NATS string `json:"nats"`
	// Replicas are the replicas of each role, by its name, also while the job is suspended. StatefulSets lack them.
	Replicas map[string]int `json:"replicas,omitempty"`
	// Checkpoints is where attempts write their checkpoints, and Record where the coordinator records the run. They
	// have no path if the job keeps no checkpoint, or if PERSIA's operator creates its pods.
	Checkpoints Folder `json:"checkpoints,omitzero"`
	Record      Folder `json:"record,omitzero"`
	// Own is the folder for checkpoints that the job chooses itself, or has no path.
	Own Folder `json:"own,omitzero"`
	// Partial is true if servers keep their memory when another replica fails.
	Partial bool `json:"partial,omitempty"`
	// Useful is the share of useful hours in the plan, like 98%, or "". Only the completion has it: what has pods of
	// roles does not change with the plan.
	Useful string `json:"useful,omitempty"`
}

// Folder is a folder that containers have at a path.
type Folder struct {
	Path string `json:"path"`
	// Claim is the claim of its volume, or Volume the job's name of a volume with another source. Both are "" if the
	// folder is in neither. Below is its path in the volume.
	Claim  string `json:"claim,omitempty"`
	Volume string `json:"volume,omitempty"`
	Below  string `json:"below,omitempty"`
}

const contractVersion = 1

// Annotation returns the contract as an annotation.
func (c Contract) Annotation() map[string]string {
	text, _ := json.Marshal(c) // it can be written
	return map[string]string{ContractAnnotation: string(text)}
}

// ContractOf returns the contract in the annotations of a workload, or false if a release without contracts, or a
// later one, has written them.
func ContractOf(annotations map[string]string) (contract Contract, has bool) {
	err := json.Unmarshal([]byte(annotations[ContractAnnotation]), &contract)
	return contract, err == nil && contract.Version == contractVersion
}

// Contract returns the contract of a resolved job.
func (j *Job) Contract() Contract { return j.contract }

// StateDirectory returns the directory for the coordinator's record of the run. It is in the pod if the role can
// write to no volume that outlives it.
func (r *Role) StateDirectory() string { return r.state }

// CheckpointRoot returns the directory of the checkpoints of all attempts, or "" for a role that writes none.
func (r *Role) CheckpointRoot() string { return r.checkpoints }

// mounted is a volume as a role mounts it.
type mounted struct {
	Folder
	// stored is the volume of the stack, or nil.
	stored   *Volume
	readOnly bool
	// kept is true if all pods of the job have the same folder there, on every node, and onNode if they have it on
	// the same node.
	kept, onNode bool
}

// resolveContracts resolves what the program decides about each job. The volumes of the stack are known by then.
func (s *Stack) resolveContracts() {
	for i, cluster := range s.NATSClusters()[:len(s.Jobs)] {
		s.Jobs[i].ResolveContract(s.Storage, cluster.Name)
	}
}

// ResolveContract resolves the contract, with the volumes of the stack and the name of the job's NATS. The record of
// the run is beside the checkpoints, or else in the first volume to which nn-workers can write.
func (j *Job) ResolveContract(volumes []Volume, nats string) {
	j.contract = Contract{Version: contractVersion, NATS: nats, Replicas: map[string]int{}, Partial: j.Partial()}
	for _, role := range j.Roles() {
		j.contract.Replicas[role.Name] = role.Replicas
		role.mounted = j.mountsOf(*role.Role, volumes)
	}
	nnWorkers, run := &j.NNWorker.Role, path.Join(j.Name, j.RunID)
	shared := ""
	if i := slices.IndexFunc(nnWorkers.mounted, func(m mounted) bool { return j.share(m.Path, false) }); i >= 0 {
		shared = nnWorkers.mounted[i].Path
	}
	for _, role := range j.Roles() {
		role.checkpoints, role.state = "", path.Join(StateDirectory, run)
		first := slices.IndexFunc(role.mounted, func(m mounted) bool { return m.kept && !m.readOnly })
		if at := role.at(shared); shared != "" && !at.readOnly && at.Folder == nnWorkers.at(shared).Folder {
			role.checkpoints, role.state = path.Join(shared, run), path.Join(shared, ".persia", run)
		} else if first >= 0 {
			role.state = path.Join(role.mounted[first].Path, ".persia", run)
		}
	}
	if j.Engine != EngineOperator {
		j.contract.Record, j.contract.Checkpoints = nnWorkers.at(nnWorkers.state).Folder, nnWorkers.at(nnWorkers.checkpoints).Folder
	}
	for _, e := range slices.Concat(j.Env, nnWorkers.Env) { // the last one counts
		if e.Name == EnvOwnCheckpoints {
			j.contract.Own = nnWorkers.at(e.Value).Folder
		}
	}
}

// mountsOf returns what a role mounts, in the order of its mounts. Claims and exports outlive pods. Inline volumes of
// CSI drivers and claims of ephemeral volumes go with their pod, and only one node can write to a disk of Compute
// Engine (Kubernetes, "Ephemeral Volumes" and "gcePersistentDisk"). Pods differ if a variable is in the folder's name.
func (j *Job) mountsOf(role Role, volumes []Volume) []mounted {
	var all []mounted
	add := func(at mounted, is func(Volume) bool) {
		if i := slices.IndexFunc(volumes, is); i >= 0 {
			at.stored, at.Claim = &volumes[i], volumes[i].Claim
		}
		all = append(all, at)
	}
	for _, m := range j.MountsOf(role) {
		at := mounted{Folder: Folder{Path: path.Clean(m.MountPath)}, readOnly: m.ReadOnly, kept: true}
		add(at, func(v Volume) bool { return v.Name == m.Volume })
	}
	for _, m := range role.VolumeMounts {
		at := mounted{Folder: Folder{Path: path.Clean(m.MountPath), Volume: m.Name, Below: m.SubPath + m.SubPathExpr}, readOnly: m.ReadOnly}
		for _, v := range j.Volumes {
			same := v.Name == m.Name && !strings.Contains(at.Below, "$(")
			switch claim := v.PersistentVolumeClaim; {
			case v.Name != m.Name:
			case claim != nil:
				at.Claim, at.Volume, at.kept, at.readOnly = claim.ClaimName, "", same, m.ReadOnly || claim.ReadOnly
			case v.NFS != nil:
				at.kept, at.readOnly = same, m.ReadOnly || v.NFS.ReadOnly
			case v.HostPath != nil:
				at.onNode = same
			}
		}
		add(at, func(v Volume) bool { return at.Claim != "" && v.Claim == at.Claim })
	}
	return all
}

// at returns the folder that a role has at a path, and how it mounts its volume.
func (r *Role) at(file string) mounted {
	found, longest := mounted{}, ""
	for _, m := range r.mounted {
		if below, is := strings.CutPrefix(file+"/", m.Path+"/"); is && len(m.Path) > len(longest) {
			found, longest = m, m.Path
			found.Below = path.Join(m.Below, below)
		}
	}
	found.Path = file
	return found
}

// share reports whether all that take part in a checkpoint have the same folder at a path: nn-workers and embedding
// parameter servers write to it, and embedding workers begin to load from it. It must outlive pods, or their nodes.
func (j *Job) share(file string, onNode bool) bool {
	for _, role := range []*Role{&j.NNWorker.Role, &j.EmbeddingParameterServer, &j.EmbeddingWorker} {
		m := role.at(file)
		if !m.kept && !(onNode && m.onNode) || m.Folder != j.NNWorker.at(file).Folder || m.readOnly && role != &j.EmbeddingWorker {
			return false
		}
	}
	return true
}

// The variables of replicas that more than one part of the program knows.
const (
	// EnvCheckpoints has the directory of the checkpoints of all attempts, and EnvOwnCheckpoints one that the job
	// chooses itself.
	EnvCheckpoints    = "PERSIA_CKPT_ROOT"
	EnvOwnCheckpoints = "PERSIA_CKPT_DIR"
	// EnvState has the directory of the run's record.
	EnvState = "PERSIA_STATE_DIR"
	// EnvNATS has the URL of the job's NATS, and EnvOlderNATS does in older releases of PERSIA.
	EnvNATS      = "PERSIA_NATS_URL"
	EnvOlderNATS = "PERSIA_NATS_IP"
)

// Names that the program writes, and that tools read.
const (
	// PodsAnnotation has a digest of the pods that an object asks for. In the state of a stack, the API server has
	// filled in the pods themselves, so only digests tell whether an update replaces them.
	PodsAnnotation = "persia.com/pods"
	// Completion and MetricsGateway are the label app.kubernetes.io/name of what a job runs besides its roles.
	Completion     = "completion"
	MetricsGateway = "metrics-gateway"
	// NeedsTitle, DetailsTitle and EffectsTitle begin what the program says of a stack's needs, and of what an update does.
	NeedsTitle   = "What the stack needs:"
	DetailsTitle = "In detail, and unchanged:"
	EffectsTitle = "What this update does to what runs:"
)
