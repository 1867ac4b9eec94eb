package gcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/gcp/google"
	"persia/sandbox/gcp/property"
)

const (
	clusterKind  = "container.cluster"
	nodePoolKind = "container.nodePool"
)

// api simulates Google's APIs, and mirrors clusters and node pools in the control plane.
type api struct {
	*google.Cloud
	gke      kubernetesEngine
	provider *Provider
}

func (a *api) Create(ctx context.Context, kind, name string, request google.Body) error {
	created := false
	err := a.operate(ctx, kind, name, func() error {
		err := a.Cloud.Create(kind, name, request)
		created = err == nil
		return err
	})
	if err != nil && created {
		// A resource that could not be made is not there.
		undone := a.Cloud.Delete(kind, name)
		if !transient(err) {
			undone = errors.Join(undone, a.complete(ctx, operation{kind, name}))
		}
		if undone != nil {
			return fmt.Errorf("%w; and %w", err, undone)
		}
	}
	return err
}

func (a *api) Update(ctx context.Context, kind, name, field string, value any) error {
	return a.operate(ctx, kind, name, func() error { return a.Cloud.Update(kind, name, field, value) })
}

func (a *api) Delete(ctx context.Context, kind, name string) error {
	return a.operate(ctx, kind, name, func() error { return a.Cloud.Delete(kind, name) })
}

// properties returns the properties of a resource as the APIs have them. An autoscaled pool
// has no fixed number of nodes.
func (a *api) properties(kind, name string) (resource.PropertyMap, error) {
	body, err := a.Cloud.Get(kind, name)
	if err != nil {
		return nil, err
	}
	properties, err := a.provider.terraform.Properties(kind, name, body)
	if len(property.Object(properties, "autoscaling")) > 0 {
		delete(properties, "nodeCount")
	}
	return properties, err
}

func (a *api) Get(ctx context.Context, kind, name string) (google.Body, error) {
	body, err := a.Cloud.Get(kind, name)
	if err != nil || body == nil {
		return nil, err
	}
	switch kind {
	case clusterKind:
		err = a.gke.access(body)
	case nodePoolKind:
		var properties resource.PropertyMap
		if properties, err = a.properties(kind, name); err == nil {
			err = a.steadily(ctx, func(kubernetes.Interface) (err error) {
				body["nodeCount"], err = a.gke.nodes.Count(ctx, properties)
				return err
			})
		}
	}
	return body, err
}

// access adds to a cluster's body how to reach the control plane that simulates it.
func (g kubernetesEngine) access(body google.Body) error {
	if g.config == nil {
		return errNotRunning
	}
	certificate := g.config.CAData
	if len(certificate) == 0 {
		var err error
		if certificate, err = os.ReadFile(g.config.CAFile); err != nil {
			return fmt.Errorf("certificate authority of the API server: %w", err)
		}
	}
	body["endpoint"] = strings.TrimPrefix(g.config.Host, "https://")
	google.Set(body, "masterAuth.clusterCaCertificate", base64.StdEncoding.EncodeToString(certificate))
	return nil
}
