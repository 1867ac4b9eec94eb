package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Env checks the environment variables of a container.
func Env(p *check.Problems, path *field.Path, env []corev1.EnvVar) {
	for i, e := range env {
		envVar(p, path.Index(i), e)
	}
	check.UniqueField(p, path, "name", env, func(e corev1.EnvVar) string { return e.Name }, "is already used by env[%d]; remove one of them")
}

func envVar(p *check.Problems, path *field.Path, e corev1.EnvVar) {
	p.Name(path.Child("name"), e.Name, validation.IsEnvVarName)
	if e.ValueFrom == nil {
		return
	}
	if e.Value != "" {
		p.Forbidden(path.Child("valueFrom"), "cannot be combined with value; write either value or valueFrom")
	}
	envSource(p, path.Child("valueFrom"), *e.ValueFrom)
}

func envSource(p *check.Problems, path *field.Path, s corev1.EnvVarSource) {
	if s.FileKeyRef != nil {
		p.Forbidden(path.Child("fileKeyRef"), "is a source that GKE clusters do not enable; use a secretKeyRef or a configMapKeyRef")
		return
	}
	given := 0
	for _, present := range []bool{
		s.FieldRef != nil, s.ResourceFieldRef != nil, s.ConfigMapKeyRef != nil, s.SecretKeyRef != nil,
	} {
		if present {
			given++
		}
	}
	if given != 1 {
		p.Forbidden(path, "has %d sources; write exactly one of secretKeyRef, configMapKeyRef, fieldRef, and resourceFieldRef", given)
	}
	if ref := s.SecretKeyRef; ref != nil {
		envKey(p, path.Child("secretKeyRef"), ref.Name, ref.Key)
	}
	if ref := s.FieldRef; ref != nil {
		FieldRef(p, path.Child("fieldRef"), *ref, envFields)
	}
	if ref := s.ResourceFieldRef; ref != nil {
		ResourceFieldRef(p, path.Child("resourceFieldRef"), *ref)
	}
	if ref := s.ConfigMapKeyRef; ref != nil {
		envKey(p, path.Child("configMapKeyRef"), ref.Name, ref.Key)
	}
}

func envKey(p *check.Problems, path *field.Path, name, key string) {
	p.Name(path.Child("name"), name, validation.IsDNS1123Subdomain)
	p.Name(path.Child("key"), key, validation.IsConfigMapKey)
}
