package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"persia/sandbox/files"
	"persia/sandbox/images"
)

// run runs a machine until ctx ends or the machine does. It leaves nothing behind but the machine's disk.
func (m machine) run(ctx context.Context, logger *slog.Logger) error {
	// A previous run may have been killed.
	if err := cleanUp(m.Dir); err != nil {
		return err
	}
	defer func() {
		if err := cleanUp(m.Dir); err != nil {
			logger.Error("clean up", "error", err)
		}
	}()
	if err := m.prepare(); err != nil {
		return err
	}
	first, err := m.create()
	if err != nil {
		return err
	}
	defer first.end()
	relays, err := m.connect(ctx, first.Pid)
	defer closeAll(relays)
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	if err := runc("start", nameOf(m.Dir)); err != nil {
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

// prepare creates the machine's root directory with the files that its programs read, and the bundle for runc.
func (m machine) prepare() error {
	if err := m.makeRoot(); err != nil {
		return err
	}
	if err := m.writeConfigs(); err != nil {
		return err
	}
	if err := m.writeCredentials(m.node); err != nil {
		return err
	}
	pause := images.Image{
		Names: []string{pauseImage}, Layers: []images.Layer{{"pause": images.Program(m.Tools.Path("pause"))}},
		Entrypoint: []string{"/pause"}, User: "65535:65535",
	}
	if err := pause.Write(m.path(configDir, pauseArchive)); err != nil {
		return fmt.Errorf("image %s: %w", pauseImage, err)
	}
	spec, err := m.spec(m.node)
	if err != nil {
		return err
	}
	return files.WriteJSON(filepath.Join(m.Dir, "config.json"), spec, 0o600)
}

// firstProcess is the first process of a machine.
type firstProcess struct {
	*os.Process
	// lifeline is the write end of a pipe, which the kernel closes when this process
	// ends, however it does. [Boot] reads from it, and then ends.
	lifeline *os.File
}

// create creates the machine with a first process that waits for runc start.
func (o Options) create() (*firstProcess, error) {
	// runc ends once it has created the machine. The first process then becomes a child of this process.
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
	text, err := os.ReadFile(pidFile)
	pid, invalid := strconv.Atoi(string(text))
	if err := errors.Join(err, invalid); err != nil {
		return nil, errors.Join(err, lifeline.Close())
	}
	process, err := os.FindProcess(pid)
	return &firstProcess{process, lifeline}, err
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

// CleanUp removes the machines of the nodes in dir, as far as they still exist, but not their disks.
func CleanUp(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed []error
	for _, entry := range entries {
		if entry.IsDir() {
			failed = append(failed, cleanUp(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(failed...)
}

// cleanUp removes the machine in dir, if it still exists, but not its disk.
func cleanUp(dir string) error {
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
