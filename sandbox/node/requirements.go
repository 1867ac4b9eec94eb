package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// cniPlugins is where Debian and Ubuntu install the plugins of the container network.
const cniPlugins = "/usr/lib/cni"

// required lists the programs that a machine needs, and the packages of Debian and Ubuntu that contain them.
var required = []struct{ program, pkg string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"ip", "iproute2"},
	{"iptables", "iptables"},
	{"iptables-restore", "iptables"},
	{"ipset", "ipset"},
	{cniPlugins + "/ptp", "containernetworking-plugins"},
	{cniPlugins + "/host-local", "containernetworking-plugins"},
	{cniPlugins + "/loopback", "containernetworking-plugins"},
}

// Missing returns an error that says why this computer cannot run a node, and what to do about it, or nil if it can.
func Missing() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("a real node requires Linux on x86-64, and this is %s on %s: use a virtual machine", runtime.GOOS, runtime.GOARCH)
	}
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("only root can create a machine's mounts and network: run the command with sudo"))
	}
	for _, r := range required {
		if find(r.program) == "" {
			missing = append(missing, fmt.Errorf("%s is not installed: "+
				"install the package %s, as scripts/install-node.sh does on Debian and Ubuntu", r.program, r.pkg))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return fmt.Errorf("a real node cannot run here:\n%w", err)
	}
	return nil
}

// find returns the path of a program, or "". The PATH of root may lack /usr/sbin.
func find(program string) string {
	for _, candidate := range []string{program, filepath.Join("/usr/sbin", program)} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	return ""
}

// hostCommand returns the command of a program of the host.
func hostCommand(program string, arguments ...string) *exec.Cmd {
	if path := find(program); path != "" {
		program = path
	}
	return exec.Command(program, arguments...)
}
