package kubeprovider

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
)

// fieldManager owns what this provider writes. The official provider makes up
// one name for each resource, with the same prefix.
const fieldManager = "pulumi-kubernetes-sandbox"

// writersTakenOver are the prefixes of the field managers whose plain writes an update takes over:
// the provider's own create, and kubectl. Fields of all others, and of kubectl through a
// subresource such as scale, conflict.
var writersTakenOver = []string{"kubectl", "before-first-apply", "pulumi-kubernetes", "pulumi-resource-kubernetes"}

// takeOver makes the fields that the create or kubectl wrote this provider's own,
// so that an update can change and remove them.
func takeOver(
	ctx context.Context, r dynamic.ResourceInterface, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	writers := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && takenOver(entry.Manager) {
			writers.Insert(entry.Manager)
		}
	}
	if len(writers) == 0 {
		return live, nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, writers, fieldManager)
	if err != nil || patch == nil {
		return live, err
	}
	live, err = r.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("taking over its fields: %w", err)
	}
	return live, nil
}

func takenOver(manager string) bool {
	for _, prefix := range writersTakenOver {
		if strings.HasPrefix(manager, prefix) {
			return true
		}
	}
	return false
}

// createdOnly says whether the provider's create is still recorded as a plain
// write: a dry run cannot take it over, and is forced instead.
func createdOnly(live *unstructured.Unstructured) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && takenOver(entry.Manager) {
			return true
		}
	}
	return len(live.GetManagedFields()) == 0
}
