package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"persia/config/nodepool"
	"persia/sandbox/gcp/nodepools"
	"persia/stack"
)

const projectFile = "Pulumi.yaml"

func stackFile(stack string) string { return "Pulumi." + stack + ".yaml" }

// source is where a stack comes from. Nothing is written there.
type source struct {
	// project is the folder of Pulumi.yaml, and stacks that of the stack file and the
	// files that it names.
	project, stacks string
	stack           string
}

// file is the path of the stack file.
func (s source) file() string { return filepath.Join(s.stacks, stackFile(s.stack)) }

// project is the folder that Pulumi works in.
type project struct {
	dir string
	// secrets are the values of the encrypted parts of the stack file, by their paths.
	secrets auto.ConfigMap
}

// copyTo copies the project's files for Pulumi, which writes into its stack file.
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

// writeStackFile copies the stack file without its secrets, and returns what takes their
// place. It keeps the salt that Pulumi has added to the last copy: it belongs to this
// sandbox's passphrase.
func (s source) writeStackFile(dir string) (auto.ConfigMap, error) {
	const saltKey = "encryptionsalt"
	settings, err := readYAML(s.file())
	if err != nil {
		return nil, err
	}
	last, err := readYAML(filepath.Join(dir, stackFile(s.stack)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// How the stack's owner encrypts it says nothing here.
	for _, key := range []string{saltKey, "secretsprovider", "encryptedkey"} {
		delete(settings, key)
	}
	config, _ := settings["config"].(map[string]any)
	secrets := takeSecrets(config)
	if salt, ok := last[saltKey]; ok {
		settings[saltKey] = salt
	}
	text, err := yaml.Marshal(settings)
	if err != nil {
		return nil, err
	}
	return secrets, renameio.WriteFile(filepath.Join(dir, stackFile(s.stack)), text, 0o600)
}

// machines are the machine types that the stack file describes. What is wrong with
// the description is the program's to say.
func (s source) machines() (nodepools.Machines, error) {
	text, err := os.ReadFile(s.file())
	if err != nil {
		return nil, err
	}
	var file struct {
		Config struct {
			MachineTypes map[string]nodepool.MachineType `json:"persia:machineTypes"`
		} `json:"config"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, nil
	}
	machines := nodepools.Machines{}
	for name, described := range file.Config.MachineTypes {
		machines[name] = described.Machine(name)
	}
	return machines, nil
}

func readYAML(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

// program is the program itself, where Pulumi would start it: beside the user's
// stack file, of which the engine's folder has a copy, and the files that it names.
func (s source) program() pulumi.RunFunc {
	return func(ctx *pulumi.Context) error {
		before, err := os.Getwd()
		if err != nil {
			return err
		}
		if err := os.Chdir(s.stacks); err != nil {
			return err
		}
		// The state has each resource's call stack. On one of its own the program is
		// as near to the bottom as it is under Pulumi, and not far above the gRPC
		// server of the Automation API, whose frames would be a third of the state.
		var program errgroup.Group
		program.Go(func() error { return stack.Deploy(ctx) })
		return errors.Join(program.Wait(), os.Chdir(before))
	}
}
