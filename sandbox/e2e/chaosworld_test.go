package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"persia/sandbox"
	"persia/sandbox/gcp/google"
)

// world lists the objects in the control plane and the resources in the simulated Google Cloud.
type world struct {
	// Objects are the objects of the control plane, except objects that come and go by themselves.
	Objects []string
	// Unready are the pods and workloads that are not ready.
	Unready []string
	// Google has the resources of Google Cloud, and Kept the marks of the storage.
	Google, Kept []string
}

func (x *chaosStack) look(ctx context.Context) (w world, err error) {
	if err := w.addObjects(ctx, x.sandbox); err != nil {
		return w, err
	}
	storage := filepath.Join(x.dir, "storage")
	err = filepath.WalkDir(storage, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !entry.IsDir() {
			w.Google = append(w.Google, strings.TrimPrefix(path, storage+"/"))
		}
		return err
	})
	if err != nil {
		return w, err
	}
	cloud := google.New(storage)
	for _, kind := range keptKinds {
		bodies, err := cloud.List(kind)
		if err != nil {
			return w, err
		}
		for name, body := range bodies {
			w.Kept = append(w.Kept, fmt.Sprintf("%s %s: %v", kind, name, body["checkpoint"]))
		}
	}
	return w, nil
}

// addObjects adds the objects of the control plane.
func (w *world) addObjects(ctx context.Context, s *sandbox.Sandbox) error {
	err := eachObject(ctx, s, w.add)
	slices.Sort(w.Objects)
	w.Objects = slices.Compact(w.Objects)
	return err
}

// eachObject calls see with each object of the control plane.
func eachObject(ctx context.Context, s *sandbox.Sandbox, see func(unstructured.Unstructured)) error {
	config, err := s.Cluster().RESTConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			items, err := client.Resource(gv.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("%s: %w", kind.Name, err)
			}
			for _, item := range items.Items {
				see(item)
			}
		}
	}
	return nil
}

func (w *world) add(item unstructured.Unstructured) {
	name := fmt.Sprintf("%s %s/%s", item.GetKind(), item.GetNamespace(), item.GetName())
	if !ready(item) {
		w.Unready = append(w.Unready, name)
	}
	if !passing[item.GetKind()] && !ownOfControlPlane(item) {
		w.Objects = append(w.Objects, name)
	}
}

// ready says whether a pod or a workload is ready. What is of another kind always is.
func ready(item unstructured.Unstructured) bool {
	switch item.GetKind() {
	case "Pod":
		conditions, _, _ := unstructured.NestedSlice(item.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(condition any) bool {
			of, _ := condition.(map[string]any)
			return of["type"] == "Ready" && of["status"] == "True"
		})
	case "StatefulSet", "Deployment":
		wanted, _, _ := unstructured.NestedInt64(item.Object, "spec", "replicas")
		found, _, _ := unstructured.NestedInt64(item.Object, "status", "readyReplicas")
		return found == wanted
	}
	return true
}

// passing are the kinds whose objects come, go and are named by themselves.
var passing = map[string]bool{
	"Event": true, "Lease": true, "Pod": true, "ReplicaSet": true, "ControllerRevision": true,
	"EndpointSlice": true, "Endpoints": true, "Workload": true, "APIService": true, "ComponentStatus": true, "IPAddress": true,
}

func ownOfControlPlane(item unstructured.Unstructured) bool {
	return strings.HasPrefix(item.GetNamespace(), "kube-") || strings.HasPrefix(item.GetName(), "system") ||
		item.GetName() == "kube-root-ca.crt" || item.GetNamespace() == metav1.NamespaceDefault
}
