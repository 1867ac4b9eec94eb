package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"persia/sandbox/tunnel"
)

// runMachine runs a machine for a node until ctx ends or the machine does. It leaves
// nothing behind but the machine's disk.
func runMachine(ctx context.Context, o Options, node string, logger *slog.Logger) error {
	// A previous run may have been killed.
	if err := CleanUp(o.Dir); err != nil {
		return err
	}
	defer func() {
		if err := CleanUp(o.Dir); err != nil {
			logger.Error("clean up", "error", err)
		}
	}()
	if err := o.prepare(node); err != nil {
		return err
	}
	first, err := o.create()
	if err != nil {
		return err
	}
	defer first.end()
	relays, err := o.connect(ctx, first.Pid)
	defer closeAll(relays)
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	closeTunnel, err := tunnel.Serve(Tunnel(o.Dir), func(ctx context.Context, address string) (net.Conn, error) {
		return dialIn(ctx, first.Pid, address)
	})
	if err != nil {
		return fmt.Errorf("connect to the machine's pods: %w", err)
	}
	defer closeTunnel()
	if err := runc("start", nameOf(o.Dir)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = first.Kill() })
	defer stop()
	state, err := first.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(fmt.Errorf("the machine has stopped: %v", state), err)
}

// prepare creates the machine's root directory with the files that its programs read,
// and the bundle for runc.
func (o Options) prepare(node string) error {
	if err := o.makeRoot(); err != nil {
		return err
	}
	if err := o.writeConfigs(); err != nil {
		return err
	}
	if err := o.writeCredentials(node); err != nil {
		return err
	}
	if err := writePauseImage(o.path(configDir, pauseArchive), o.Tools.Pause); err != nil {
		return fmt.Errorf("image %s: %w", pauseImage, err)
	}
	spec, err := o.spec(node)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Dir, "config.json"), text, 0o600)
}

// firstProcess is the first process of a machine.
type firstProcess struct {
	*os.Process
	// lifeline is the write end of a pipe, which the kernel closes when this process
	// ends, however it does. The machine's first process reads from it, and then ends.
	lifeline *os.File
}

// create creates the machine with a first process that waits for runc start.
func (o Options) create() (*firstProcess, error) {
	// runc ends once it has created the machine. The first process then becomes a child
	// of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("adopt the machine's first process: %w", err)
	}
	read, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = read.Close() }()
	pidFile := filepath.Join(o.Dir, "pid")
	cmd := runcCommand("create", "--bundle", o.Dir, "--pid-file", pidFile, "--preserve-fds", "1", nameOf(o.Dir))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{read}
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("runc create: %w", err), lifeline.Close())
	}
	pid, err := readPID(pidFile)
	if err != nil {
		return nil, errors.Join(err, lifeline.Close())
	}
	process, err := os.FindProcess(pid)
	return &firstProcess{process, lifeline}, err
}

func readPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// end kills the process, and with it all others of the machine, unless it has ended.
func (p *firstProcess) end() {
	_ = p.Kill()
	_, _ = p.Wait()
	_ = p.lifeline.Close()
}

// runcState is the folder of runc's records.
const runcState = "/run/runc"

func runcCommand(arguments ...string) *exec.Cmd {
	return hostCommand("runc", append([]string{"--root", runcState}, arguments...)...)
}

// runc runs a command of runc that prints nothing unless it fails.
func runc(arguments ...string) error {
	output, err := runcCommand(arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("runc %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// nameOf returns the name of the machine in dir, for runc and for its control group.
func nameOf(dir string) string { return "persia-" + linkOf(dir).name }

// CleanUp removes the machine in dir, if it still exists, but not its disk.
func CleanUp(dir string) error {
	if err := runc("delete", "--force", nameOf(dir)); err != nil {
		return err
	}
	// The kernel removes the link some time after the machine's network namespace.
	if link := linkOf(dir).name; exists(link) {
		if err := ip("link del " + link); err != nil && exists(link) {
			return err
		}
	}
	return nil
}

// Remains returns what exists of the machine in dir: the host's end of its link, its
// control group in each hierarchy, and runc's record of it.
func Remains(dir string) ([]string, error) {
	var remains []string
	for _, pattern := range []string{
		filepath.Join("/sys/class/net", linkOf(dir).name),
		filepath.Join("/sys/fs/cgroup", nameOf(dir)),
		filepath.Join("/sys/fs/cgroup/*", nameOf(dir)),
		filepath.Join(runcState, nameOf(dir)),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		remains = append(remains, found...)
	}
	return remains, nil
}

// PeakMemory returns the most memory, in bytes, that the machine in dir has used since it
// was started, including its pods and its page cache.
func PeakMemory(dir string) (int64, error) {
	for _, file := range []string{
		filepath.Join("/sys/fs/cgroup", nameOf(dir), "memory.peak"),
		filepath.Join("/sys/fs/cgroup/memory", nameOf(dir), "memory.max_usage_in_bytes"),
	} {
		value, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(value)), 10, 64)
	}
	return 0, fmt.Errorf("the node in %s has no control group %s", dir, nameOf(dir))
}
