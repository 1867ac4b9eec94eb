package effects

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/infra/gke"
	"persia/workload/pedl"
)

// volumes says which data is deleted or lost, and which no pod can see any more. Package storage refuses volumes that
// have another storage.
func (u *update) volumes() {
	const path = "persia:storage"
	for _, name := range slices.Sorted(maps.Keys(u.before.volumes)) {
		was := u.before.volumes[name]
		is, stays := u.after.volumes[name]
		at, replaced := storedFolder{storage: was.storage, folder: was.folder}, u.after.Replaced != nil
		switch former := u.formerProject(); {
		case u.deletes(was.storage):
			u.say(path, "the volume %s goes%s. To keep the data, write the volume with reclaimPolicy: Retain and run `pulumi up` first",
				name, u.fate(at, ""))
		case replaced && former != "" && strings.HasPrefix(was.storage, "Filestore "):
			u.say(path, "the data of the volume %s stays in the %s of the project %s, and the new cluster does not have it",
				name, was.storage, former)
		case replaced && strings.HasPrefix(was.storage, directory):
			u.say(path, "the data of the volume %s is lost with the nodes, because it is in a %s", name, was.storage)
		case stays && !replaced && !slices.Equal(was.options, is.options) && len(u.before.Running()) > 0:
			u.say(path, "pods that this update does not restart keep the old mountOptions of the volume %s. To restart a job that mounts it, "+
				"run kubectl -n persia delete pods -l %s=JOB", name, config.JobLabel)
		case !stays && !u.after.has(at):
			u.say(path, "the volume %s is no longer in the stack file%s", name,
				u.fate(at, "Its data stays in %s, where no pod sees it; write the volume again to use it"))
		}
	}
}

// formerProject returns the project of a replaced cluster, or "" if it stays the same.
func (u *update) formerProject() string {
	if u.after.Replaced == nil {
		return ""
	}
	return first(u.after.Replaced.Settings, func(s gke.Setting) bool { return s.Path.String() == "persia:project" }).Was
}

// deletes reports whether a driver deletes storage, because a volume with the reclaimPolicy Delete goes.
func (u *update) deletes(storage string) bool {
	for name, was := range u.before.volumes {
		if was.storage == storage && was.deletesData && (u.after.Replaced != nil || u.after.volumes[name].storage != storage) {
			return true
		}
	}
	return false
}

// lost says what becomes of files that no pod finds again, or returns "" where pods find them.
func (u *update) lost(at storedFolder) string {
	was, had := u.before.pools[at.pool]
	is, stays := u.after.pools[at.pool]
	switch former := u.formerProject(); {
	case u.after.Replaced != nil && strings.HasPrefix(at.storage, directory), had && (!stays || losesNodes(was, is)):
		return "are lost with the nodes"
	case former != "" && strings.HasPrefix(at.storage, "Filestore "):
		return "stay in the project " + former
	}
	return ""
}

// fate returns a sentence about data that stays, with its place, or says that the update deletes the data.
func (u *update) fate(at storedFolder, stays string) string {
	switch why := u.lost(at); {
	case at == (storedFolder{}):
		return ""
	case why != "":
		return fmt.Sprintf(". The contents of %s %s", at, why)
	case u.deletes(at.storage):
		return fmt.Sprintf(". This deletes %s with all data, because the reclaimPolicy of its volume is Delete", at.storage)
	default:
		return ". " + fmt.Sprintf(stays, at)
	}
}

// pedl says which pods of PEDL end, and what becomes of the data of its database.
func (u *update) pedl() {
	var restart, gone []string
	var data strings.Builder
	for _, name := range slices.Sorted(maps.Keys(u.before.pedl)) {
		was := u.before.pedl[name]
		is, stays := u.after.pedl[name]
		at := u.before.data(was)
		switch {
		case u.after.Replaced != nil || !stays:
			gone = append(gone, name)
		case u.restarts(was, is):
			restart = append(restart, name)
		default:
			continue
		}
		data.WriteString(lostData(name, was))
		switch {
		case u.after.Replaced == nil && u.after.data(is) != at:
			data.WriteString(u.fate(at, "The data of "+name+" stays in %s, which it no longer uses; "+
				"to use it again, restore persia:pedl.postgresql"))
		case u.after.Replaced != nil && strings.HasPrefix(at.storage, "the claim "):
			fmt.Fprintf(&data, ". The data of %s does not move: its disk, of %s, stays in Google Cloud, "+
				"and %s begins empty in the new cluster. To keep the data, copy it first with pg_dump", name, at, name)
		}
	}
	var parts []string
	if len(restart) > 0 {
		parts = append(parts, "restarts the pods of "+strings.Join(restart, ", "))
	}
	if len(gone) > 0 {
		parts = append(parts, "deletes the pods of "+strings.Join(gone, ", "))
	}
	if len(parts) > 0 {
		u.say("persia:pedl", "this %s%s", strings.Join(parts, " and "), data.String()).Ends = slices.Concat(restart, gone)
	}
}

