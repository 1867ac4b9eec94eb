package process

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// bootID tells apart the start times of two boots, which count from the boot.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

func find(pid int) (Process, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		// The file is gone, or its process ended between open and read (ESRCH).
		return Process{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	// The second field, the name in parentheses, may itself contain spaces and
	// parentheses; the third, the state, follows the last one.
	_, after, ok := cutLast(string(stat), ")")
	fields := strings.Fields(after)
	if !ok || len(fields) < 20 {
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

func list() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var processes []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process may end while listing, and other users' processes may be hidden.
		if p, err := find(pid); err == nil {
			processes = append(processes, p)
		}
	}
	return processes, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
