// Package files reads and writes the small files of the sandbox. A file is written at once or not at all: a command that
// is killed leaves no half of one.
package files

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/renameio/v2"
	"sigs.k8s.io/yaml"
)

// Write writes a file, and makes its folder, for the user alone, if there is none.
func Write(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, content, mode)
}

// WriteJSON is [Write] for a value as JSON.
func WriteJSON(path string, value any, mode fs.FileMode) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return Write(path, append(content, '\n'), mode)
}

// ReadJSON reads a value from a file of JSON. The error names the file.
func ReadJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Embedded returns a function that returns the content of a file of YAML that is a part of this program.
func Embedded[T any](name string, text []byte) func() T {
	return sync.OnceValue(func() (content T) {
		if err := yaml.UnmarshalStrict(text, &content); err != nil {
			panic(fmt.Errorf("%s: %w", name, err))
		}
		return content
	})
}

// Absolute makes paths independent of the working folder.
func Absolute(paths ...*string) error {
	for _, path := range paths {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
