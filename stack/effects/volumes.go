package effects

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/config/input"
	"persia/gcp"
)

// volumes says which data is deleted, and which no pod can see any more. Package storage warns of
// volumes that have another storage.
func volumes(before, after Stack) []string {
	var effects []string
	for _, name := range slices.Sorted(maps.Keys(before.Volumes)) {
		was := before.Volumes[name]
		is, stays := after.Volumes[name]
		at := storedFolder{was.Storage, was.Folder}
		switch {
		case stays && is.Storage == was.Storage && is.Folder != was.Folder:
			effects = append(effects, fmt.Sprintf("persia:storage: the volume %s showed %s, and shows %s to pods that start from now on. The data stays in %s; to see it again, restore only-dir in mountOptions",
				name, at, storedFolder{is.Storage, is.Folder}, at))
		case stays && is.Storage == was.Storage && is.Options != was.Options:
			if jobs := keep(before, after, was.Claim); len(jobs) > 0 {
				effects = append(effects, fmt.Sprintf("persia:storage: the volume %s has other mount options, and running pods of %s keep the old ones. To apply them, write suspend: true for the job, run `pulumi up`, remove suspend, and run it again",
					name, input.And(jobs)))
			}
		case stays:
		case was.DeletesData:
			effects = append(effects, fmt.Sprintf("persia:storage: the volume %s is no longer in the stack file, and its driver deletes %s with all data, because its reclaimPolicy is Delete. To keep the data, write the volume again with reclaimPolicy: Retain, run `pulumi up`, and remove it then",
				name, was.Storage))
		case !slices.Contains(folders(after), at):
			effects = append(effects, fmt.Sprintf("persia:storage: the volume %s is no longer in the stack file. Its data stays in %s, where no pod sees it; write the volume again to use it", name, at))
		}
	}
	return effects
}

// deleted returns the storage that drivers delete, because a volume with the reclaimPolicy Delete
// goes.
func deleted(before, after Stack) map[string]bool {
	gone := map[string]bool{}
	for name, was := range before.Volumes {
		if was.DeletesData && (after.Replaced != nil || after.Volumes[name].Storage != was.Storage) {
			gone[was.Storage] = true
		}
	}
	return gone
}

// unlessDeleted returns what happens to data that stays, or says that the update deletes it.
func (s Stack) unlessDeleted(at storedFolder, stays string) string {
	if s.deleted[at.storage] {
		return fmt.Sprintf("This deletes %s with all data, because the reclaimPolicy of its volume is Delete", at.storage)
	}
	return stays
}

// keep returns the running jobs with a pod that mounts a claim and that the update does not replace.
func keep(before, after Stack, claim string) []string {
	return slices.DeleteFunc(before.Running(), func(name string) bool {
		is, stays := after.Jobs[name]
		restarted := job{name: name, was: before.Jobs[name], is: is}.restarted()
		return !stays || !slices.ContainsFunc(slices.Collect(maps.Keys(is.Roles)), func(role string) bool {
			return is.Roles[role].Replicas > 0 && !slices.Contains(restarted, role) && slices.ContainsFunc(is.Roles[role].Pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
			})
		})
	})
}

// folders returns the directories that the volumes of a stack contain.
func folders(s Stack) []storedFolder {
	var all []storedFolder
	for _, volume := range s.Volumes {
		all = append(all, storedFolder{volume.Storage, volume.Folder})
	}
	return all
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
	default:
		return ""
	}
}

// storedFolder is a directory of a volume.
type storedFolder struct {
	// storage is a volume's storage, and folder a directory in it.
	storage, folder string
}

func (f storedFolder) String() string {
	if f.folder == "" {
		return f.storage
	}
	return "folder " + f.folder + " of " + f.storage
}

// checkpoints returns where the attempts of a job write their checkpoints. It is empty if the job
// has no such folder, or if PERSIA's operator creates its pods.
func (s Stack) checkpoints(job Job) storedFolder { return s.stored(job, "PERSIA_CKPT_ROOT") }

// stored returns the folder that a variable of the nn-workers names. It is empty if pods lose it.
func (s Stack) stored(job Job, variable string) storedFolder {
	nnWorkers := job.nnWorkers()
	root := nnWorkers.variable(variable)
	if root == "" {
		return storedFolder{}
	}
	var at storedFolder
	longest := -1
	for _, mount := range nnWorkers.container().VolumeMounts {
		below, ok := strings.CutPrefix(root, path.Clean(mount.MountPath)+"/")
		if !ok || len(mount.MountPath) <= longest {
			continue
		}
		longest = len(mount.MountPath)
		if at = s.mounted(nnWorkers, mount); at != (storedFolder{}) {
			at.folder = path.Join(at.folder, below)
		}
	}
	return at
}

// mounted returns the directory that a mount of a role shows, or "" if it is lost with the pod.
func (s Stack) mounted(role Role, mount corev1.VolumeMount) storedFolder {
	below := cmp.Or(mount.SubPathExpr, mount.SubPath)
	volume := role.volume(mount)
	if volume.PersistentVolumeClaim == nil {
		if at := inPod(volume.VolumeSource); at != "" {
			return storedFolder{at, below}
		}
		return storedFolder{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		if of := s.Volumes[name]; of.Claim == volume.PersistentVolumeClaim.ClaimName {
			return storedFolder{of.Storage, path.Join(of.Folder, below)}
		}
	}
	return storedFolder{"the claim " + volume.PersistentVolumeClaim.ClaimName, below}
}

// inPod returns a name for the storage of a volume without a claim, or "" if it is lost with the
// pod.
func inPod(source corev1.VolumeSource) string {
	switch {
	case source.NFS != nil:
		return "nfs://" + source.NFS.Server + source.NFS.Path
	case source.HostPath != nil:
		return directory + source.HostPath.Path + " of the node"
	case source.GCEPersistentDisk != nil:
		return "disk " + source.GCEPersistentDisk.PDName
	case source.CSI != nil && source.CSI.Driver == gcp.DriverGCSFuse:
		return "gs://" + source.CSI.VolumeAttributes["bucketName"]
	default:
		return ""
	}
}
