package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"persia/config"
	clusterconfig "persia/config/cluster"
	"persia/config/stackfile"
)

// standIn stands in the place of each encrypted value, which only its owner's key
// opens.
const standIn = "encrypted"

// stackFile is a stack file as Pulumi has written it, with the stand-in in the place of
// each encrypted value.
type stackFile struct {
	stackfile.File
	dir, stack, name string

	// encrypted is the number of its encrypted values, and secrets are the keys that
	// they are in.
	encrypted int
	secrets   map[string]bool
	// sealedTLS reports that certificates of NATS are not looked at, as their keys
	// are encrypted.
	sealedTLS bool
}

func readStackFile(dir, stack string) (*stackFile, error) {
	f := &stackFile{dir: dir, stack: stack, name: stackfile.Name(stack)}
	var err error
	f.File, err = stackfile.Read(os.DirFS(dir), f.name, config.Namespace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no stack %q: %w; %s", stack, err, stackfile.Stacks(os.DirFS(dir)))
	}
	if err != nil {
		return nil, fmt.Errorf("%w; mend it, since Pulumi cannot read it either", err)
	}
	f.secrets = f.Config.Secrets()
	f.Config = f.Config.Open(func([]any, string) string {
		f.encrypted++
		return standIn
	})
	return f, nil
}

// leaveOutTLS leaves out certificates with the stand-in in the place of their keys,
// which would be refused.
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

// load reads the stack as the program does.
func (f *stackFile) load() (*config.Stack, error) {
	exposed := config.CheckSecrets(f, os.DirFS(f.dir))
	f.leaveOutTLS()
	stack, err := config.Load(f.GetConfig, os.DirFS(f.dir))
	if err == nil {
		err = exposed
	}
	if err != nil && f.Settings[stackfile.Environment] != nil {
		return nil, fmt.Errorf("%s: %w\nits environment may have more: the preflight does not open it, and `pulumi preview` does", f.name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return stack, nil
}

// Project is the namespace of the keys.
func (f *stackFile) Project() string { return config.Namespace }

// Stack is the stack's name.
func (f *stackFile) Stack() string { return f.stack }

// IsConfigSecret reports whether there are encrypted values in a key.
func (f *stackFile) IsConfigSecret(key string) bool { return f.secrets[key] }

// GetConfig is the value of a key as Pulumi hands it to the program.
func (f *stackFile) GetConfig(key string) (string, bool) { return f.Config.Get(key) }

// stackChecks are those of the stack file itself.
func (p *preflight) stackChecks() []Check {
	const name = "stack file"
	plan := p.stack.Plan()
	checks := []Check{ok(name, fmt.Sprintf("%s is valid: %d nodes hold its %d pods", p.file.name, plan.Nodes, plan.Pods))}
	for _, key := range p.file.Config.Unread(config.Namespace, config.Keys()) {
		checks = append(checks, warning(name, key+" is in the file, and the program does not read it",
			"remove it; what stands inside of a key is set with `pulumi config set --path`"))
	}
	for _, text := range p.stack.Warnings() {
		checks = append(checks, warning(name, text, ""))
	}
	checks = append(checks, p.secretsCheck())
	if p.file.sealedTLS {
		checks = append(checks, unchecked(name, "persia:nats.tls: a key is encrypted, so that only `pulumi preview` can check the certificates"))
	}
	if p.stack.Cluster.Existing == nil {
		checks = append(checks, controlPlaneCheck(p.stack.Cluster))
	}
	return checks
}

// controlPlaneCheck says who reaches the control plane, which `up` must.
func controlPlaneCheck(cluster clusterconfig.Cluster) Check {
	const name = "control plane"
	switch {
	case cluster.PrivateEndpoint:
		return unchecked(name, "persia:cluster.privateEndpoint is true: `pulumi up` must run inside the cluster's network, and whether it does is not known here")
	case len(cluster.AuthorizedNetworks) == 0:
		return warning(name, "persia:cluster.authorizedNetworks is empty: nobody outside the cluster's network reaches the control plane, and `pulumi up` stops there",
			"write the range that you come from, or run `pulumi up` inside the network")
	}
	var ranges []string
	for _, network := range cluster.AuthorizedNetworks {
		ranges = append(ranges, network.CIDR)
	}
	return ok(name, "open to "+strings.Join(ranges, ", ")+": you must come from there")
}
