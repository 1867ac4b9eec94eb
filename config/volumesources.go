package config

import (
	"fmt"
	"net"
	"path"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// sourceKind is one kind of source: how it is written, and what is right for it.
type sourceKind struct {
	field string
	given func(*Volume) bool
	check func(*validator, *field.Path, *Volume)
}

var sourceKinds = []sourceKind{
	{"hostPath", func(v *Volume) bool { return v.HostPath != nil }, (*validator).hostPath},
	{"local", func(v *Volume) bool { return v.Local != nil }, (*validator).local},
	{"nfs", func(v *Volume) bool { return v.NFS != nil }, (*validator).nfs},
	{"iscsi", func(v *Volume) bool { return v.ISCSI != nil }, (*validator).iscsi},
	{"filestore", func(v *Volume) bool { return v.Filestore != nil }, (*validator).filestore},
	{"gcsFuse", func(v *Volume) bool { return v.GCSFuse != nil }, (*validator).gcsFuse},
	{"persistentDisk", func(v *Volume) bool { return v.PersistentDisk != nil }, (*validator).persistentDisk},
	{"csi", func(v *Volume) bool { return v.CSI != nil }, (*validator).csi},
}

// source checks that a volume has exactly one source, and checks that.
func (v *validator) source(path *field.Path, volume *Volume) {
	var first *sourceKind
	var all []string
	for i := range sourceKinds {
		kind := &sourceKinds[i]
		all = append(all, kind.field)
		switch {
		case !kind.given(volume):
		case first != nil:
			v.forbidden(path.Child(kind.field), "%s is given already; write exactly one of %s and %s", first.field, first.field, kind.field)
			return
		default:
			first = kind
		}
	}
	if first == nil {
		v.required(path.Child("gcsFuse"), "write where the data is: gcsFuse with a bucket, or one of %s", or(slices.DeleteFunc(all, func(s string) bool { return s == "gcsFuse" })))
		return
	}
	first.check(v, path.Child(first.field), volume)
}

// source tells what a volume is over, to compare it with others.
func (v *Volume) source() string {
	switch {
	case v.HostPath != nil && v.HostPath.Path != "":
		return "hostPath " + path.Clean(v.HostPath.Path)
	case v.Local != nil && v.Local.Path != "":
		return "local " + v.Local.Node + ":" + path.Clean(v.Local.Path)
	case v.NFS != nil && v.NFS.Server != "":
		return "nfs " + v.NFS.Server + ":" + path.Clean(v.NFS.Path)
	case v.ISCSI != nil && v.ISCSI.IQN != "":
		return fmt.Sprintf("iscsi %s lun %d", v.ISCSI.IQN, v.ISCSI.LUN)
	case v.Filestore != nil && v.Filestore.Instance != "":
		return "csi " + gcp.DriverFilestore + " " + v.Filestore.Handle()
	case v.GCSFuse != nil && v.GCSFuse.Bucket != "":
		return "csi " + gcp.DriverGCSFuse + " " + v.GCSFuse.Bucket
	case v.PersistentDisk != nil && v.PersistentDisk.Disk != "":
		return "csi " + gcp.DriverPersistentDisk + " " + v.PersistentDisk.Handle()
	case v.CSI != nil && v.CSI.VolumeHandle != "":
		return "csi " + v.CSI.Driver + " " + v.CSI.VolumeHandle
	}
	return ""
}

func (v *validator) hostPath(path *field.Path, volume *Volume) {
	v.directory(path.Child("path"), volume.HostPath.Path)
}

func (v *validator) local(path *field.Path, volume *Volume) {
	v.directory(path.Child("path"), volume.Local.Path)
	if volume.Local.Node == "" {
		v.required(path.Child("node"), "write the name of the node that has the directory, as `kubectl get nodes` lists it")
		return
	}
	v.name(path.Child("node"), volume.Local.Node, validation.IsDNS1123Subdomain)
}

func (v *validator) nfs(path *field.Path, volume *Volume) {
	v.host(path.Child("server"), volume.NFS.Server)
	if volume.NFS.Path != "/" {
		v.directory(path.Child("path"), volume.NFS.Path)
	}
}

// iqnForm are the names of targets that Kubernetes takes (RFC 3720, 3.2.6.3).
var iqnForm = regexp.MustCompile(`^(iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(:.*)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{32})$`)

// mostLUN is what Kubernetes takes.
const mostLUN = 255

func (v *validator) iscsi(path *field.Path, volume *Volume) {
	source := volume.ISCSI
	host, _, err := net.SplitHostPort(source.TargetPortal)
	if err != nil {
		host = source.TargetPortal
	}
	v.host(path.Child("targetPortal"), host)
	switch {
	case source.IQN == "":
		v.required(path.Child("iqn"), "write the target's name, like iqn.2001-04.com.example:checkpoints")
	case !iqnForm.MatchString(source.IQN):
		v.invalid(path.Child("iqn"), source.IQN, "must be the name of a target, like iqn.2001-04.com.example:checkpoints")
	}
	if source.LUN < 0 || source.LUN > mostLUN {
		v.invalid(path.Child("lun"), source.LUN, "must be from 0 to %d", mostLUN)
	}
}

func (v *validator) csi(path *field.Path, volume *Volume) {
	source := volume.CSI
	v.name(path.Child("driver"), source.Driver, validation.IsDNS1123Subdomain)
	if source.VolumeHandle == "" {
		v.required(path.Child("volumeHandle"), "write the volume's name at the driver")
	}
	typed := map[string]string{gcp.DriverFilestore: "filestore", gcp.DriverGCSFuse: "gcsFuse", gcp.DriverPersistentDisk: "persistentDisk"}
	if source, ok := typed[source.Driver]; ok {
		v.invalid(path.Child("driver"), volume.CSI.Driver, "has a source of its own, which knows its rules; write %s", source)
	}
}
