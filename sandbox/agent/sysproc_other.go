//go:build unix && !linux

package agent

import "syscall"

// lastingParent has no equivalent here: programs that a killed agent leaves
// behind are ended by the next one.
func lastingParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }
