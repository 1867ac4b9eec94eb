// Package google simulates the part of Google Cloud's APIs that the program reaches: it answers requests with the
// bodies that the real APIs would answer with, keeps them in files, and refuses what the APIs refuse.
//
// answers.json drives it: answers that Config Connector recorded from the real Google Cloud
// (GoogleCloudPlatform/k8s-config-connector, August 2026), with the requests before them. A service sets by itself the
// fields that a recorded answer has beyond its request, so no default is written a second time here. The table of kinds
// adds what depends on the request: names that come back as paths, values that come back renamed, and rules between
// fields and between resources.
//
// A comment with † marks what no recording shows. There the simulation takes the side that is harder for the program.
package google

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"persia/sandbox/process"
)

// ProjectNumber is the number of every simulated project.
const ProjectNumber = "123456789012"

// lockTimeout is how long a change waits for the changes of other processes. Each takes milliseconds.
const lockTimeout = time.Minute

// Cloud is the simulated Google Cloud. Its bodies are files in a folder, which is there while there are any. They
// outlive the process, and the commands of all stacks share them.
type Cloud struct {
	dir string
	// mu has the goroutines of this process wait for each other without polling the lock.
	mu sync.Mutex
}

// New returns the cloud in a folder.
func New(dir string) *Cloud { return &Cloud{dir: dir} }

// Create creates a resource.
func (c *Cloud) Create(kind, name string, request Body) error {
	return c.locked(kind, name, func(rules rules, old Body) error {
		if old != nil && rules.shared {
			return nil
		}
		if old != nil {
			return refuse(409, "alreadyExists", "The resource '%s' already exists", name)
		}
		var defaults Body
		if rules.defaults != nil {
			defaults = rules.defaults(request)
		}
		return c.answer(rules, kind, name, overlay(defaults, Clone(request), rules.gke), nil)
	})
}

// Update changes one field of a resource. A nil value is a request that names no field.
func (c *Cloud) Update(kind, name, field string, value any) error {
	return c.locked(kind, name, func(rules rules, old Body) error {
		if old == nil {
			return refuse(404, "notFound", "The resource '%s' was not found", name)
		}
		if value == nil && rules.gke {
			return recordedError("container.cluster.emptyUpdate.400")
		}
		body, change := Clone(old), Body{}
		remove(body, field)
		Set(change, field, Clone(value))
		return c.answer(rules, kind, name, overlay(body, change, rules.gke), old)
	})
}

// SetStatus changes the status of a resource, if it exists. No request does so.
func (c *Cloud) SetStatus(kind, name, status string) error {
	return c.locked(kind, name, func(_ rules, old Body) error {
		if old == nil {
			return nil
		}
		old["status"] = status
		return c.write(kind, name, old)
	})
}

// answer has a service complete or refuse a body, and keeps it. old is the body before an update.
func (c *Cloud) answer(rules rules, kind, name string, body, old Body) error {
	if err := check(kind, name, body); err != nil {
		return err
	}
	if rules.complete != nil {
		if err := rules.complete(c, name, body, old); err != nil {
			return err
		}
	}
	for _, needs := range rules.needs {
		of := needs.of(name, body)
		found, err := c.Get(needs.kind, of)
		if err != nil {
			return err
		}
		if found == nil && !needs.foreign && Segment(of) != defaultNetwork {
			return refuse(404, "notFound", "The resource '%s' was not found", of)
		}
	}
	return c.write(kind, name, body)
}

// Delete removes a resource that nothing needs, with its parts.
func (c *Cloud) Delete(kind, name string) error {
	return c.locked(kind, name, func(_ rules, old Body) error {
		if old == nil {
			return nil
		}
		for other, rules := range kinds {
			for _, needs := range rules.needs {
				if needs.kind != kind {
					continue
				}
				bodies, err := c.List(other)
				if err != nil {
					return err
				}
				for user, body := range bodies {
					switch {
					case needs.of(user, body) != name:
					case !needs.whole:
						return refuse(400, "resourceInUseByAnotherResource", "The resource '%s' is already being used by '%s'", name, user)
					default:
						if err := c.erase(other, user); err != nil {
							return err
						}
					}
				}
			}
		}
		return c.erase(kind, name)
	})
}

// locked does something while no other goroutine or process can change the resources. The file of the
// lock is next to the folder, and exists while a process holds the lock.
func (c *Cloud) locked(kind, name string, do func(rules, Body) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	rules, known := kinds[kind]
	if !known {
		return fmt.Errorf("the simulated Google Cloud has no %s", kind)
	}
	if err := os.MkdirAll(filepath.Dir(c.dir), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	file := c.dir + ".lock"
	release, err := process.Lock(ctx, file)
	if err != nil {
		return fmt.Errorf("simulated Google Cloud: %w", err)
	}
	defer release()
	defer os.Remove(file)
	old, err := c.Get(kind, name)
	if err != nil {
		return err
	}
	return do(rules, old)
}
