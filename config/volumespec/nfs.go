package volumespec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// NFS is a directory that an NFS server exports.
type NFS struct {
	outside

	// Server is the address or host name of the server.
	Server string `json:"server"`
	// Path is the absolute path of the exported directory.
	Path string `json:"path"`
}

func (n *NFS) Field() string  { return "nfs" }
func (n *NFS) String() string { return "nfs://" + n.Server + n.Path }

func (n *NFS) Identity() string {
	if n.Server == "" {
		return ""
	}
	return "nfs " + n.Server + ":" + clean(n.Path)
}

func (n *NFS) traits() traits { return traits{access: corev1.ReadWriteMany} }

func (n *NFS) check(p *check.Problems, path *field.Path, _ Context) {
	check.Host(p, path.Child("server"), n.Server)
	if n.Path != "/" {
		check.Directory(p, path.Child("path"), n.Path)
	}
}
