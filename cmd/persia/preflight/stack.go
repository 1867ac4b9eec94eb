package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"persia/config"
	"persia/config/input"
)

// standIn replaces each encrypted value, which preflight cannot decrypt.
const standIn = "encrypted"

// stackFile is a stack file in which standIn replaces each encrypted value.
type stackFile struct {
	input.StackFile
	dir, stack, name string

	// encrypted is the number of encrypted values, and secrets are the keys that
	// contain them.
	encrypted int
	secrets   map[string]bool
	// sealedTLS reports that the certificates of NATS cannot be checked, because
	// their keys are encrypted.
	sealedTLS bool
}

func readStackFile(dir, stack string) (*stackFile, error) {
	f := &stackFile{dir: dir, stack: stack, name: input.StackFileName(stack)}
	var err error
	f.StackFile, err = input.ReadStackFile(os.DirFS(dir), f.name, config.Namespace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no stack %q: %w; %s", stack, err, input.StackNames(os.DirFS(dir)))
	}
	if err != nil {
		return nil, fmt.Errorf("%w; correct it, because Pulumi cannot read it either", err)
	}
	f.secrets = f.Config.Secrets()
	f.Config = f.Config.Open(func([]any, string) string {
		f.encrypted++
		return standIn
	})
	return f, nil
}

// leaveOutTLS removes the certificates whose keys are standIn, because config would
// refuse them.
func (f *stackFile) leaveOutTLS() {
	nats, _ := f.Config["persia:nats"].(map[string]any)
	tls, _ := nats["tls"].(map[string]any)
	for _, certificate := range tls {
		if c, _ := certificate.(map[string]any); c["key"] == standIn {
			f.sealedTLS = true
		}
	}
	if f.sealedTLS {
		delete(nats, "tls")
	}
}

// load loads the stack as the program does.
func (f *stackFile) load() (*config.Stack, error) {
	exposed := config.CheckSecrets(f, os.DirFS(f.dir))
	f.leaveOutTLS()
	stack, err := config.Load(f.GetConfig, os.DirFS(f.dir))
	if err == nil {
		err = exposed
	}
	if ignored := input.CheckKeys(os.DirFS(f.dir), f.Project(), f.stack, config.Keys()); ignored != nil {
		err = ignored
	}
	if err != nil && f.Settings[input.Environment] != nil {
		return nil, fmt.Errorf("%s: %w\nthe stack's ESC environment may set more: run `pulumi preview`, which opens it", f.name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return stack, nil
}

// Project returns the namespace of the keys.
func (f *stackFile) Project() string { return config.Namespace }

// Stack returns the stack's name.
func (f *stackFile) Stack() string { return f.stack }

// IsConfigSecret reports whether a key contains encrypted values.
func (f *stackFile) IsConfigSecret(key string) bool { return f.secrets[key] }

// GetConfig returns the value of a key as Pulumi passes it to the program.
func (f *stackFile) GetConfig(key string) (string, bool) { return f.Config.Get(key) }

// stackChecks check the stack file itself.
func (p *preflight) stackChecks() []Check {
	const name = "stack file"
	plan := p.stack.Plan()
	checks := []Check{ok(name, fmt.Sprintf("%s is valid: its %d pods fit on %d nodes", p.file.name, plan.Pods, plan.Nodes))}
	for _, text := range p.stack.Warnings() {
		checks = append(checks, warning(name, text, ""))
	}
	checks = append(checks, p.secretsCheck())
	if p.file.sealedTLS {
		checks = append(checks, unchecked(name, "persia:nats.tls: a key is encrypted, so only `pulumi preview` can check the certificates"))
	}
	if p.stack.Cluster.Existing == nil {
		checks = append(checks, controlPlaneCheck(p.stack.Cluster))
	}
	return append(checks, imageChecks(p.stack)...)
}

// imageChecks ask for digests: a pod that is created later might run another image.
func imageChecks(stack *config.Stack) []Check {
	const name = "images"
	if len(stack.Jobs) == 0 {
		return nil
	}
	var loose []string
	for i := range stack.Jobs {
		if roles := stack.Jobs[i].LooseImages(); len(roles) > 0 {
			loose = append(loose, strings.Join(roles, ", ")+" of "+stack.Jobs[i].Name)
		}
	}
	if len(loose) == 0 {
		return []Check{ok(name, "all roles name a tag or a digest")}
	}
	return []Check{warning(name, "the tag of "+strings.Join(loose, "; ")+" is latest: pods that start later might run another image",
		"write image with a digest, like persiaml/persia-cpu-runtime@sha256:…")}
}

// controlPlaneCheck checks who can reach the control plane, as `up` must.
func controlPlaneCheck(cluster config.Cluster) Check {
	const name = "control plane"
	switch {
	case cluster.PrivateEndpoint:
		return unchecked(name, "persia:cluster.privateEndpoint is true: `pulumi up` must run inside the cluster's network, which this check cannot verify")
	case len(cluster.AuthorizedNetworks) == 0:
		return warning(name, "persia:cluster.authorizedNetworks is empty: the control plane can be reached only from the cluster's network, and `pulumi up` fails elsewhere",
			"write the range that you connect from, or run `pulumi up` inside the network")
	}
	var ranges []string
	for _, network := range cluster.AuthorizedNetworks {
		ranges = append(ranges, network.CIDR)
	}
	return ok(name, "open to "+strings.Join(ranges, ", ")+": you must connect from there")
}