// restarts reports whether the pods of a workload of PEDL start again: because they differ, or because a ConfigMap or
// a Secret that they mount does. Pulumi learns its version, which is an annotation of the pods, only in the update.
func (u *update) restarts(was, is Workload) bool {
	return was.Digest != is.Digest || slices.ContainsFunc(is.Pod.Volumes, func(volume corev1.Volume) bool {
		of := ""
		switch {
		case volume.ConfigMap != nil:
			of = "ConfigMap " + volume.ConfigMap.Name
		case volume.Secret != nil:
			of = "Secret " + volume.Secret.SecretName
		}
		files, known := u.after.files[of]
		return known && u.before.files[of] != files
	})
}

// data returns the directory with the data of a workload of PEDL, or "" if the data is lost with the pod.
func (s State) data(workload Workload) storedFolder {
	mount := first(workload.container().VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == pedl.DataVolume })
	return s.folder(workload, shown(workload, mount, ""))
}

// lostData says that the data of a workload is lost with its pod, if it is.
func lostData(name string, workload Workload) string {
	if workload.volume(pedl.DataVolume).EmptyDir == nil {
		return ""
	}
	return fmt.Sprintf(". The data of %s is lost with its pod: to keep it, set persia:pedl.postgresql.persistence", name)
}

// has reports whether a volume of the stack has a directory.
func (s State) has(at storedFolder) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.volumes)), func(v volume) bool {
		return v.storage == at.storage && v.folder == at.folder
	})
}

// MountsBucket reports whether pods of a workload mount a bucket.
func (s State) MountsBucket(workload Workload) bool {
	return slices.ContainsFunc(workload.Pod.Volumes, func(volume corev1.Volume) bool {
		return strings.HasPrefix(s.folder(workload, shown(workload, corev1.VolumeMount{Name: volume.Name}, "")).storage, "gs://")
	})
}

// directory begins the name of storage that goes with its node.
const directory = "directory "

// storageOf names the storage of a volume as the stack file's sources do.
func storageOf(source corev1.PersistentVolumeSource) string {
	switch {
	case source.CSI != nil && source.CSI.Driver == gcp.DriverGCSFuse:
		return "gs://" + source.CSI.VolumeHandle
	case source.CSI != nil:
		if parts := strings.Split(source.CSI.VolumeHandle, "/"); len(parts) == 4 && parts[0] == "modeInstance" {
			return "Filestore instance " + parts[2] + " in " + parts[1]
		}
		return source.CSI.VolumeHandle
	case source.NFS != nil:
		return "nfs://" + source.NFS.Server + source.NFS.Path
	case source.HostPath != nil:
		return directory + source.HostPath.Path + " of the node"
	case source.ISCSI != nil:
		return "iSCSI target " + source.ISCSI.IQN
	case source.GCEPersistentDisk != nil:
		return "disk " + source.GCEPersistentDisk.PDName
	default:
		return ""
	}
}

// storedFolder is a directory of a volume.
type storedFolder struct {
	// storage is a volume's storage, and folder a directory in it.
	storage, folder string
	// pool is the node pool whose nodes have it, or "" if it outlives nodes.
	pool string
}

func (f storedFolder) String() string {
	if f.folder == "" {
		return f.storage
	}
	return "folder " + f.folder + " of " + f.storage
}

// checkpoints returns where the attempts of a job write their checkpoints. It is empty if the job has no such folder,
// or if PERSIA's operator creates its pods.
func (s State) checkpoints(of Training) storedFolder { return s.stored(of, of.contract().Checkpoints) }

// saved returns where the script of a job saves its checkpoints, as far as that is known.
func (s State) saved(training Training) storedFolder {
	if own := training.contract().Own; own.Path != "" {
		return s.stored(training, own)
	}
	return s.checkpoints(training)
}

// Record returns the bucket and the object with the record of a job's run. Both are "" if it is elsewhere.
func (s State) Record(job string) (bucket, object string) {
	at := s.stored(s.Trainings[job], s.Trainings[job].contract().Record)
	bucket, ok := strings.CutPrefix(at.storage, "gs://")
	if !ok {
		return "", ""
	}
	return bucket, path.Join(at.folder, "coordinator.json")
}

// stored returns where a folder of nn-workers is. It is empty if pods lose it.
func (s State) stored(training Training, folder config.Folder) storedFolder {
	at := s.folder(training.nnWorkers(), folder)
	if strings.HasPrefix(at.storage, directory) {
		at.pool = training.nnWorkers().Pod.NodeSelector[gcp.LabelNodePool]
	}
	return at
}

// folder returns where a folder of a workload is, or "" if it is lost with the pod.
func (s State) folder(workload Workload, folder config.Folder) storedFolder {
	storage := "the claim " + folder.Claim
	if folder.Claim == "" {
		of := workload.volume(folder.Volume)
		storage = storageOf(corev1.PersistentVolumeSource{NFS: of.NFS, HostPath: of.HostPath, GCEPersistentDisk: of.GCEPersistentDisk})
	}
	for _, name := range slices.Sorted(maps.Keys(s.volumes)) {
		if of := s.volumes[name]; folder.Claim != "" && of.claim == folder.Claim {
			return storedFolder{storage: of.storage, folder: path.Join(of.folder, folder.Below)}
		}
	}
	if storage == "" {
		return storedFolder{}
	}
	return storedFolder{storage: storage, folder: folder.Below}
}
