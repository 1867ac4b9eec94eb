// Package stackfile reads and writes the stack files of Pulumi.
package stackfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"
)

// Name returns the name of the file of a stack.
func Name(stack string) string { return "Pulumi." + stack + ".yaml" }

// The settings of a stack file for encryption.
const (
	SecretsProvider = "secretsprovider"
	EncryptionSalt  = "encryptionsalt"
	EncryptedKey    = "encryptedkey"
)

// Environment is the setting for environments of Pulumi ESC, which add values.
const Environment = "environment"

const configuration = "config"

// File is a stack file.
type File struct {
	// Config are the values. All keys have a namespace, by default the project's.
	Config Values
	// Settings are the other contents of the file.
	Settings map[string]any
}

// Stacks lists the stacks with files in a folder, for a message about a stack without one.
func Stacks(files fs.FS) string {
	paths, _ := fs.Glob(files, Name("*"))
	if len(paths) == 0 {
		return "there is none here: run this in the folder of Pulumi.yaml, or name the folder"
	}
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(path, "Pulumi."), ".yaml"))
	}
	return "there are " + strings.Join(names, ", ")
}

// Read reads the stack file at a path. The project is the default namespace of keys.
func Read(files fs.FS, path, project string) (File, error) {
	text, err := fs.ReadFile(files, path)
	if err != nil {
		return File{}, err
	}
	file, err := Parse(text, project)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Parse parses a stack file.
func Parse(text []byte, project string) (File, error) {
	file := File{Config: Values{}}
	if err := yaml.Unmarshal(text, &file.Settings); err != nil {
		return File{}, err
	}
	written, isObject := file.Settings[configuration].(map[string]any)
	if !isObject && file.Settings[configuration] != nil {
		return File{}, errors.New(configuration + ": write the keys of the stack and their values below it")
	}
	delete(file.Settings, configuration)
	for key, value := range written {
		if !strings.Contains(key, ":") {
			key = project + ":" + key
		}
		file.Config[key] = value
	}
	return file, nil
}

// Text returns the file as YAML.
func (f File) Text() ([]byte, error) {
	all := map[string]any{configuration: f.Config}
	maps.Copy(all, f.Settings)
	return yaml.Marshal(all)
}

// Setting returns a setting that is a string, or "".
func (f File) Setting(name string) string {
	text, _ := f.Settings[name].(string)
	return text
}
