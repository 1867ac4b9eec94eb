package state

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Service serves the state in a folder to a Pulumi CLI.
type Service struct {
	// URL is where the service is, on loopback, for PULUMI_BACKEND_URL.
	URL string
	// Token opens it, for PULUMI_ACCESS_TOKEN. Each service has another one.
	Token string

	server *exec.Cmd
	stdin  io.Closer
}

// Start runs executable, the toolchain's pulumi-state, over the state in dir. The
// service ends with Close, or with this process, whatever ends it.
func Start(ctx context.Context, executable, dir string, stderr io.Writer) (*Service, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Service{Token: rand.Text()}
	// The CLI writes its state after an interrupt, so this must outlive one.
	s.server = exec.CommandContext(context.WithoutCancel(ctx), executable, "--dir", dir)
	s.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.server.Env = append(os.Environ(), "PULUMI_ACCESS_TOKEN="+s.Token)
	s.server.Stderr = stderr
	stdout, err := s.server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if s.stdin, err = s.server.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.server.Start(); err != nil {
		return nil, fmt.Errorf("state service: %w", err)
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("state service: it printed no address: %w", err), s.Close())
	}
	s.URL = strings.TrimSpace(address)
	return s, nil
}

// Close ends the service. All that the CLI has been told is stored stays so.
func (s *Service) Close() error {
	if err := errors.Join(s.stdin.Close(), s.server.Wait()); err != nil {
		return fmt.Errorf("state service: %w", err)
	}
	return nil
}
