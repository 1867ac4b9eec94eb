package preflight

import (
	"context"
	"time"

	"persia/config"
)

// Options say which stack is checked, and how.
type Options struct {
	// Dir is the folder of Pulumi.yaml and the stack files.
	Dir string
	// Stack is the stack's name, as in Pulumi.prod.yaml.
	Stack string
	// Offline leaves out what needs the network.
	Offline bool
	// Timeout is how long one command of gcloud or pulumi may take.
	Timeout time.Duration
}

// preflight is one run of all checks.
type preflight struct {
	Options
	file  *stackFile
	stack *config.Stack
	// resources is how many the stack has already, as far as that is known.
	resources int
}

// Run makes all checks of a stack. It returns an error if the stack file cannot be read or has
// mistakes, because the needs of the stack are then unknown.
func Run(ctx context.Context, options Options) ([]Check, error) {
	file, err := readStackFile(options.Dir, options.Stack)
	if err != nil {
		return nil, err
	}
	stack, err := file.load()
	if err != nil {
		return nil, err
	}
	p := &preflight{Options: options, file: file, stack: stack}
	checks := p.stackChecks()
	checks = append(checks, p.programCheck())
	checks = append(checks, p.pulumiChecks(ctx)...)
	if existing := stack.Cluster.Existing; existing != nil {
		return append(checks, kubeconfigChecks(*existing)...), nil
	}
	return append(checks, p.googleChecks(ctx)...), nil
}
