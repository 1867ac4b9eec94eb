package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"persia/sandbox/files"
)

const (
	// grace is how long a program may take to end by itself, and to end its own.
	grace = 10 * time.Second
	// settle is how long a new program is watched: one that cannot work, for a wrong argument say, ends at once.
	settle = 300 * time.Millisecond
)

// Background is the folder of a program that runs between the commands of the sandbox. The program's
// processes are found by their command line, which names a folder of the program's own.
type Background string

// Program is a program to run.
type Program struct {
	Executable string   `json:"executable"`
	Args       []string `json:"args"`
	// Inputs identifies the files that the program reads only when it starts. Start restarts a
	// program with other Inputs.
	Inputs string `json:"inputs,omitempty"`
}

// record describes a program in the background.
type record struct {
	Program
	// Digest is the digest of the executable.
	Digest string `json:"digest"`
}

// Start runs a program as a process that outlives this one. Its output is appended to the log. If one runs already it
// stays, unless the executable's content, the arguments or the inputs have changed; then it is replaced.
func (b Background) Start(ctx context.Context, p Program) error {
	if err := os.MkdirAll(string(b), 0o700); err != nil {
		return fmt.Errorf("start %s: %w", b.name(), err)
	}
	return b.locked(ctx, "start", func(last record, running []Process) error {
		digest, err := Digest(p.Executable)
		if err != nil {
			return err
		}
		if len(running) > 0 && last.Digest == digest && last.Inputs == p.Inputs && slices.Equal(last.Args, p.Args) {
			return nil
		}
		if err := Stop(ctx, grace, running...); err != nil {
			return err
		}
		return b.spawn(record{Program: p, Digest: digest})
	})
}

// Stop ends the program and removes its record, but not its log. It does nothing if there is none.
func (b Background) Stop(ctx context.Context) error {
	if _, err := os.Stat(string(b)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return b.locked(ctx, "stop", func(_ record, running []Process) error {
		if err := Stop(ctx, grace, running...); err != nil {
			return err
		}
		return errors.Join(os.RemoveAll(b.record()), os.RemoveAll(b.lock()))
	})
}

// Running reports whether the program runs.
func (b Background) Running() bool {
	_, running, err := b.read()
	return err == nil && len(running) > 0
}

// Log returns the file of the program's output.
func (b Background) Log() string { return filepath.Join(string(b), b.name()+".log") }

func (b Background) name() string   { return filepath.Base(string(b)) }
func (b Background) record() string { return filepath.Join(string(b), b.name()+".json") }
func (b Background) lock() string   { return filepath.Join(string(b), "lock") }

// locked does something with the last record, and with the processes of it that run.
func (b Background) locked(ctx context.Context, what string, do func(record, []Process) error) error {
	unlock, err := Lock(ctx, b.lock())
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, b.name(), err)
	}
	defer unlock()
	last, running, err := b.read()
	if err == nil {
		err = do(last, running)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, b.name(), err)
	}
	return nil
}

// spawn records and starts a program.
func (b Background) spawn(r record) error {
	log, err := os.OpenFile(b.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(r.Executable, r.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own: no terminal's interrupt or hangup reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := files.WriteJSON(b.record(), r, 0o600); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("it ended at once: %v; see %s", err, b.Log())
	case <-time.After(settle):
		return nil
	}
}

// read returns the last record, and the running processes of it.
func (b Background) read() (last record, running []Process, err error) {
	if err := files.ReadJSON(b.record(), &last); err != nil {
		return last, nil, utilerrors.FilterOut(err, os.IsNotExist)
	}
	command := strings.Join(append([]string{last.Executable}, last.Args...), " ")
	running, err = Matching(func(p Process) bool { return p.Command == command })
	return last, running, err
}

// Digest returns the SHA-256 of a file.
func Digest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	digest := sha256.New()
	_, err = io.Copy(digest, file)
	return hex.EncodeToString(digest.Sum(nil)), err
}
