package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"persia/sandbox/process"
)

// usage is what a process took: processor time, and the most memory, in bytes.
type usage struct {
	cpu  time.Duration
	peak int64
}

// watchEngine looks at `pulumi up` as it runs, until the function that it returns is
// called, which says what it took.
func watchEngine(t testing.TB) func() usage {
	t.Helper()
	stop, done := make(chan struct{}), make(chan usage)
	go func() {
		var last usage
		for ticker := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-stop:
				ticker.Stop()
				done <- last
				return
			case <-ticker.C:
				last = engineUsage(last)
			}
		}
	}()
	return func() usage {
		close(stop)
		return <-done
	}
}

// engineUsage is what `pulumi up` has taken so far, or last if it does not run.
func engineUsage(last usage) usage {
	running, err := process.Matching(func(p process.Process) bool {
		return strings.HasPrefix(p.Command, tools.Pulumi+" ") && strings.Contains(p.Command, " up ")
	})
	if err != nil || len(running) == 0 {
		return last
	}
	found, err := procfs.NewProc(running[0].PID)
	if err != nil {
		return last
	}
	stat, err := found.Stat()
	if err != nil {
		return last
	}
	status, err := found.NewStatus()
	if err != nil || status.VmHWM == 0 {
		return last
	}
	return usage{cpu: time.Duration(stat.CPUTime() * float64(time.Second)), peak: int64(status.VmHWM)}
}
