package e2e

import (
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"persia/sandbox/process"
)

// usage is the processor time of a process, and its largest memory in bytes.
type usage struct {
	cpu  time.Duration
	peak int64
}

// The processes of `pulumi up` in the sandbox. The program and the providers are parts of the process
// that calls the engine, which is this one.
const (
	engineProcess  = "engine"
	stateProcess   = "state"
	programProcess = "program"
)

// watchUp observes `pulumi up` as it runs, until the returned function is called, which returns the usage of
// each of its processes.
func watchUp(t testing.TB) func() map[string]usage {
	t.Helper()
	resetPeak(t)
	stop, done := make(chan struct{}), make(chan map[string]usage)
	go func() {
		took := map[string]usage{}
		for ticker := time.NewTicker(50 * time.Millisecond); ; {
			maps.Copy(took, usages())
			select {
			case <-stop:
				ticker.Stop()
				done <- took
				return
			case <-ticker.C:
			}
		}
	}()
	return func() map[string]usage {
		close(stop)
		return <-done
	}
}

// resetPeak makes the kernel forget the most memory that this process has used.
func resetPeak(t testing.TB) {
	t.Helper()
	debug.FreeOSMemory()
	file, err := os.OpenFile("/proc/self/clear_refs", os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("5")
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// usages returns the usage of the processes that run now.
func usages() map[string]usage {
	took := map[string]usage{}
	running, err := process.Matching(func(p process.Process) bool { return processOfUp(p) != "" })
	if err != nil {
		return took
	}
	for _, p := range running {
		found, err := procfs.NewProc(p.PID)
		if err != nil {
			continue
		}
		stat, err := found.Stat()
		if err != nil {
			continue
		}
		if status, err := found.NewStatus(); err == nil && status.VmHWM != 0 {
			took[processOfUp(p)] = usage{cpu: time.Duration(stat.CPUTime() * float64(time.Second)), peak: int64(status.VmHWM)}
		}
	}
	return took
}

func processOfUp(p process.Process) string {
	switch {
	case p.PID == os.Getpid():
		return programProcess
	case strings.HasPrefix(p.Command, tools.Pulumi+" ") && strings.Contains(p.Command, " up "):
		return engineProcess
	case strings.HasPrefix(p.Command, tools.PulumiState+" "):
		return stateProcess
	}
	return ""
}
