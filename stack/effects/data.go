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
	for _, name := range slices.Sorted(maps.Keys(u.before.volumes)) {
		was := u.before.volumes[name]
		is, stays := u.after.volumes[name]
		at, replaced := storedFolder{storage: was.storage, folder: was.folder}, u.after.Replaced != nil
		switch why := u.lost(at); {
		case u.deletes(was.storage):
			u.say("the volume %s goes%s: to keep the data, write the volume with reclaimPolicy: Retain and run `pulumi up` first",
				name, u.fate(at, ""))
		case replaced && why != "":
			u.say("the contents of the volume %s, in %s, %s, and the new cluster does not have them", name, at, why)
		case stays && !replaced && !slices.Equal(was.options, is.options) && len(u.before.Running()) > 0:
			u.say("pods that do not restart keep the old mountOptions of the volume %s: to restart a job that mounts it, "+
				"run kubectl -n persia delete pods -l %s=JOB", name, config.JobLabel)
		case !stays && !u.after.has(at):
			u.say("the volume %s is no longer in the stack file%s", name,
				u.fate(at, "its data stays in %s, where no pod sees it: to use it, write the volume again"))
		}
	}
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
	switch replaced := u.after.Replaced; {
	case replaced != nil && strings.HasPrefix(at.storage, directory), u.losesNodes(at.pool):
		return "are lost with the nodes"
	case replaced != nil && strings.HasPrefix(at.storage, "Filestore "):
		if project := first(replaced.Settings, func(s gke.Setting) bool { return s.Path.String() == "persia:project" }); project.Was != "" {
			return "stay in the project " + project.Was
		}
	}
	return ""
}

// fate returns a part of a sentence about data that stays, with its place, or says that the update deletes the data.
func (u *update) fate(at storedFolder, stays string) string {
	switch why := u.lost(at); {
	case at == (storedFolder{}):
		return ""
	case why != "":
		return fmt.Sprintf("; the contents of %s %s", at, why)
	case u.deletes(at.storage):
		return fmt.Sprintf("; %s is deleted with all data, because the reclaimPolicy of its volume is Delete", at.storage)
	default:
		return "; " + fmt.Sprintf(stays, at)
	}
}

// pedl says which pods of PEDL end, and what becomes of the data of its database.
func (u *update) pedl() {
	var ends, does []string
	for _, name := range slices.Sorted(maps.Keys(u.before.pedl)) {
		was := u.before.pedl[name]
		is, stays := u.after.pedl[name]
		at, what := u.before.data(was), " restarts"
		switch {
		case u.after.Replaced != nil || !stays:
			what = " ends"
		case !u.restarts(was, is):
			continue
		}
		switch what += lostData(was); {
		case u.after.Replaced == nil && u.after.data(is) != at:
			what += u.fate(at, "its data stays in %s, which it no longer uses: to use it again, restore persia:pedl.postgresql")
		case u.after.Replaced != nil && strings.HasPrefix(at.storage, "the claim "):
			what += fmt.Sprintf("; its disk, of %s, stays in Google Cloud, and it begins empty in the new cluster: "+
				"to keep the data, copy it first with pg_dump", at)
		}
		ends, does = append(ends, name), append(does, name+what)
	}
	if len(ends) > 0 {
		u.say("%s", strings.Join(does, "; ")).Ends = ends
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
func lostData(workload Workload) string {
	if workload.volume(pedl.DataVolume).EmptyDir == nil {
		return ""
	}
	return ", and its data is lost: to keep it, set persia:pedl.postgresql.persistence"
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
