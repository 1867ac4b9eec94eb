package google

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"persia/sandbox/files"
)

// kept is the content of a file.
type kept struct {
	Name string `json:"name"`
	Body Body   `json:"body"`
}

// longestFile leaves room for the ending of a file's name, and for that of its temporary copy.
const longestFile = 200

func (c *Cloud) file(kind, name string) string {
	file := strings.NewReplacer("/", "_", ":", "-").Replace(name)
	if len(file) > longestFile {
		file = file[:longestFile] + hash(name)
	}
	return filepath.Join(c.dir, kind, file+".json")
}

// Get returns a resource, or nil if it does not exist.
func (c *Cloud) Get(kind, name string) (Body, error) {
	found, err := readFile(c.file(kind, name))
	return found.Body, err
}

func readFile(path string) (found kept, err error) {
	if err := files.ReadJSON(path, &found); !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	return kept{}, nil
}

// List returns all resources of a kind, by name.
func (c *Cloud) List(kind string) (map[string]Body, error) {
	paths, err := filepath.Glob(filepath.Join(c.dir, kind, "*.json"))
	if err != nil {
		return nil, err
	}
	bodies := map[string]Body{}
	for _, path := range paths {
		found, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if found.Name != "" { // else another process has deleted it meanwhile
			bodies[found.Name] = found.Body
		}
	}
	return bodies, nil
}

func (c *Cloud) write(kind, name string, body Body) error {
	return files.WriteJSON(c.file(kind, name), kept{name, body}, 0o600)
}

// erase removes a body, and the folders that it leaves empty.
func (c *Cloud) erase(kind, name string) error {
	path := c.file(kind, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A folder that is not empty stays.
	if os.Remove(filepath.Dir(path)) == nil {
		_ = os.Remove(c.dir)
	}
	return nil
}
