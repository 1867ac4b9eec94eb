package sandbox

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/sync/errgroup"

	"persia/config"
	"persia/config/input"
	"persia/sandbox/gcp/gke"
	"persia/stack"
	"persia/stack/effects"
)

const projectFile = "Pulumi.yaml"

// source has the folders of the user's files, which the sandbox only reads.
type source struct {
	// project contains Pulumi.yaml; stacks contains the stack file and the files that it names.
	project, stacks string
	stack           string
	// unprotected lifts the protection of the cluster from deletion.
	unprotected bool
}

// file returns the path of the stack file.
func (s source) file() string { return filepath.Join(s.stacks, input.StackFileName(s.stack)) }

// config returns the configuration of the stack as the program reads it, with other secrets.
func (s source) config() (*config.Stack, error) {
	file, err := s.read()
	if err != nil {
		return nil, err
	}
	if err := file.CheckKeys(config.Namespace, config.Keys()); err != nil {
		return nil, err
	}
	values := file.Config.Open(func(_ []any, ciphertext string) string { return standIn(ciphertext) })
	return config.Load(values.Get, os.DirFS(s.stacks))
}

// project is the copy of the project that the engine works on.
type project struct {
	dir string
	// secrets maps the paths of the encrypted values of the stack file to other secrets.
	secrets auto.ConfigMap
}

// copyTo copies the project to dir for the engine, which changes the stack file.
func (s source) copyTo(dir string) (project, error) {
	p := project{dir: dir}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return p, err
	}
	text, err := os.ReadFile(filepath.Join(s.project, projectFile))
	if err != nil {
		return p, err
	}
	if err := renameio.WriteFile(filepath.Join(p.dir, projectFile), text, 0o600); err != nil {
		return p, err
	}
	p.secrets, err = s.writeStackFile(p.dir)
	return p, err
}

// writeStackFile copies the stack file without its secrets, and returns secrets to replace them. It keeps the salt that
// Pulumi added to the last copy and that belongs to this sandbox's passphrase.
func (s source) writeStackFile(dir string) (auto.ConfigMap, error) {
	file, err := s.read()
	if err != nil {
		return nil, err
	}
	last, err := input.ReadStackFile(os.DirFS(dir), input.StackFileName(s.stack), config.Namespace)
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
	return taken, renameio.WriteFile(filepath.Join(dir, input.StackFileName(s.stack)), text, 0o600)
}

func (s source) read() (input.StackFile, error) {
	file, err := input.ReadStackFile(os.DirFS(s.stacks), input.StackFileName(s.stack), config.Namespace)
	if cluster, ok := file.Config[config.Namespace+":cluster"].(map[string]any); ok && s.unprotected {
		cluster["deletionProtection"] = false
	}
	return file, err
}

// Placeholders returns the paths of the encrypted values of the stack file, which the sandbox replaces.
func (s *Sandbox) Placeholders() []string {
	file, err := s.source.read()
	if err != nil {
		return nil // which the program says
	}
	_, taken := takeSecrets(file.Config)
	return slices.Sorted(maps.Keys(taken))
}

// machines returns the machine types that the stack file describes. The program reports errors in the description.
func (s source) machines() (gke.Machines, error) {
	file, err := s.read()
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
func (s source) program(announce func([]effects.Effect)) pulumi.RunFunc {
	if announce == nil {
		announce = func([]effects.Effect) {}
	}
	return func(ctx *pulumi.Context) error {
		// The state records the call stack of each resource. A goroutine keeps the
		// frames of the Automation API's gRPC server, a third of the state, out of it.
		var program errgroup.Group
		program.Go(func() error { return stack.DeployFrom(ctx, os.DirFS(s.stacks), announce) })
		return program.Wait()
	}
}
