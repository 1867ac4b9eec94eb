package gcp

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"persia/sandbox/gcp/google"
)

const (
	clusterKind  = "container.cluster"
	nodePoolKind = "container.nodePool"
)

// api is Google's APIs, with what clusters and node pools are in the control plane.
type api struct {
	*google.Cloud
	gke      gke
	provider *Provider
}

func (a *api) Create(ctx context.Context, kind, name string, request google.Body) error {
	if err := a.Cloud.Create(kind, name, request); err != nil {
		return err
	}
	err := a.apply(ctx, kind, name)
	if err != nil {
		// A resource that could not be made is not there.
		if undone := a.Cloud.Delete(kind, name); undone != nil {
			return fmt.Errorf("%w; and %w", err, undone)
		}
	}
	return err
}

func (a *api) Update(ctx context.Context, kind, name, field string, value any) error {
	if err := a.Cloud.Update(kind, name, field, value); err != nil {
		return err
	}
	return a.apply(ctx, kind, name)
}

// apply makes the control plane agree with a cluster or a node pool.
func (a *api) apply(ctx context.Context, kind, name string) error {
	if kind != clusterKind && kind != nodePoolKind {
		return nil
	}
	properties, err := a.properties(kind, name)
	if err != nil {
		return err
	}
	progress := func(message string) { a.provider.progress(ctx, message) }
	if kind == clusterKind {
		return a.gke.applyCluster(ctx, properties, progress)
	}
	return a.gke.applyNodePool(ctx, properties, progress)
}

// properties are those of a resource as the APIs have it. An autoscaled pool has no
// number of nodes of its own.
func (a *api) properties(kind, name string) (resource.PropertyMap, error) {
	body, err := a.Cloud.Get(kind, name)
	if err != nil {
		return nil, err
	}
	properties, err := a.provider.terraform.Properties(kind, name, body)
	if len(object(properties, "autoscaling")) > 0 {
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
			body["nodeCount"], err = a.gke.countNodes(ctx, properties)
		}
	}
	return body, err
}

func (a *api) Delete(ctx context.Context, kind, name string) error {
	var properties resource.PropertyMap
	if kind == clusterKind || kind == nodePoolKind {
		body, err := a.Cloud.Get(kind, name)
		if err != nil || body == nil {
			return err
		}
		if properties, err = a.properties(kind, name); err != nil {
			return err
		}
	}
	if err := a.Cloud.Delete(kind, name); err != nil {
		return err
	}
	switch kind {
	case clusterKind:
		return a.gke.removeCluster(ctx)
	case nodePoolKind:
		return a.gke.removeNodePool(ctx, properties)
	}
	return nil
}

// access says in a cluster's body how to reach the control plane that stands for
// it.
func (g gke) access(body google.Body) error {
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
