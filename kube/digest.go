package kube

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/config"
)

// markPods annotates an object that has pods, unless its kind has none.
func markPods(object runtime.Object, kind string) error {
	meta, hasMeta := object.(metav1.Object)
	pods, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil || !hasMeta {
		return err
	}
	spec, _ := pods["spec"].(map[string]any)
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		spec, _ = spec["template"].(map[string]any)
	case "JobSet", "PersiaJob":
		removeCounts(spec)
	default:
		return nil
	}
	text, err := json.Marshal(spec)
	annotations := maps.Clone(meta.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[config.PodsAnnotation] = Hash(string(text))
	meta.SetAnnotations(annotations)
	return err
}

// removeCounts removes what starts or ends pods without a change of them.
func removeCounts(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, count := range []string{"replicas", "completions", "parallelism", "suspend"} {
			delete(value, count)
		}
		for _, inner := range value {
			removeCounts(inner)
		}
	case []any:
		for _, inner := range value {
			removeCounts(inner)
		}
	}
}
