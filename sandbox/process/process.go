package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Process is one process of this machine. PID and Start together name it for
// good, and survive being stored.
type Process struct {
	PID int `json:"pid"`
	// Start is when the process started, in the system's own notation.
	Start string `json:"start"`
	// Command is the command line, its arguments joined by single spaces.
	Command string `json:"command,omitempty"`
}

// Running tells whether p still runs. A process that has ended but was not
// waited for (a zombie) does not run.
func (p Process) Running() bool {
	current, err := Find(p.PID)
	return err == nil && current.Start == p.Start
}

// Find returns the running process with the id pid. The error is
// [fs.ErrNotExist] if there is none.
func Find(pid int) (Process, error) {
	if pid <= 0 {
		return Process{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return find(pid)
}

// running returns every running process that the user may see.
func running() ([]Process, error) {
	return list()
}

// Matching returns the running processes that match.
func Matching(match func(Process) bool) ([]Process, error) {
	all, err := running()
	if err != nil {
		return nil, err
	}
	var matching []Process
	for _, p := range all {
		if match(p) {
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

// await returns the processes that still run when all others have ended or ctx
// has.
func await(ctx context.Context, processes []Process) []Process {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		var running []Process
		for _, p := range processes {
			if p.Running() {
				running = append(running, p)
			}
		}
		processes = running
		if len(processes) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return processes
		case <-ticker.C:
		}
	}
}
