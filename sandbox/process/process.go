// Package process finds, identifies and ends processes of this machine that outlive the program that started them.
//
// A process id alone names nothing: ids are used again. A [Process] therefore carries its start time as
// well, and nothing in this package signals a process with another start time.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// Lock takes the lock on the file at path, and waits for its holder until ctx ends. Lock creates the
// file if needed, and the holder may remove it. The lock ends with unlock, or with this process.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	ticker := time.NewTicker(5 * pollInterval)
	defer ticker.Stop()
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if file != nil {
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s is held by another process: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// tryLock returns no file when another process holds the lock.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return nil, nil
		}
		return nil, err
	}
	// The last holder may have removed the file after Lock opened it. A lock on a removed file
	// excludes no other process.
	locked, err := file.Stat()
	current, removed := os.Stat(path)
	if err != nil || removed != nil || !os.SameFile(locked, current) {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
