package volumespec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Local is a directory or a mounted disk of one node. All pods that mount it run on
// that node.
type Local struct {
	outside

	// Path is the absolute path of the directory, which must exist.
	Path string `json:"path"`
	// Node is the name of the node, as `kubectl get nodes` lists it.
	Node string `json:"node"`
}

func (l *Local) Field() string  { return "local" }
func (l *Local) String() string { return "directory " + l.Path + " of the node " + l.Node }

func (l *Local) Identity() string {
	if l.Path == "" {
		return ""
	}
	return "local " + l.Node + ":" + clean(l.Path)
}

func (l *Local) traits() traits { return traits{access: corev1.ReadWriteOnce, directory: true} }

func (l *Local) check(p *check.Problems, path *field.Path, _ Context) {
	checkOwnDirectory(p, path.Child("path"), l.Path)
	if l.Node == "" {
		p.Required(path.Child("node"), "write the name of the node that has the directory, as `kubectl get nodes` lists it")
		return
	}
	p.Name(path.Child("node"), l.Node, validation.IsDNS1123Subdomain)
	if len(l.Node) > validation.LabelValueMaxLength {
		p.Invalid(path.Child("node"), l.Node, "must be at most %d characters, because the name is also a label of the node", validation.LabelValueMaxLength)
	}
}

func (l *Local) checkUsers(p *check.Problems, path *field.Path, users Users) {
	if users.nodes() > 1 && !users.OnePod {
		p.Invalid(path, l.Path, "is a directory of the node %s, and the roles that mount the volume run on up to %d nodes (pools %s); use gcsFuse, or put these roles on one pool with one node",
			l.Node, users.nodes(), strings.Join(users.names(), ", "))
	}
}
