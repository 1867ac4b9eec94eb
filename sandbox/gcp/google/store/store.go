// Package store keeps the bodies of resources in the files of a folder, which the
// commands of all stacks share.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"persia/sandbox/process"
)

// lockTimeout is how long a change waits for the changes of other processes. Each takes
// milliseconds.
const lockTimeout = time.Minute

// Folder is the path of a folder, which is there while there are any bodies.
type Folder string

// Lock keeps other processes from changing the stored bodies. Its file is next to the folder, and
// exists while a process holds the lock.
func (f Folder) Lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	file := string(f) + ".lock"
	release, err := process.Lock(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("simulated Google Cloud: %w", err)
	}
	return func() {
		_ = os.Remove(file)
		release()
	}, nil
}

func (f Folder) file(kind, name string) string {
	return filepath.Join(string(f), kind, strings.NewReplacer("/", "_", ":", "-").Replace(name)+".json")
}

// kept is the content of a file.
type kept struct {
	Name string         `json:"name"`
	Body map[string]any `json:"body"`
}

// Read returns a body, or nil if there is none.
func (f Folder) Read(kind, name string) (map[string]any, error) {
	found, err := readFile(f.file(kind, name))
	return found.Body, err
}

func readFile(path string) (found kept, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, nil
	}
	if err != nil {
		return kept{}, err
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return kept{}, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// All returns the bodies of a kind, by name.
func (f Folder) All(kind string) (map[string]map[string]any, error) {
	paths, err := filepath.Glob(filepath.Join(string(f), kind, "*.json"))
	if err != nil {
		return nil, err
	}
	bodies := map[string]map[string]any{}
	for _, path := range slices.Sorted(slices.Values(paths)) {
		found, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if found.Name != "" { // else it was deleted meanwhile
			bodies[found.Name] = found.Body
		}
	}
	return bodies, nil
}

// Write keeps a body in the place of the one before.
func (f Folder) Write(kind, name string, body map[string]any) error {
	path := f.file(kind, name)
	text, err := json.MarshalIndent(kept{name, body}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// A command that is killed must not leave half a body behind.
	return renameio.WriteFile(path, text, 0o600)
}

// Erase removes a body, and the folders that it leaves empty.
func (f Folder) Erase(kind, name string) error {
	path := f.file(kind, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, emptied := range []string{filepath.Dir(path), string(f)} {
		if os.Remove(emptied) != nil {
			return nil // not empty
		}
	}
	return nil
}
