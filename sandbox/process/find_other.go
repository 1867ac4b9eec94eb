//go:build unix && !linux

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func find(pid int) (Process, error) {
	processes, err := ps("-p", strconv.Itoa(pid))
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if len(processes) == 0 {
		return Process{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return processes[0], nil
}

func list() ([]Process, error) {
	processes, err := ps("-ax")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return processes, nil
}

func ps(selection ...string) ([]Process, error) {
	cmd := exec.Command("ps", append(selection, "-ww", "-o", "pid=,state=,lstart=,command=")...)
	// The start time must be written alike whatever the user's language.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	output, err := cmd.Output()
	// ps exits with 1 when it finds no process.
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var processes []Process
	for line := range strings.Lines(string(output)) {
		if p, ok := parsePS(line); ok {
			processes = append(processes, p)
		}
	}
	return processes, nil
}

// parsePS reads "PID STATE Fri Nov 20 21:48:06 2026 COMMAND ARGS…".
func parsePS(line string) (Process, bool) {
	const before = 7 // fields before the command
	fields := strings.Fields(line)
	if len(fields) <= before || strings.HasPrefix(fields[1], "Z") {
		return Process{}, false
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return Process{}, false
	}
	return Process{
		PID:     pid,
		Start:   strings.Join(fields[2:before], " "),
		Command: strings.Join(fields[before:], " "),
	}, true
}
