package google

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ProjectNumber is the number of every simulated project.
const ProjectNumber = "123456789012"

// Settings are what Google changes on its side from one version of GKE to the
// next.
type Settings struct {
	// L4ILBSubsetting turns subsetting of internal load balancers on in clusters
	// that say nothing of it, or false, as GKE 1.36 does.
	L4ILBSubsetting bool
}

// Cloud is the simulated Google Cloud. Its bodies are files in a folder, which is
// there while there are any. They outlive the process.
type Cloud struct {
	dir      string
	settings Settings

	mu       sync.Mutex
	requests []Request
}

// Request is a request that changes something.
type Request struct {
	// Method is POST, PATCH or DELETE.
	Method string
	// Kind and Name say what it changes.
	Kind, Name string
	// Field is what an update changes.
	Field string
}

// New returns the cloud in a folder.
func New(dir string, settings Settings) *Cloud { return &Cloud{dir: dir, settings: settings} }

// Requests are those that changed something, or tried, since the last call.
func (c *Cloud) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// Create makes a resource.
func (c *Cloud) Create(kind, name string, request Body) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, Request{"POST", kind, name, ""})
	rules, err := rulesOf(kind)
	if err != nil {
		return err
	}
	existing, err := c.read(kind, name)
	if err != nil {
		return err
	}
	if existing != nil {
		if rules.shared {
			return nil
		}
		return refuse(409, "alreadyExists", "The resource '%s' already exists", name)
	}
	if rules.check != nil {
		if err := rules.check(c, name, request); err != nil {
			return err
		}
	}
	body := overlay(rules.defaults(name, request), Clone(request), rules.leftOut())
	if rules.create != nil {
		rules.create(c, name, body)
	}
	return c.answer(rules, kind, name, body)
}

// Update changes one field of a resource. No value takes what is there away.
func (c *Cloud) Update(kind, name, field string, value any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, Request{"PATCH", kind, name, field})
	rules, err := rulesOf(kind)
	if err != nil {
		return err
	}
	body, err := c.read(kind, name)
	if err != nil {
		return err
	}
	if body == nil {
		return rules.notFound(name)
	}
	if value == nil {
		if rules.gke {
			return recordedError("container.cluster.emptyUpdate.400", nil)
		}
		remove(body, field)
	} else {
		change := Body{}
		Set(change, field, Clone(value))
		remove(body, field)
		body = overlay(body, change, rules.leftOut())
	}
	if rules.check != nil {
		if err := rules.check(c, name, body); err != nil {
			return err
		}
	}
	return c.answer(rules, kind, name, body)
}

// answer has a service complete a body, and keeps it.
func (c *Cloud) answer(rules rules, kind, name string, body Body) error {
	if rules.normalize != nil {
		if err := rules.normalize(c, name, body); err != nil {
			return err
		}
	}
	return c.write(kind, name, body)
}

// Get answers with a resource, nil if there is none.
func (c *Cloud) Get(kind, name string) (Body, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read(kind, name)
}

// List answers with all resources of a kind, in the order of their names.
func (c *Cloud) List(kind string) (map[string]Body, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all(kind)
}

// Delete removes a resource that nothing uses.
func (c *Cloud) Delete(kind, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, Request{"DELETE", kind, name, ""})
	rules, err := rulesOf(kind)
	if err != nil {
		return err
	}
	body, err := c.read(kind, name)
	if err != nil || body == nil {
		return err
	}
	if rules.inUse != nil {
		user, err := rules.inUse(c, name)
		if err != nil {
			return err
		}
		if user != "" {
			return refuse(400, "resourceInUseByAnotherResource", "The resource '%s' is already being used by '%s'", name, user)
		}
	}
	if rules.deleted != nil {
		if err := rules.deleted(c, name, body); err != nil {
			return err
		}
	}
	return c.erase(kind, name)
}

func (c *Cloud) file(kind, name string) string {
	return filepath.Join(c.dir, kind, strings.NewReplacer("/", "_", ":", "-").Replace(name)+".json")
}

// kept is the content of a file.
type kept struct {
	Name string `json:"name"`
	Body Body   `json:"body"`
}

func (c *Cloud) read(kind, name string) (Body, error) {
	found, err := readFile(c.file(kind, name))
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

func (c *Cloud) all(kind string) (map[string]Body, error) {
	paths, err := filepath.Glob(filepath.Join(c.dir, kind, "*.json"))
	if err != nil {
		return nil, err
	}
	bodies := map[string]Body{}
	for _, path := range slices.Sorted(slices.Values(paths)) {
		found, err := readFile(path)
		if err != nil {
			return nil, err
		}
		bodies[found.Name] = found.Body
	}
	return bodies, nil
}

func (c *Cloud) write(kind, name string, body Body) error {
	path := c.file(kind, name)
	text, err := json.MarshalIndent(kept{name, body}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// A command that is killed must not leave half a body behind.
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// erase removes a file, and the folders that it leaves empty.
func (c *Cloud) erase(kind, name string) error {
	path := c.file(kind, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, folder := range []string{filepath.Dir(path), c.dir} {
		if os.Remove(folder) != nil {
			return nil // not empty
		}
	}
	return nil
}
