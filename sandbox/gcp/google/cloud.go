package google

import (
	"sync"

	"persia/sandbox/gcp/google/merge"
	"persia/sandbox/gcp/google/store"
)

// ProjectNumber is the number of every simulated project.
const ProjectNumber = "123456789012"

// Settings are values that Google changes on its side from one version of GKE to the
// next.
type Settings struct {
	// L4ILBSubsetting turns subsetting of internal load balancers on in clusters that omit it or
	// set it to false, as GKE 1.36 does.
	L4ILBSubsetting bool
}

// Cloud is the simulated Google Cloud. Its bodies are files in a folder, which is
// there while there are any. They outlive the process, and the commands of all stacks
// share them.
type Cloud struct {
	kept     store.Folder
	settings Settings

	mu       sync.Mutex
	requests []Request
}

// Request is a request that changes something.
type Request struct {
	// Method is POST, PATCH or DELETE.
	Method string
	// Kind and Name identify the resource.
	Kind, Name string
	// Field is the field that an update changes.
	Field string
}

// New returns the cloud in a folder.
func New(dir string, settings Settings) *Cloud {
	return &Cloud{kept: store.Folder(dir), settings: settings}
}

// Requests returns the requests since the last call that changed something or tried to.
func (c *Cloud) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// Create creates a resource.
func (c *Cloud) Create(kind, name string, request Body) error {
	rules, unlock, err := c.begin(Request{"POST", kind, name, ""})
	if err != nil {
		return err
	}
	defer unlock()
	existing, err := c.kept.Read(kind, name)
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
	body := merge.Overlay(rules.defaults(name, request), Clone(request), rules.leftOut())
	if rules.create != nil {
		if err := rules.create(c, name, body); err != nil {
			return err
		}
	}
	return c.answer(rules, kind, name, body)
}

// Update changes one field of a resource. A nil value removes the field.
func (c *Cloud) Update(kind, name, field string, value any) error {
	rules, unlock, err := c.begin(Request{"PATCH", kind, name, field})
	if err != nil {
		return err
	}
	defer unlock()
	body, err := c.kept.Read(kind, name)
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
		body = merge.Overlay(body, change, rules.leftOut())
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
	return c.kept.Write(kind, name, body)
}

// Get returns a resource, or nil if it does not exist.
func (c *Cloud) Get(kind, name string) (Body, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.Read(kind, name)
}

// List answers with all resources of a kind, in the order of their names.
func (c *Cloud) List(kind string) (map[string]Body, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.All(kind)
}

// Delete removes a resource that nothing uses.
func (c *Cloud) Delete(kind, name string) error {
	rules, unlock, err := c.begin(Request{"DELETE", kind, name, ""})
	if err != nil {
		return err
	}
	defer unlock()
	body, err := c.kept.Read(kind, name)
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
	return c.kept.Erase(kind, name)
}

// eraseParts erases the resources of a kind that are part of a resource, by their names.
func (c *Cloud) eraseParts(kind string, isPart func(name string) bool) error {
	bodies, err := c.kept.All(kind)
	if err != nil {
		return err
	}
	for name := range bodies {
		if isPart(name) {
			if err := c.kept.Erase(kind, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin records a request and returns the rules of its kind. Until unlock, no other goroutine or
// process can change the resources.
func (c *Cloud) begin(request Request) (rules rules, unlock func(), err error) {
	c.mu.Lock()
	release, err := c.kept.Lock()
	if err != nil {
		c.mu.Unlock()
		return rules, nil, err
	}
	unlock = func() {
		release()
		c.mu.Unlock()
	}
	c.requests = append(c.requests, request)
	if rules, err = rulesOf(request.Kind); err != nil {
		unlock()
	}
	return rules, unlock, err
}
