package agent

import "syscall"

// lastingParent makes the kernel kill a process when the thread that started it
// ends, so that a killed agent leaves no program behind.
func lastingParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}
