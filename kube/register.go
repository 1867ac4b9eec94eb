package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"persia/config"
)

// Object is a registered Kubernetes object, with values that the cluster assigns.
type Object struct {
	pulumi.CustomResourceState

	Metadata pulumi.MapOutput `pulumi:"metadata"`
	Spec     pulumi.MapOutput `pulumi:"spec"`
	Status   pulumi.MapOutput `pulumi:"status"`
}

// Version changes with each change of the object, and reveals nothing of its content. A pod template that contains the
// Version of a Secret restarts its pods when the Secret changes.
func (o *Object) Version() pulumi.Output {
	return o.Metadata.MapIndex(pulumi.String("resourceVersion"))
}

// kinds maps Go types to their API version and kind.
var kinds = runtime.NewScheme()

func init() {
	utilruntime.Must(admissionv1.AddToScheme(kinds))
	utilruntime.Must(appsv1.AddToScheme(kinds))
	utilruntime.Must(batchv1.AddToScheme(kinds))
	utilruntime.Must(corev1.AddToScheme(kinds))
	utilruntime.Must(extensionsv1.AddToScheme(kinds))
	utilruntime.Must(networkingv1.AddToScheme(kinds))
	utilruntime.Must(policyv1.AddToScheme(kinds))
	utilruntime.Must(rbacv1.AddToScheme(kinds))
	utilruntime.Must(schedulingv1.AddToScheme(kinds))
}

// register registers an object. Its errors name the kind and the resource.
func register(ctx *pulumi.Context, name string, object runtime.Object, later Later, opts ...pulumi.ResourceOption) (*Object, error) {
	gvk, err := kindOf(object)
	if err != nil {
		return nil, fmt.Errorf("register %s: %w", name, err)
	}
	if err := markPods(object, gvk.Kind); err != nil {
		return nil, fmt.Errorf("register %s %s: %w", gvk.Kind, name, err)
	}
	registered := &Object{}
	inputs, err := inputs(object, gvk)
	if err == nil {
		later.into(inputs)
		err = ctx.RegisterResource(token(gvk), name, inputs, registered, opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("register %s %s: %w", gvk.Kind, name, err)
	}
	return registered, nil
}

// kindOf returns the kind that an object names, as custom resources do, or the kind of its Go type.
func kindOf(object runtime.Object) (schema.GroupVersionKind, error) {
	if gvk := object.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		return gvk, nil
	}
	gvks, _, err := kinds.ObjectKinds(object)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return gvks[0], nil
}

// token returns the SDK's type token, in which the group without a name is called core.
func token(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("kubernetes:%s/%s:%s", cmp.Or(gvk.Group, "core"), gvk.Version, gvk.Kind)
}

// inputs returns the fields of object without its status, which belongs to the cluster.
// The content of a Secret becomes a Pulumi secret.
func inputs(object runtime.Object, gvk schema.GroupVersionKind) (pulumi.Map, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	fields["apiVersion"], fields["kind"] = gvk.ToAPIVersionAndKind()
	converted := toMap(fields)
	if secret, ok := object.(*corev1.Secret); ok && secret.Data != nil {
		converted["data"] = pulumi.ToSecret(converted["data"])
	}
	return converted, nil
}

// toMap converts an object to maps of JSON's types, without fields that were never set.
func toMap(fields map[string]any) pulumi.Map {
	converted := pulumi.Map{}
	for name, value := range fields {
		switch {
		case name == "subresources":
			// An enabled one is an empty object.
			converted[name] = pulumi.Any(value)
		case !unwritten(name, value):
			converted[name] = toInput(value)
		}
	}
	return converted
}

// unwritten reports whether a field was never set, although Kubernetes' Go types print it: null for a time, and an
// empty object for a struct that is not a pointer, which omitempty does not omit. The API server fills these fields in,
// so a provider that compares inputs with the server's object would see a change in every plan.
func unwritten(name string, value any) bool {
	if value == nil {
		return true
	}
	object, ok := value.(map[string]any)
	return ok && len(object) == 0 && slices.Contains([]string{"resources", "spec", "status", "strategy", "updateStrategy"}, name)
}

func toInput(value any) pulumi.Input {
	switch value := value.(type) {
	case map[string]any:
		return toMap(value)
	case []any:
		converted := make(pulumi.Array, len(value))
		for i, element := range value {
			converted[i] = toInput(element)
		}
		return converted
	default:
		return pulumi.Any(value)
	}
}

// Later holds fields of an object that are outputs of other resources, by path. All
// other fields stay plain values, which a preview shows.
//
// A path is like spec.csi.volumeAttributes.ip.
type Later map[string]pulumi.Input

// into adds the fields to the inputs of an object.
func (l Later) into(inputs pulumi.Map) {
	for _, path := range slices.Sorted(maps.Keys(l)) {
		names := strings.Split(path, ".")
		parent, last := inputs, len(names)-1
		for _, name := range names[:last] {
			child, ok := parent[name].(pulumi.Map)
			if !ok {
				child = pulumi.Map{}
				parent[name] = child
			}
			parent = child
		}
		parent[names[last]] = l[path]
	}
}

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
	digest := map[string]string{config.PodsAnnotation: Hash(string(JSON(spec)))}
	meta.SetAnnotations(labels.Merge(meta.GetAnnotations(), digest))
	return nil
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

// Custom is an object of a kind that a CustomResourceDefinition defines. Its TypeMeta
// names the kind, and Spec has the fields that the program writes.
type Custom[Spec any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

// DeepCopyObject copies the object, as [runtime.Object] requires.
func (c *Custom[Spec]) DeepCopyObject() runtime.Object { return Copy(c) }

// Copy copies an object that is plain data.
func Copy[T any](object *T) *T {
	copied := new(T)
	utilruntime.Must(json.Unmarshal(JSON(object), copied))
	return copied
}

// JSON writes plain data as JSON, which cannot fail.
func JSON(data any) []byte {
	text, err := json.Marshal(data)
	utilruntime.Must(err)
	return text
}
