package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one process of this machine. PID and Start together name it for good.
type Process struct {
	PID int
	// Start is when the process started, in the system's own notation.
	Start string
	// Command is the command line, its arguments joined by single spaces.
	Command string
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
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		// There is none, or it ended between open and read (ESRCH).
		return Process{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	// The second field, the name in parentheses, may itself contain spaces and
	// parentheses; the third, the state, follows the last one.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("process %d: unexpected %s/stat: %q", pid, dir, stat)
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return Process{}, fmt.Errorf("process %d has ended: %w", pid, fs.ErrNotExist)
	}
	command, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return Process{
		PID:     pid,
		Start:   bootID() + "/" + fields[19],
		Command: strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " "),
	}, nil
}

// bootID tells apart the start times of two boots, which count from the boot.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// Matching returns the running processes that match. A process may end meanwhile, and other users'
// processes may be hidden.
func Matching(match func(Process) bool) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var matching []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := Find(pid); err == nil && match(p) {
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
		processes = slices.DeleteFunc(slices.Clone(processes), func(p Process) bool { return !p.Running() })
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
