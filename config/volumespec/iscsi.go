package volumespec

import (
	"fmt"
	"net"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// ISCSI is a block device behind an iSCSI portal. One node at a time can mount it.
type ISCSI struct {
	outside

	// TargetPortal is the address of the portal. Add the port unless it is 3260.
	TargetPortal string `json:"targetPortal"`
	// IQN is the name of the target, like iqn.2001-04.com.example:checkpoints.
	IQN string `json:"iqn"`
	// LUN is the logical unit number of the device on the target.
	LUN int `json:"lun"`
	// FSType is the file system.
	FSType string `json:"fsType,omitempty" default:"ext4"`
}

// iqnForm matches the names of targets that Kubernetes accepts (RFC 3720, 3.2.6.3).
var iqnForm = regexp.MustCompile(`^(iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(:.*)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{32})$`)

// mostLUN is the largest LUN that Kubernetes accepts.
const mostLUN = 255

func (s *ISCSI) Field() string  { return "iscsi" }
func (s *ISCSI) String() string { return fmt.Sprintf("iSCSI target %s, LUN %d", s.IQN, s.LUN) }

func (s *ISCSI) Identity() string {
	if s.IQN == "" {
		return ""
	}
	return fmt.Sprintf("iscsi %s lun %d", s.IQN, s.LUN)
}

func (s *ISCSI) traits() traits { return traits{access: corev1.ReadWriteOnce, block: true} }

func (s *ISCSI) check(p *check.Problems, path *field.Path, _ Context) {
	host, _, err := net.SplitHostPort(s.TargetPortal)
	if err != nil {
		host = s.TargetPortal
	}
	check.Host(p, path.Child("targetPortal"), host)
	switch {
	case s.IQN == "":
		p.Required(path.Child("iqn"), "write the name of the target, like iqn.2001-04.com.example:checkpoints")
	case !iqnForm.MatchString(s.IQN):
		p.Invalid(path.Child("iqn"), s.IQN, "must be the name of a target, like iqn.2001-04.com.example:checkpoints")
	}
	check.Range(p, path.Child("lun"), s.LUN, 0, mostLUN, "")
}
