package background

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"persia/sandbox/process"
)

const (
	// grace is how long a program may take to end by itself, and to end its own.
	grace = 10 * time.Second
	// settle is how long a new program is watched: one that cannot work, for a
	// wrong argument say, ends at once.
	settle = 300 * time.Millisecond
)

// record describes a program in the background.
type record struct {
	// Starting says that Process is not known yet: who is killed right after it has
	// started the program does not write it down any more.
	Starting   bool            `json:"starting,omitempty"`
	Process    process.Process `json:"process"`
	Executable string          `json:"executable"`
	Args       []string        `json:"args"`
	// Digest is the digest of the executable.
	Digest string `json:"digest"`
	// Inputs are [Program.Inputs].
	Inputs string `json:"inputs,omitempty"`
}

// Program is a program to run.
type Program struct {
	Executable string
	Args       []string
	// Inputs identifies the files that the program reads only when it starts. Start restarts a
	// program with other Inputs.
	Inputs string
}

// Start runs an executable with arguments that say all that it is to do; see
// [Program.Start].
func Start(ctx context.Context, dir, executable string, args ...string) error {
	return Program{Executable: executable, Args: args}.Start(ctx, dir)
}

// Start runs the program as a process that outlives this one. Its output is appended to
// [Log]. If one runs in dir already it stays, unless the executable's content, the
// arguments or the inputs have changed; then it is replaced.
func (p Program) Start(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(dir), err)
	}
	unlock, err := process.Lock(ctx, lockFile(dir))
	if err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(dir), err)
	}
	defer unlock()
	digest, err := digestOf(p.Executable)
	if err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(dir), err)
	}
	last, err := readRecord(dir)
	if err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(dir), err)
	}
	running, err := last.processes()
	if err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(dir), err)
	}
	same := !last.Starting && last.Digest == digest && last.Inputs == p.Inputs && slices.Equal(last.Args, p.Args)
	if same && len(running) > 0 {
		return nil
	}
	if err := process.Stop(ctx, grace, running...); err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Base(dir), err)
	}
	if err := spawn(dir, record{Executable: p.Executable, Args: p.Args, Digest: digest, Inputs: p.Inputs}); err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// Stop ends the program of dir and removes its record, but not its log. It does nothing if there is
// none.
func Stop(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	unlock, err := process.Lock(ctx, lockFile(dir))
	if err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(dir), err)
	}
	defer unlock()
	last, err := readRecord(dir)
	if err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(dir), err)
	}
	running, err := last.processes()
	if err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(dir), err)
	}
	if err := process.Stop(ctx, grace, running...); err != nil {
		return fmt.Errorf("stop %s: %w", filepath.Base(dir), err)
	}
	for _, path := range []string{recordFile(dir), lockFile(dir)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("stop %s: %w", filepath.Base(dir), err)
		}
	}
	return nil
}

// Running reports whether the program of dir runs.
func Running(dir string) bool {
	last, err := readRecord(dir)
	if err != nil {
		return false
	}
	running, err := last.processes()
	return err == nil && len(running) > 0
}

// Log returns the file of the program's output, named after dir.
func Log(dir string) string { return filepath.Join(dir, filepath.Base(dir)+".log") }

func recordFile(dir string) string { return filepath.Join(dir, filepath.Base(dir)+".json") }
func lockFile(dir string) string   { return filepath.Join(dir, "lock") }

// processes returns the running processes of the program: at most one, or all with its command line
// if the process is not known.
func (r record) processes() ([]process.Process, error) {
	if !r.Starting {
		if !r.Process.Running() {
			return nil, nil
		}
		return []process.Process{r.Process}, nil
	}
	command := strings.Join(append([]string{r.Executable}, r.Args...), " ")
	return process.Matching(func(p process.Process) bool { return p.Command == command })
}

// spawn starts the program, records it, and checks that it does not end at once.
func spawn(dir string, r record) error {
	log, err := os.OpenFile(Log(dir), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(r.Executable, r.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own: no terminal's interrupt or hangup reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r.Starting = true
	if err := writeRecord(dir, r); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	r.Process, err = process.Find(cmd.Process.Pid)
	if err == nil {
		r.Starting = false
		err = writeRecord(dir, r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = cmd.Process.Kill()
		return err
	}
	select {
	case err := <-ended:
		return fmt.Errorf("it ended at once: %v; see %s", err, Log(dir))
	case <-time.After(settle):
		return nil
	}
}

// readRecord returns the zero record if there is none, whose process never
// runs.
func readRecord(dir string) (record, error) {
	var r record
	content, err := os.ReadFile(recordFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("%s: %w", recordFile(dir), err)
	}
	return r, nil
}

func writeRecord(dir string, r record) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(recordFile(dir), content, 0o600)
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
