package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
)

// The states of clusters and node pools, which GKE's API answers. In another state than running, a
// resource is being changed. GKE completes the change even if the command that asked for it is killed;
// here the next command completes it.
const (
	running  = "RUNNING"
	changing = "RECONCILING"
	stopping = "STOPPING"
)

const (
	// unreachableTimeout is how long an operation outlasts a control plane that does
	// not answer. GKE's own operations do not depend on it.
	unreachableTimeout = 2 * time.Minute
	unreachablePoll    = 500 * time.Millisecond
)

// api simulates Google's APIs, and mirrors clusters and node pools in the control plane.
type api struct {
	cloud    *google.Cloud
	gke      gke.Engine
	progress func(context.Context, string)
}

func (a *api) create(ctx context.Context, kind, name string, request google.Body) error {
	if ofGKE(kind) {
		request["status"] = changing
	}
	if kind == google.Cluster {
		if err := a.gke.Connect(request); err != nil {
			return err
		}
	}
	if err := a.cloud.Create(kind, name, request); err != nil || !ofGKE(kind) {
		return err
	}
	err := a.complete(ctx, kind, name)
	if err == nil {
		return nil
	}
	// A resource that could not be made is not there.
	undone := a.cloud.SetStatus(kind, name, stopping)
	if undone == nil && !transient(err) {
		undone = a.complete(ctx, kind, name)
	}
	if undone != nil {
		err = fmt.Errorf("%w; and %w", err, undone)
	}
	return err
}

// update changes a field. No value is a request that does not name it.
func (a *api) update(ctx context.Context, kind, name, field string, value any) error {
	if !ofGKE(kind) {
		return a.cloud.Update(kind, name, field, value)
	}
	err := a.cloud.SetStatus(kind, name, changing)
	if err == nil && kind == google.NodePool && field == "autoscaling" {
		// A pool that loses its autoscaling keeps the nodes that it has.
		var body google.Body
		if body, err = a.get(ctx, kind, name); err == nil {
			err = a.cloud.Update(kind, name, "nodeCount", body["nodeCount"])
		}
	}
	if err == nil {
		err = a.cloud.Update(kind, name, field, value)
	}
	return errors.Join(err, a.complete(ctx, kind, name))
}

func (a *api) delete(ctx context.Context, kind, name string) error {
	if kind != google.NodePool {
		return a.cloud.Delete(kind, name)
	}
	if err := a.cloud.SetStatus(kind, name, stopping); err != nil {
		return err
	}
	return a.complete(ctx, kind, name)
}

// get returns a resource, or nil if it does not exist. A pool has its number of nodes.
func (a *api) get(ctx context.Context, kind, name string) (google.Body, error) {
	body, err := a.cloud.Get(kind, name)
	if err != nil || body == nil || kind != google.NodePool {
		return body, err
	}
	err = a.steadily(ctx, func() (err error) {
		body["nodeCount"], err = a.gke.CountPool(ctx, name, body)
		return err
	})
	return body, err
}

func ofGKE(kind string) bool { return kind == google.Cluster || kind == google.NodePool }

// complete makes the control plane agree with the API's storage. The next command tries again if the
// control plane does not answer.
func (a *api) complete(ctx context.Context, kind, name string) error {
	body, err := a.cloud.Get(kind, name)
	if err != nil || body == nil {
		return err
	}
	stops := google.Text(body, "status") == stopping
	err = a.steadily(ctx, func() error {
		switch {
		case stops && kind == google.NodePool:
			return a.gke.RemovePool(ctx, name)
		case stops:
			return nil
		case kind == google.NodePool:
			return a.gke.ApplyPool(ctx, name, body, func(message string) { a.progress(ctx, message) })
		default:
			return a.gke.ApplyCluster(ctx, body)
		}
	})
	switch {
	case transient(err):
		return err
	case stops && err == nil:
		return a.cloud.Delete(kind, name)
	default:
		return errors.Join(err, a.cloud.SetStatus(kind, name, running))
	}
}

// resume completes the changes of a command that was killed.
func (a *api) resume(ctx context.Context) error {
	for _, kind := range []string{google.Cluster, google.NodePool} {
		own, err := a.gke.Own(kind)
		if err != nil {
			return err
		}
		for name, body := range own {
			if google.Text(body, "status") == running {
				continue
			}
			if err := a.complete(ctx, kind, name); err != nil {
				return fmt.Errorf("complete the operation on %s: %w", name, err)
			}
		}
	}
	return nil
}

// steadily does something in the control plane, and tries again while that does not answer.
func (a *api) steadily(ctx context.Context, do func() error) (err error) {
	if a.gke.Config == nil {
		return gke.ErrNotRunning
	}
	polled := wait.PollUntilContextTimeout(ctx, unreachablePoll, unreachableTimeout, true, func(context.Context) (bool, error) {
		err = do()
		return !transient(err), nil
	})
	return cmp.Or(err, polled)
}

// transient reports whether an error means that the control plane does not answer now and may answer later.
func transient(err error) bool {
	var unreached *url.Error
	if errors.As(err, &unreached) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && (status.Status().Code >= 500 || status.Status().Code == 429)
}
