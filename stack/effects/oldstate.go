package effects

import (
	"cmp"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

// oldContract returns what the pods of nn-workers tell of the contract of their job, in a state that a release
// without contracts has written.
func oldContract(nnWorkers Workload) config.Contract {
	folder := func(variable string) config.Folder { return folderAt(nnWorkers, nnWorkers.variable(variable).Value) }
	url := nnWorkers.variable(config.EnvNATS)
	_, host, _ := strings.Cut(url.Value, "://")
	nats, _, _ := strings.Cut(host, ".")
	if url.ValueFrom != nil && url.ValueFrom.SecretKeyRef != nil {
		nats = strings.TrimSuffix(url.ValueFrom.SecretKeyRef.Name, "-client")
	}
	return config.Contract{
		NATS: nats, Checkpoints: folder(config.EnvCheckpoints), Own: folder(config.EnvOwnCheckpoints), Record: folder(config.EnvState),
	}
}

// folderAt returns the folder that a workload has at a path, which may be "".
func folderAt(workload Workload, file string) config.Folder {
	at, longest := config.Folder{}, ""
	for _, mount := range workload.container().VolumeMounts {
		if below, is := strings.CutPrefix(file+"/", path.Clean(mount.MountPath)+"/"); is && len(mount.MountPath) > len(longest) {
			at, longest = shown(workload, mount, below), mount.MountPath
		}
	}
	at.Path = file
	return at
}

// shown returns what a mount of a workload shows at a path below it.
func shown(workload Workload, mount corev1.VolumeMount, below string) config.Folder {
	at := config.Folder{Volume: mount.Name, Below: path.Join(cmp.Or(mount.SubPathExpr, mount.SubPath), below)}
	if claim := workload.volume(mount.Name).PersistentVolumeClaim; claim != nil {
		at.Claim, at.Volume = claim.ClaimName, ""
	}
	return at
}
