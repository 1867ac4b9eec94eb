package kube

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// resourceAnnotation of an object in a manifest is the name of its resource in Pulumi, where that is
// not the object's.
const resourceAnnotation = "resource"

// read reads an operator from its manifest. Nodes pull its image from a reference.
func (o Operator) read(image string) (operator, error) {
	operator := operator{kinds: o.Kinds}
	text, err := Fill(o.Manifest, struct {
		Image, Configuration string
		Requests             corev1.ResourceList
	}{image, o.Configuration, Requests(o.Requests)})
	if err != nil {
		return operator, err
	}
	for document := range strings.SplitSeq(text, "---\n") {
		object, err := decode([]byte(document))
		if err != nil {
			return operator, fmt.Errorf("%w in the manifest of %s:\n%s", err, operator.name, document)
		}
		operator.add(object)
	}
	return operator, nil
}

// add takes an object of a manifest.
func (o *operator) add(object runtime.Object) {
	meta := object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	switch object := object.(type) {
	case *appsv1.Deployment:
		pod := object.Spec.Template.Spec
		o.name, o.namespace, o.container, o.volumes = meta.Name, meta.Namespace, pod.Containers[0], pod.Volumes
		o.user = *pod.SecurityContext.RunAsUser
		return
	case *corev1.Namespace:
		o.podSecurity = meta.Labels
		return
	case *rbacv1.ClusterRole:
		o.clusterRole = object.Rules
		return
	case *rbacv1.Role:
		if meta.Name == o.name {
			o.roleNamespace, o.role = meta.Namespace, object.Rules
			return
		}
	case *corev1.Service:
		meta.Labels, o.service = o.labels(), object
		return
	}
	resource := meta.Name
	if name, ok := meta.Annotations[resourceAnnotation]; ok {
		resource = name
		delete(meta.Annotations, resourceAnnotation)
	}
	if definition, ok := object.(*extensionsv1.CustomResourceDefinition); ok {
		o.kinds = append(o.kinds, Kind{Resource: resource, Definition: definition})
		return
	}
	meta.Labels = o.labels()
	o.before = append(o.before, named{resource, object})
}

// decode reads an object of one of Kubernetes' own kinds.
func decode(document []byte) (runtime.Object, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	object, err := kinds.New(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	if err != nil {
		return nil, err
	}
	return object, yaml.UnmarshalStrict(document, object)
}

// Fill fills in a text/template. Its function json writes a value into YAML, in one line, and hash is [Hash].
func Fill(text string, values any) (string, error) {
	asJSON := func(value any) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	}
	parsed, err := template.New("").Funcs(template.FuncMap{"json": asJSON, "hash": Hash}).Parse(text)
	if err != nil {
		return "", err
	}
	var filled strings.Builder
	err = parsed.Execute(&filled, values)
	return filled.String(), err
}
