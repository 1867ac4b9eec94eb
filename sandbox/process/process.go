package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Process is one process of this machine. PID and Start together name it for good.
type Process struct {
	PID int
	// Start is when the process started, in clock ticks since the boot.
	Start uint64
	// Command is the command line, its arguments joined by single spaces.
	Command string
}

// Running tells whether p still runs. A process that has ended but was not waited for (a zombie) does not run.
func (p Process) Running() bool {
	current, err := Find(p.PID)
	return err == nil && current.Start == p.Start
}

// Find returns the running process with the id pid. The error is [fs.ErrNotExist] if there is none.
func Find(pid int) (Process, error) {
	var stat procfs.ProcStat
	var command []string
	proc, err := procfs.NewProc(pid)
	if err == nil {
		stat, err = proc.Stat()
	}
	if err == nil {
		command, err = proc.CmdLine()
	}
	if err != nil || stat.State == "Z" || stat.State == "X" {
		// There is none, or it has ended, maybe between two reads.
		return Process{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return Process{pid, stat.Starttime, strings.Join(command, " ")}, nil
}

// Matching returns the running processes that match. A process may end meanwhile, and other users'
// processes may be hidden.
func Matching(match func(Process) bool) ([]Process, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var matching []Process
	for _, proc := range all {
		if p, err := Find(proc.PID); err == nil && match(p) {
			matching = append(matching, p)
		}
	}
	return matching, nil
}

const (
	pollInterval = 20 * time.Millisecond
	// killTimeout is how long the kernel may take to end a killed process.
	killTimeout = 10 * time.Second
)

// Stop asks the processes to end (SIGTERM) and kills those that still run
// after grace, or when ctx ends. It returns when none of them runs.
func Stop(ctx context.Context, grace time.Duration, processes ...Process) error {
	if err := signal(syscall.SIGTERM, processes); err != nil {
		return err
	}
	graceful, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if processes = await(graceful, processes); len(processes) == 0 {
		return nil
	}
	if err := signal(syscall.SIGKILL, processes); err != nil {
		return err
	}
	killed, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	if processes = await(killed, processes); len(processes) != 0 {
		return fmt.Errorf("process %d (%s): still runs after SIGKILL", processes[0].PID, processes[0].Command)
	}
	return nil
}

func signal(sig syscall.Signal, processes []Process) error {
	var errs []error
	for _, p := range processes {
		if !p.Running() {
			continue
		}
		if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("process %d (%s): %v: %w", p.PID, p.Command, sig, err))
		}
	}
	return errors.Join(errs...)
}

// await returns the processes that still run when all others have ended or ctx has.
func await(ctx context.Context, processes []Process) []Process {
	_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		processes = slices.DeleteFunc(slices.Clone(processes), func(p Process) bool { return !p.Running() })
		return len(processes) == 0, nil
	})
	return processes
}
