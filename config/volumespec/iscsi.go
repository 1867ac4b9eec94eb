package volumespec

import (
	"fmt"
	"net"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
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

// Portal returns the host and the port of the portal.
func (s *ISCSI) Portal() (host, port string) {
	if host, port, err := net.SplitHostPort(s.TargetPortal); err == nil {
		return host, port
	}
	return s.TargetPortal, "3260"
}

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
	portal := path.Child("targetPortal")
	host, port := s.Portal()
	if number, err := strconv.Atoi(port); err != nil || len(validation.IsValidPortNum(number)) > 0 {
		p.Invalid(portal, s.TargetPortal, "must have a port from 1 to 65535; omit it for 3260")
	}
	check.Host(p, portal, host)
	check.OneOf(p, path.Child("fsType"), s.FSType, gcp.FileSystems...)
	switch {
	case s.IQN == "":
		p.Required(path.Child("iqn"), "write the name of the target, like iqn.2001-04.com.example:checkpoints")
	case !iqnForm.MatchString(s.IQN):
		p.Invalid(path.Child("iqn"), s.IQN, "must be the name of a target, like iqn.2001-04.com.example:checkpoints")
	}
	check.Range(p, path.Child("lun"), s.LUN, 0, mostLUN, "")
}

// checkUsers refuses nodes without an iSCSI initiator.
func (s *ISCSI) checkUsers(p *check.Problems, path *field.Path, users Users) {
	for _, pool := range users.Pools {
		if pool.COS {
			p.Invalid(path, s.TargetPortal, "cannot be mounted on the nodes of pool %s, because Container-Optimized OS has no iSCSI initiator; give the pool imageType: UBUNTU_CONTAINERD, or use persistentDisk", pool.Name)
		}
	}
}
