package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// computedEnv are the variables that the program computes and that would break
// the job with any other value. All others that it sets can be overridden.
var computedEnv = []string{
	"REPLICA_INDEX", "REPLICA_SIZE",
	"NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NPROC_PER_NODE",
}

// roleEnv checks the variables of a job or of a role.
func (v *validator) roleEnv(path *field.Path, env []corev1.EnvVar) {
	v.env(path, env)
	for i, e := range env {
		if slices.Contains(computedEnv, e.Name) {
			v.invalid(path.Index(i).Child("name"), e.Name, "is decided by replicas and nprocPerNode; remove it and set those")
		}
	}
}

func (v *validator) env(path *field.Path, env []corev1.EnvVar) {
	names := make([]string, len(env))
	for i, e := range env {
		names[i] = e.Name
		v.envVar(path.Index(i), e)
	}
	unique(names, func(i, first int) {
		v.duplicate(path.Index(i).Child("name"), names[i], "is that of env[%d]; write one of the two", first)
	})
}

func (v *validator) envVar(path *field.Path, e corev1.EnvVar) {
	v.name(path.Child("name"), e.Name, validation.IsEnvVarName)
	if e.ValueFrom == nil {
		return
	}
	if e.Value != "" {
		v.forbidden(path.Child("valueFrom"), "value is given already; write either value or valueFrom")
	}
	v.envSource(path.Child("valueFrom"), *e.ValueFrom)
}

func (v *validator) envSource(path *field.Path, s corev1.EnvVarSource) {
	given := 0
	for _, present := range []bool{
		s.FieldRef != nil, s.ResourceFieldRef != nil, s.ConfigMapKeyRef != nil, s.SecretKeyRef != nil, s.FileKeyRef != nil,
	} {
		if present {
			given++
		}
	}
	if given != 1 {
		v.forbidden(path, "%d sources are given; write exactly one of secretKeyRef, configMapKeyRef, fieldRef and resourceFieldRef", given)
	}
	if ref := s.SecretKeyRef; ref != nil {
		v.envKey(path.Child("secretKeyRef"), ref.Name, ref.Key)
	}
	if ref := s.ConfigMapKeyRef; ref != nil {
		v.envKey(path.Child("configMapKeyRef"), ref.Name, ref.Key)
	}
}

func (v *validator) envKey(path *field.Path, name, key string) {
	v.name(path.Child("name"), name, validation.IsDNS1123Subdomain)
	v.name(path.Child("key"), key, validation.IsConfigMapKey)
}
