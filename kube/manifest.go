package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"
)

// Manifest returns the objects of YAML documents, in which [Fill] fills in values. The documents are files of the
// program: it panics at a mistake in them. Kinds that are not Kubernetes' own are [Custom].
func Manifest(documents string, values any) []runtime.Object {
	var objects []runtime.Object
	for document := range strings.SplitSeq(Fill(documents, values), "---\n") {
		var kind metav1.TypeMeta
		text, err := yaml.YAMLToJSONStrict([]byte(document))
		utilruntime.Must(err)
		utilruntime.Must(json.Unmarshal(text, &kind))
		object, err := kinds.New(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
		if runtime.IsNotRegisteredError(err) {
			object = &Custom[map[string]any]{}
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(object); err != nil {
			panic(fmt.Errorf("%s in a manifest: %w", kind.Kind, err))
		}
		objects = append(objects, object)
	}
	return objects
}

// ByKind returns the objects of a [Manifest] by their kinds, or by the name of the resource in Pulumi that an object has
// in an annotation, like a second object of a kind.
func ByKind(documents string, values any) map[string]runtime.Object {
	objects := map[string]runtime.Object{}
	for _, object := range Manifest(documents, values) {
		objects[resourceOf(object, object.GetObjectKind().GroupVersionKind().Kind)] = object
	}
	return objects
}

// resourceAnnotation of an object in a manifest is the name of its resource in Pulumi, where that is not the usual one.
const resourceAnnotation = "resource"

// resourceOf returns the name of an object's resource in Pulumi, and removes its annotation.
func resourceOf(object runtime.Object, usual string) string {
	annotations := metaOf(object).Annotations
	defer delete(annotations, resourceAnnotation)
	return cmp.Or(annotations[resourceAnnotation], usual)
}

func metaOf(object runtime.Object) *metav1.ObjectMeta {
	return object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// Fill fills in a text/template. Its function json writes a value into YAML, in one line, hash is [Hash], and labels
// writes [Labels].
func Fill(text string, values any) string {
	escape := func(character string) string { return fmt.Sprintf(`\u%04x`, []rune(character)[0]) }
	write := func(value any) string { return unreadable.ReplaceAllStringFunc(string(JSON(value)), escape) }
	labels := func(name, instance string) string { return write(Labels(name, instance)) }
	functions := template.FuncMap{"json": write, "hash": Hash, "labels": labels}
	var filled strings.Builder
	utilruntime.Must(template.Must(template.New("").Option("missingkey=error").Funcs(functions).Parse(text)).Execute(&filled, values))
	return filled.String()
}

// unreadable are the characters that JSON may hold as they are, and YAML may not.
var unreadable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{feff}\x{fffe}\x{ffff}]`)
