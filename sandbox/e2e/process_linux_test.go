package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"

	"persia/internal/testkit"
	"persia/sandbox/process"
)

// sandboxProcesses returns the processes with a path of dir in their command line.
func sandboxProcesses(t testing.TB, dir string) []process.Process {
	t.Helper()
	processes := testkit.Must(process.Matching(func(p process.Process) bool { return strings.Contains(p.Command, dir) }))(t)
	return processes
}

// killAll kills the processes that have a path of dir in their command line, and waits until they are gone.
func killAll(t testing.TB, dir string) {
	t.Helper()
	for processes := sandboxProcesses(t, dir); len(processes) > 0; processes = sandboxProcesses(t, dir) {
		for _, p := range processes {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

// assertListensOnLoopbackOnly looks at the listening sockets of all processes of the sandbox.
func assertListensOnLoopbackOnly(t testing.TB, dir string) {
	t.Helper()
	listening := listeningSockets(t)
	found := 0
	for _, p := range sandboxProcesses(t, dir) {
		descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID))
		for _, descriptor := range descriptors {
			target, _ := os.Readlink(descriptor)
			if address, ok := listening[target]; ok {
				found++
				assert.True(t, address.IsLoopback(), "%s listens on %s", p.Command, address)
			}
		}
	}
	assert.GreaterOrEqual(t, found, 5, "the components of a control plane listen")
}

// listeningSockets returns the local addresses of all listening TCP sockets, by what a descriptor calls each.
func listeningSockets(t testing.TB) map[string]net.IP {
	t.Helper()
	const listen = 0x0A
	kernel := testkit.Must(procfs.NewDefaultFS())(t)
	sockets := map[string]net.IP{}
	for _, read := range []func() (procfs.NetTCP, error){kernel.NetTCP, kernel.NetTCP6} {
		for _, line := range testkit.Must(read())(t) {
			if line.St == listen {
				sockets[fmt.Sprintf("socket:[%d]", line.Inode)] = line.LocalAddr
			}
		}
	}
	return sockets
}
