package preflight

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// failure is the error of a failed command.
type failure struct {
	// code is the command's exit code, or -1 if the command did not end.
	code int
	// text is the command's error message.
	text string
}

func (f *failure) Error() string { return f.text }

// run runs a command in the project's folder, without prompts, and returns its output.
func (p *preflight) run(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = p.Dir
	command.Env = append(os.Environ(), "PULUMI_SKIP_UPDATE_CHECK=true", "CLOUDSDK_CORE_DISABLE_PROMPTS=1")
	// A process that the command left behind may keep its output open.
	command.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, &failure{-1, fmt.Sprintf("%s did not answer within %s", short(name, args), p.Timeout)}
	case errors.As(err, &exit):
		return nil, &failure{exit.ExitCode(), firstError(stderr.String())}
	case err != nil:
		return nil, &failure{-1, err.Error()}
	}
	return stdout.Bytes(), nil
}

// ask runs a command and decodes the JSON that it prints.
func (p *preflight) ask(ctx context.Context, into any, name string, args ...string) error {
	output, err := p.run(ctx, name, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(output, into); err != nil {
		return &failure{-1, fmt.Sprintf("%s printed unexpected output: %v", short(name, args), err)}
	}
	return nil
}

// short returns a command without its flags.
func short(name string, args []string) string {
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") {
			args = args[:i]
			break
		}
	}
	return strings.Join(append([]string{name}, args...), " ")
}

// firstError returns the line of a command's error output that names the problem: the
// first line that begins with "error:", or else the first line. If that line ends with a colon,
// the next one belongs to it.
func firstError(stderr string) string {
	first, found := "", ""
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if found != "" {
			return found + " " + strings.TrimPrefix(line, "- ")
		}
		if lower := strings.ToLower(line); strings.HasPrefix(lower, "error:") {
			found = strings.TrimSpace(line[len("error:"):])
			if !strings.HasSuffix(found, ":") {
				return found
			}
			continue
		}
		if first == "" {
			first = line
		}
	}
	return cmp.Or(found, first, "it failed and printed nothing")
}

// notFound reports whether Google Cloud has answered gcloud that a thing does not exist.
func notFound(err error) bool {
	var failed *failure
	return errors.As(err, &failed) && failed.code > 0 &&
		!unreachable(err) && slices.ContainsFunc([]string{"was not found", "not found: 404", "NOT_FOUND"}, func(sign string) bool { return strings.Contains(failed.text, sign) })
}

// unreachable reports whether a command did not end, or could not reach the network.
// It looks for the messages of gcloud, which is written in Python, and of pulumi, in
// Go. gcloud then also reports a login problem, which does not count.
func unreachable(err error) bool {
	var failed *failure
	if !errors.As(err, &failed) {
		return false
	}
	if failed.code < 0 {
		return true
	}
	for _, sign := range []string{
		"Max retries exceeded", "Failed to resolve", "Unable to find the server", "Failed to establish a new connection",
		"network is unreachable", "Network is unreachable", "no such host", "dial tcp", "i/o timeout", "TLS handshake timeout",
		"Connection reset", "connection reset", "timed out", "Temporary failure in name resolution", "ProxyError",
	} {
		if strings.Contains(failed.text, sign) {
			return true
		}
	}
	return false
}

// found looks for a program on the PATH.
func found(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
