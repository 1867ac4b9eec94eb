package storage

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

// source is where a volume's data is, for the kubelet.
func source(args Args) corev1.PersistentVolumeSource {
	switch volume := args.Volume; {
	case volume.HostPath != nil:
		return hostPath(*volume.HostPath)
	case volume.Local != nil:
		return local(*volume.Local)
	case volume.NFS != nil:
		return nfs(*volume.NFS)
	case volume.ISCSI != nil:
		return iscsi(*volume.ISCSI)
	case volume.Filestore != nil:
		return filestoreShare(*volume.Filestore, args.Found)
	case volume.GCSFuse != nil:
		return gcsFuse(*volume.GCSFuse)
	case volume.PersistentDisk != nil:
		return persistentDisk(*volume.PersistentDisk)
	default:
		return csi(*volume.CSI)
	}
}

// affinity is which nodes a volume is reached from, or nil for all.
func affinity(volume config.Volume) *corev1.VolumeNodeAffinity {
	switch {
	case volume.Local != nil:
		return onNodes("kubernetes.io/hostname", volume.Local.Node)
	case volume.PersistentDisk != nil:
		return onNodes("topology.gke.io/zone", volume.PersistentDisk.Zones...)
	}
	return nil
}

func onNodes(label string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values},
			},
		}},
	}}
}

// hostPath is a directory of the node that a pod happens to stand on: it is one
// volume only for a stack of one node.
func hostPath(source config.HostPath) corev1.PersistentVolumeSource {
	create := corev1.HostPathDirectoryOrCreate
	return corev1.PersistentVolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: source.Path, Type: &create},
	}
}

func local(source config.Local) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: source.Path}}
}

func nfs(source config.NFS) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: source.Server, Path: source.Path}}
}

func iscsi(source config.ISCSI) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
		TargetPortal: source.TargetPortal,
		IQN:          source.IQN,
		Lun:          int32(source.LUN),
		FSType:       source.FSType,
	}}
}

func csi(source config.CSI) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver:           source.Driver,
		VolumeHandle:     source.VolumeHandle,
		FSType:           source.FSType,
		VolumeAttributes: source.Attributes,
	}}
}

// describe names what a volume is over.
func describe(volume config.Volume) string {
	switch {
	case volume.HostPath != nil:
		return "directory " + volume.HostPath.Path + " of the node"
	case volume.Local != nil:
		return "directory " + volume.Local.Path + " of the node " + volume.Local.Node
	case volume.NFS != nil:
		return "nfs://" + volume.NFS.Server + volume.NFS.Path
	case volume.ISCSI != nil:
		return fmt.Sprintf("iSCSI target %s, LUN %d", volume.ISCSI.IQN, volume.ISCSI.LUN)
	case volume.Filestore != nil:
		return fmt.Sprintf("Filestore instance %s in %s", volume.Filestore.Instance, volume.Filestore.Location)
	case volume.GCSFuse != nil:
		return "gs://" + volume.GCSFuse.Bucket
	case volume.PersistentDisk != nil:
		return volume.PersistentDisk.Handle()
	default:
		return volume.CSI.Driver + " " + volume.CSI.VolumeHandle
	}
}

// onDestroy says what becomes of a volume's storage.
func onDestroy(args Args) string {
	switch volume := args.Volume; {
	case volume.DeletesData():
		return "deleted, with all " + args.Contents
	case volume.Creates():
		return "kept: the next `pulumi up` of this stack takes it over"
	default:
		return "kept"
	}
}
