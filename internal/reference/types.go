package reference

import (
	"encoding/json"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/config/input"
)

// Kind is the kind of a value, in the terms of the reference.
type Kind string

// The kinds of values.
const (
	Text     Kind = "text"
	Integer  Kind = "integer"
	Number   Kind = "number"
	Boolean  Kind = "boolean"
	Quantity Kind = "quantity"
	Object   Kind = "object"
	// Anything is a value of a type with its own UnmarshalJSON.
	Anything Kind = "value"
	// List is a list of values of one type.
	List Kind = "list"
	// Map is an object of values of one type, with names that the user chooses.
	Map Kind = "map"
)

// Type is the type of a value.
type Type struct {
	Kind Kind
	// Elem is the type of the elements of a List or a Map.
	Elem *Type
	// Section is the path of the section that describes an Object.
	Section string
	// Values are the allowed values of a Text, or nil.
	Values []Value
	// Quoted is true for a Quantity that must be a string, not a number.
	Quoted bool
	// Secret is true for a Text that messages and state must not contain.
	Secret bool
	// Kubernetes is the name of a Kubernetes type, and URL its description.
	Kubernetes, URL string
}

// innermost returns the type inside of lists and maps.
func (t *Type) innermost() *Type {
	for t.Elem != nil {
		t = t.Elem
	}
	return t
}

// Value is one value of an enumeration. Doc is a sentence without its subject, the value, like
// "lets GKE install the driver.", or "".
type Value struct {
	Text, Doc string
}

// apiReference is the Kubernetes API reference.
const apiReference = "https://kubernetes.io/docs/reference/kubernetes-api/"

// kubernetes maps Kubernetes types to their page in the API reference. An enumeration is on the
// page of the object that uses it.
var kubernetes = map[reflect.Type]string{
	reflect.TypeFor[corev1.EnvVar]():                        apiReference + "core/pod-v1/#EnvVar",
	reflect.TypeFor[corev1.LocalObjectReference]():          apiReference + "core/pod-v1/#PodSpec",
	reflect.TypeFor[corev1.PersistentVolumeAccessMode]():    apiReference + "core/persistent-volume-v1/#PersistentVolumeSpec",
	reflect.TypeFor[corev1.PersistentVolumeReclaimPolicy](): apiReference + "core/persistent-volume-v1/#PersistentVolumeSpec",
	reflect.TypeFor[corev1.PullPolicy]():                    apiReference + "core/pod-v1/#Container",
	reflect.TypeFor[corev1.ResourceRequirements]():          apiReference + "core/pod-v1/#ResourceRequirements",
	reflect.TypeFor[corev1.RestartPolicy]():                 apiReference + "core/pod-v1/#PodSpec",
	reflect.TypeFor[corev1.ServiceType]():                   apiReference + "core/service-v1/#ServiceSpec",
	reflect.TypeFor[corev1.TaintEffect]():                   apiReference + "core/node-v1/#Taint",
	reflect.TypeFor[corev1.Toleration]():                    apiReference + "core/pod-v1/#PodSpec",
	reflect.TypeFor[corev1.Volume]():                        apiReference + "core/pod-v1/#PodSpec",
	reflect.TypeFor[corev1.VolumeMount]():                   apiReference + "core/pod-v1/#Container",
	reflect.TypeFor[networkingv1.IngressTLS]():              apiReference + "networking/ingress-v1/#IngressSpec",
}

// typeOf describes the type of the value at a path. The objects in it must have sections.
func (w *walker) typeOf(path string, t reflect.Type) Type {
	if t == reflect.TypeFor[resource.Quantity]() {
		return Type{Kind: Quantity}
	}
	if readsItself(t) {
		return Type{Kind: Anything}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.typeOf(path, t.Elem())
	case reflect.Slice:
		elem := w.typeOf(path, t.Elem())
		return Type{Kind: List, Elem: &elem}
	case reflect.Map:
		elem := w.typeOf(path, t.Elem())
		return Type{Kind: Map, Elem: &elem}
	}
	described := Type{Kind: kindOf(t), Secret: t == reflect.TypeFor[input.Secret]()}
	switch {
	case described.Kind == "":
		w.problem("%s: package reference has no word for a value of type %s; add one to kindOf", path, t)
	case isObject(t):
		described.Section = w.objects[t].Path
	case isOwn(t):
		described.Values = w.comments.values[nameOf(t)]
	}
	if !isOwn(t) && t.PkgPath() != "" {
		described.Kubernetes, described.URL = t.Name(), kubernetes[t]
	}
	return described
}

// kindOf returns the kind of a single value, or "".
func kindOf(t reflect.Type) Kind {
	switch t.Kind() {
	case reflect.String:
		return Text
	case reflect.Int, reflect.Int32, reflect.Int64:
		return Integer
	case reflect.Float64:
		return Number
	case reflect.Bool:
		return Boolean
	case reflect.Struct:
		return Object
	}
	return ""
}

// unwrap returns the type inside of pointers, lists and maps, and their part of a path.
func unwrap(t reflect.Type) (inner reflect.Type, path string) {
	switch t.Kind() {
	case reflect.Pointer:
		return unwrap(t.Elem())
	case reflect.Slice:
		inner, path = unwrap(t.Elem())
		return inner, "[]" + path
	case reflect.Map:
		inner, path = unwrap(t.Elem())
		return inner, "[NAME]" + path
	}
	return t, ""
}

// isObject reports whether a type is an object with a section.
func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !readsItself(t)
}

// readsItself reports whether a type has its own UnmarshalJSON.
func readsItself(t reflect.Type) bool {
	return t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// aboutKubernetes describes a field of a Kubernetes type in a sentence, or the type itself if the
// name is empty.
func aboutKubernetes(t reflect.Type, name string) string {
	described, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
	if !ok {
		return ""
	}
	return firstSentence(oneLine(described.SwaggerDoc()[name]))
}

// isOwn reports whether a type is in package config or below it.
func isOwn(t reflect.Type) bool {
	root := reflect.TypeFor[config.Stack]().PkgPath()
	return t.PkgPath() == root || strings.HasPrefix(t.PkgPath(), root+"/")
}
