package sandbox

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/sync/errgroup"

	"persia/config"
	"persia/config/input"
	"persia/sandbox/files"
	"persia/sandbox/gcp/gke"
	"persia/stack"
	"persia/stack/effects"
)

const projectFile = "Pulumi.yaml"

// Config returns the configuration of the stack as the program reads it, with other secrets.
func (s *Sandbox) Config() (*config.Stack, error) {
	file, err := s.options.read()
	if err != nil {
		return nil, err
	}
	if err := file.CheckKeys(config.Namespace, config.Keys()); err != nil {
		return nil, err
	}
	values := file.Config.Open(func(_ []any, ciphertext string) string { return standIn(ciphertext) })
	return config.Load(values.Get, os.DirFS(s.options.Stacks))
}

// project is the copy of the project that the engine works on.
type project struct {
	dir string
	// secrets maps the paths of the encrypted values of the stack file to other secrets.
	secrets auto.ConfigMap
}

// copyTo copies the project to dir for the engine, which changes the stack file.
func (o Options) copyTo(dir string) (project, error) {
	p := project{dir: dir}
	text, err := os.ReadFile(filepath.Join(o.Project, projectFile))
	if err != nil {
		return p, err
	}
	if err := files.Write(filepath.Join(p.dir, projectFile), text, 0o600); err != nil {
		return p, err
	}
	p.secrets, err = o.writeStackFile(p.dir)
	return p, err
}

// writeStackFile copies the stack file without its secrets, and returns secrets to replace them. It keeps the salt that
// Pulumi added to the last copy and that belongs to this sandbox's passphrase.
func (o Options) writeStackFile(dir string) (auto.ConfigMap, error) {
	file, err := o.read()
	if err != nil {
		return nil, err
	}
	last, err := input.ReadStackFile(os.DirFS(dir), input.StackFileName(o.Stack), config.Namespace)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// The sandbox cannot use the owner's encryption.
	for _, setting := range []string{input.EncryptionSalt, input.SecretsProvider, input.EncryptedKey} {
		delete(file.Settings, setting)
	}
	if salt := last.Settings[input.EncryptionSalt]; salt != nil {
		file.Settings[input.EncryptionSalt] = salt
	}
	left, taken := takeSecrets(file.Config)
	file.Config = left
	text, err := file.Text()
	if err != nil {
		return nil, err
	}
	return taken, files.Write(filepath.Join(dir, input.StackFileName(o.Stack)), text, 0o600)
}

// read reads the stack file of the user's.
func (o Options) read() (input.StackFile, error) {
	file, err := input.ReadStackFile(os.DirFS(o.Stacks), input.StackFileName(o.Stack), config.Namespace)
	if cluster, ok := file.Config[config.Namespace+":cluster"].(map[string]any); ok && o.Unprotected {
		cluster["deletionProtection"] = false
	}
	return file, err
}

// Placeholders returns the paths of the encrypted values of the stack file, which the sandbox replaces.
func (s *Sandbox) Placeholders() []string {
	file, err := s.options.read()
	if err != nil {
		return nil // which the program says
	}
	_, taken := takeSecrets(file.Config)
	return slices.Sorted(maps.Keys(taken))
}

// machines returns the machine types that the stack file describes. The program reports errors in the description.
func (o Options) machines() (gke.Machines, error) {
	file, err := o.read()
	if err != nil {
		return nil, err
	}
	text, _ := file.Config.Get(config.MachineTypesKey)
	var described map[string]config.MachineType
	if err := json.Unmarshal([]byte(text), &described); err != nil {
		return nil, nil
	}
	machines := gke.Machines{}
	for name, machine := range described {
		machines[name] = machine.Machine(name)
	}
	return machines, nil
}

// program returns the program, which reads the user's files and not the copy that the engine works on, and announces
// what an update does.
func (o Options) program() pulumi.RunFunc {
	announce := o.Announce
	if announce == nil {
		announce = func([]effects.Effect) {}
	}
	return func(ctx *pulumi.Context) error {
		// The state records the call stack of each resource. A goroutine keeps the
		// frames of the Automation API's gRPC server, a third of the state, out of it.
		var program errgroup.Group
		program.Go(func() error { return stack.DeployFrom(ctx, os.DirFS(o.Stacks), announce) })
		return program.Wait()
	}
}

// takeSecrets removes the encrypted texts from the values of a stack file, and returns placeholders by
// their paths, which the sandbox encrypts instead.
func takeSecrets(values input.Values) (input.Values, auto.ConfigMap) {
	secrets := auto.ConfigMap{}
	left := values.Open(func(path []any, ciphertext string) string {
		namespace, name, _ := strings.Cut(path[0].(string), ":")
		at := append(resource.PropertyPath{name}, path[1:]...)
		secrets[namespace+":"+at.String()] = auto.ConfigValue{Value: standIn(ciphertext), Secret: true}
		return ""
	})
	return left, secrets
}

// ciphertext is how texts begin that Pulumi has encrypted: by a key or a passphrase, or by Pulumi Cloud.
var ciphertext = regexp.MustCompile(`^(v1:|AAAB)`)

// standIn takes the place of a secret, which only its owner's key opens. It is the same as long as the secret is. In an
// example, where nothing is encrypted, the text itself is the secret.
func standIn(text string) string {
	if !ciphertext.MatchString(text) {
		return text
	}
	return fmt.Sprintf("sandbox-%x", sha256.Sum256([]byte(text)))[:20]
}
