package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Gcloud runs a command of gcloud, and returns what it prints. The error has the message of gcloud.
type Gcloud func(ctx context.Context, args ...string) ([]byte, error)

// CLI runs the gcloud on the PATH, without prompts. It gives each command half a minute.
func CLI(ctx context.Context, args ...string) ([]byte, error) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, "gcloud", args...)
	command.Env = append(os.Environ(), "CLOUDSDK_CORE_DISABLE_PROMPTS=1")
	// A process that the command left behind may keep its output open.
	command.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("gcloud did not answer within %s", patience)
	case errors.As(err, &exit):
		return nil, errors.New(message(stderr.String()))
	}
	return stdout.Bytes(), err
}

// message returns the line of gcloud's error output that names the problem. If that line ends with a colon, the next
// one belongs to it.
func message(stderr string) string {
	_, text, found := strings.Cut(stderr, "ERROR: ")
	if !found {
		text = stderr
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.HasSuffix(first, ":") {
		next, _, _ := strings.Cut(rest, "\n")
		first += " " + strings.TrimPrefix(strings.TrimSpace(next), "- ")
	}
	return first
}
