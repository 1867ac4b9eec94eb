package e2e

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// aloneVariable is the environment variable that names the test of a process that
// alone has started.
const aloneVariable = "SANDBOX_E2E_TEST"

// alone runs a test in a process of its own, in parallel with others: a sandbox
// changes the working directory and the PATH of its process. A test begins with
//
//	if !alone(t) {
//		return
//	}
//
// In the process of the test, alone reports true. In the other it reports false once
// the test has ended there, and t has the result.
func alone(t *testing.T) bool {
	t.Helper()
	if isAlone(t) {
		return true
	}
	t.Parallel()
	startAlone(t)()
	return false
}

// aloneAtOnce is alone for the longest test: its process starts before the others get
// their turns.
func aloneAtOnce(t *testing.T) bool {
	t.Helper()
	if isAlone(t) {
		return true
	}
	await := startAlone(t)
	t.Parallel()
	await()
	return false
}

func isAlone(t *testing.T) bool { return os.Getenv(aloneVariable) == t.Name() }

// startAlone starts the process of a test. What it returns waits for the end, and gives t
// the result.
func startAlone(t *testing.T) (await func()) {
	t.Helper()
	arguments := []string{"-test.v", "-test.count=1", "-test.run=" + onlyPattern(t.Name())}
	if deadline, ok := t.Deadline(); ok {
		// It ends first, with the stacks of its goroutines.
		arguments = append(arguments, "-test.timeout="+time.Until(deadline.Add(-10*time.Second)).String())
	}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			arguments = append(arguments, "-"+f.Name+"="+f.Value.String())
		}
	})
	command := exec.CommandContext(t.Context(), os.Args[0], arguments...)
	command.Env = append(os.Environ(), aloneVariable+"="+t.Name())
	var output bytes.Buffer
	command.Stdout = io.MultiWriter(t.Output(), &output)
	command.Stderr = command.Stdout
	err := command.Start()
	return func() {
		t.Helper()
		if err == nil {
			err = command.Wait()
		}
		switch ended := "--- %: " + t.Name() + " ("; {
		case err != nil:
			t.Errorf("the process of the test: %v", err)
		case strings.Contains(output.String(), strings.Replace(ended, "%", "SKIP", 1)):
			t.Skip("skipped in its own process")
		case !strings.Contains(output.String(), strings.Replace(ended, "%", "PASS", 1)):
			t.Error("the process of the test did not run it")
		}
	}
}

// onlyPattern matches the test of that name, and of its subtests those that the flag
// -run of this process selects.
func onlyPattern(name string) string {
	elements := strings.Split(name, "/")
	selected := flag.Lookup("test.run").Value.String()
	var below []string
	if rest := strings.Split(selected, "/"); len(rest) > len(elements) && !strings.Contains(selected, "|") {
		below = rest[len(elements):]
	}
	for i, element := range elements {
		elements[i] = "^" + regexp.QuoteMeta(element) + "$"
	}
	return strings.Join(append(elements, below...), "/")
}
