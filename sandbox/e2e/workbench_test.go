package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"persia/sandbox"
	"persia/sandbox/kubeprovider/readiness"
)

// workbench is a cluster on which one tool after the other brings up the same objects.
type workbench struct {
	kubeconfig string
	objects    []*unstructured.Unstructured
	client     dynamic.Interface
	mapper     meta.RESTMapper
}

// newWorkbench asks the API server, which must have all kinds of the objects by now, for
// its kinds.
func newWorkbench(b *testing.B, s *sandbox.Sandbox, objects []*unstructured.Unstructured) *workbench {
	b.Helper()
	config, err := s.Cluster().RESTConfig()
	require.NoError(b, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(b, err)
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
	require.NoError(b, err)
	return &workbench{s.Kubeconfig(), objects, client, restmapper.NewDiscoveryRESTMapper(groups)}
}

// ofKind returns the objects of a kind in all namespaces.
func (w *workbench) ofKind(b *testing.B, kind schema.GroupVersionKind) dynamic.NamespaceableResourceInterface {
	b.Helper()
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	require.NoError(b, err)
	return w.client.Resource(mapping.Resource)
}

// list returns the objects of a kind by namespace and name. A kind that is not there has none.
func (w *workbench) list(b *testing.B, kind schema.GroupVersionKind) map[string]*unstructured.Unstructured {
	b.Helper()
	list, err := w.ofKind(b, kind).List(b.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(b, err)
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		found[key(&list.Items[i])] = &list.Items[i]
	}
	return found
}

func key(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// await waits until all objects are ready, by the rules by which `up` waits for them.
func (w *workbench) await(b *testing.B) {
	b.Helper()
	w.until(b, w.objects, func(found *unstructured.Unstructured) bool {
		if found == nil {
			return false
		}
		isReady, err := readiness.Of(b.Context(), w.client, found)
		require.NoError(b, err)
		is, _, err := isReady(found)
		require.NoError(b, err, "%s %s", found.GetKind(), key(found))
		return is
	})
}

// until looks at the objects, as they are in the cluster or nil, until each has been as
// it should be.
func (w *workbench) until(b *testing.B, objects []*unstructured.Unstructured, good func(*unstructured.Unstructured) bool) {
	b.Helper()
	const patience, pause = 15 * time.Minute, 200 * time.Millisecond
	left := slices.Clone(objects)
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		listed := map[schema.GroupVersionKind]map[string]*unstructured.Unstructured{}
		left = slices.DeleteFunc(left, func(object *unstructured.Unstructured) bool {
			kind := object.GroupVersionKind()
			if _, asked := listed[kind]; !asked {
				listed[kind] = w.list(b, kind)
			}
			return good(listed[kind][key(object)])
		})
		if len(left) == 0 {
			return
		}
		require.True(b, time.Now().Before(deadline), "%d of %d objects are not there, the first %s %s",
			len(left), len(objects), left[0].GetKind(), key(left[0]))
	}
}

// remove deletes all objects and waits until they are gone.
func (w *workbench) remove(b *testing.B) {
	b.Helper()
	first, namespaces, others := w.removals(b)
	for _, objects := range [][]*unstructured.Unstructured{first, namespaces, others} {
		for _, object := range objects {
			err := w.ofKind(b, object.GroupVersionKind()).Namespace(object.GetNamespace()).
				Delete(b.Context(), object.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
			if !apierrors.IsNotFound(err) {
				require.NoError(b, err)
			}
		}
		w.until(b, objects, func(found *unstructured.Unstructured) bool { return found == nil })
	}
}

// removals returns the objects to delete, in order: the Jobs, whose running pods would outlive
// them if their namespace went first, and the bindings of policies, which keep claims; the
// stack's namespaces, with all else that is in them; and what is in none of these.
func (w *workbench) removals(b *testing.B) (first, namespaces, others []*unstructured.Unstructured) {
	b.Helper()
	own := map[string]bool{}
	for _, object := range w.objects {
		if object.GetKind() == "Namespace" {
			own[object.GetName()] = true
			namespaces = append(namespaces, object)
		}
	}
	for _, object := range w.objects {
		switch {
		case object.GetKind() == "ValidatingAdmissionPolicyBinding":
			first = append(first, object)
		case object.GetKind() != "Namespace" && !own[object.GetNamespace()]:
			others = append(others, object)
		}
	}
	for _, job := range w.list(b, batchv1.SchemeGroupVersion.WithKind("Job")) {
		if own[job.GetNamespace()] {
			first = append(first, job)
		}
	}
	return first, namespaces, others
}
