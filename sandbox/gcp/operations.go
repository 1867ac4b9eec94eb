package gcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
)

// operationLabel is on the ConfigMaps, in kube-system, of the operations that are
// under way.
const operationLabel = "sandbox.persia.com/operation"

// The keys of an operation in its ConfigMap.
const (
	operationKind = "kind"
	operationName = "name"
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
	created := false
	err := a.operate(ctx, kind, name, func() error {
		err := a.cloud.Create(kind, name, request)
		created = err == nil
		return err
	})
	if err == nil || !created {
		return err
	}
	// A resource that could not be made is not there.
	undone := a.cloud.Delete(kind, name)
	if !transient(err) {
		undone = errors.Join(undone, a.complete(ctx, operation{kind, name}))
	}
	if undone != nil {
		err = fmt.Errorf("%w; and %w", err, undone)
	}
	return err
}

// update changes a field. No value is a request that does not name it.
func (a *api) update(ctx context.Context, kind, name, field string, value any) error {
	return a.operate(ctx, kind, name, func() error {
		if kind == nodePoolKind && field == "autoscaling" {
			// A pool that loses its autoscaling keeps the nodes that it has.
			body, err := a.get(ctx, kind, name)
			if err == nil {
				err = a.cloud.Update(kind, name, "nodeCount", body["nodeCount"])
			}
			if err != nil {
				return err
			}
		}
		return a.cloud.Update(kind, name, field, value)
	})
}

func (a *api) delete(ctx context.Context, kind, name string) error {
	return a.operate(ctx, kind, name, func() error { return a.cloud.Delete(kind, name) })
}

// get returns a resource, or nil if it does not exist. A cluster has the address of the control plane
// that simulates it, and a pool its number of nodes.
func (a *api) get(ctx context.Context, kind, name string) (google.Body, error) {
	body, err := a.cloud.Get(kind, name)
	if err != nil || body == nil {
		return nil, err
	}
	switch kind {
	case clusterKind:
		config := a.gke.Config
		if config == nil {
			return nil, gke.ErrNotRunning
		}
		certificate := config.CAData
		if len(certificate) == 0 {
			if certificate, err = os.ReadFile(config.CAFile); err != nil {
				return nil, fmt.Errorf("certificate authority of the API server: %w", err)
			}
		}
		body["endpoint"] = strings.TrimPrefix(config.Host, "https://")
		google.Set(body, "masterAuth.clusterCaCertificate", base64.StdEncoding.EncodeToString(certificate))
	case nodePoolKind:
		err = a.steadily(ctx, func(kubernetes.Interface) (err error) {
			body["nodeCount"], err = a.gke.CountPool(ctx, name, body)
			return err
		})
	}
	return body, err
}

// operation is a change of a cluster or a node pool. GKE completes it even if the command that
// asked for it is killed. Here the next command completes it, so the simulation records it
// before it begins.
type operation struct{ kind, name string }

// operate changes a resource in the API's storage, and then the control plane.
func (a *api) operate(ctx context.Context, kind, name string, change func() error) error {
	if kind != clusterKind && kind != nodePoolKind {
		return change()
	}
	op := operation{kind, name}
	if err := a.begin(ctx, op); err != nil {
		return err
	}
	if err := change(); err != nil {
		return errors.Join(err, a.end(ctx, op))
	}
	return a.complete(ctx, op)
}

// begin writes an operation down.
func (a *api) begin(ctx context.Context, op operation) error {
	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: op.configMap(), Labels: map[string]string{operationLabel: "true"}},
		Data:       map[string]string{operationKind: op.kind, operationName: op.name},
	}
	return a.steadily(ctx, func(client kubernetes.Interface) error {
		_, err := client.CoreV1().ConfigMaps(written.Namespace).Create(ctx, written, metav1.CreateOptions{})
		return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
	})
}

// complete makes the control plane agree with the API's storage, and strikes the operation out unless
// the next command may have more luck.
func (a *api) complete(ctx context.Context, op operation) error {
	body, err := a.cloud.Get(op.kind, op.name)
	if err != nil {
		return err
	}
	err = a.steadily(ctx, func(kubernetes.Interface) error {
		switch {
		case op.kind == clusterKind && body == nil:
			return nil
		case op.kind == clusterKind:
			return a.gke.ApplyCluster(ctx, body)
		case body == nil:
			return a.gke.RemovePool(ctx, op.name)
		default:
			return a.gke.ApplyPool(ctx, op.name, body, func(message string) { a.progress(ctx, message) })
		}
	})
	if transient(err) {
		return err
	}
	return errors.Join(err, a.end(ctx, op))
}

func (a *api) end(ctx context.Context, op operation) error {
	return a.steadily(ctx, func(client kubernetes.Interface) error {
		err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, op.configMap(), metav1.DeleteOptions{})
		return utilerrors.FilterOut(err, apierrors.IsNotFound)
	})
}

// resume completes the operations of a command that was killed.
func (a *api) resume(ctx context.Context) error {
	var list *corev1.ConfigMapList
	err := a.steadily(ctx, func(client kubernetes.Interface) (err error) {
		list, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: operationLabel})
		return err
	})
	if err != nil {
		return err
	}
	for _, written := range list.Items {
		op := operation{written.Data[operationKind], written.Data[operationName]}
		if err := a.complete(ctx, op); err != nil {
			return fmt.Errorf("complete the operation on %s: %w", op.name, err)
		}
	}
	return nil
}

// configMap returns the name of the operation's. A resource has one operation at a time.
func (o operation) configMap() string {
	hash := fnv.New64a()
	fmt.Fprint(hash, o.kind, " ", o.name)
	return fmt.Sprintf("operation.%016x", hash.Sum64())
}

// steadily tries again while the control plane does not answer.
func (a *api) steadily(ctx context.Context, do func(kubernetes.Interface) error) error {
	client, err := a.gke.Client()
	if err != nil {
		return err
	}
	polled := wait.PollUntilContextTimeout(ctx, unreachablePoll, unreachableTimeout, true, func(context.Context) (bool, error) {
		err = do(client)
		return !transient(err), nil
	})
	if err == nil {
		return polled
	}
	return err
}

// transient reports whether an error means that the control plane does not answer now and may
// answer later.
func transient(err error) bool {
	var unreached *url.Error
	if errors.As(err, &unreached) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && (status.Status().Code >= 500 || status.Status().Code == 429)
}
