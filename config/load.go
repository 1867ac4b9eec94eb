package config

import (
	"io/fs"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/decode"
	"persia/config/jobspec"
	"persia/config/manifest"
)

// Keys returns the keys of a stack file that [Load] reads, each with its namespace.
func Keys() []string { return check.Words(keys, func(k key) string { return k.name }) }

// RequiredKeys returns the keys that every stack file has.
func RequiredKeys() []string {
	var names []string
	for _, k := range keys {
		if k.missing != "" {
			names = append(names, k.name)
		}
	}
	return names
}

// StackField returns the field of [Stack] that holds the value of a key.
func StackField(key string) (reflect.StructField, bool) {
	s := &Stack{}
	stack := reflect.ValueOf(s).Elem()
	for _, k := range keys {
		for i := range stack.NumField() {
			if k.name == key && k.into(s) == stack.Field(i).Addr().Interface() {
				return stack.Type().Field(i), true
			}
		}
	}
	return reflect.StructField{}, false
}

// Load reads a stack, completes it with defaults, and checks it. Get returns the value of a
// key as Pulumi does: a string as it is, and anything else as JSON. Files is the directory
// of the project, with the manifests that jobs name. The error lists all problems of the
// stack, one per line.
func Load(get func(key string) (string, bool), files fs.FS) (*Stack, error) {
	p := &check.Problems{}
	s := decoded(p, get, files)
	s.resolve()
	s.check(p)
	if err := p.Err(); err != nil {
		return nil, err
	}
	s.warn(p)
	s.warnings = p.Warnings()
	return s, nil
}

// decoded returns the stack as written, with the defaults that depend on nothing else.
func decoded(p *check.Problems, get func(key string) (string, bool), files fs.FS) *Stack {
	s, values := &Stack{}, map[string]any{}
	for _, k := range keys {
		if text, ok := given(get, k.name); ok {
			values[k.name] = decode.JSON(text)
		}
	}
	if object, ok := values[pedlKey].(map[string]any); ok && len(object) == 0 {
		delete(values, pedlKey) // Pulumi.yaml declares {} for stacks without PEDL
	}
	// Manifests come first, because they may contain a key that the stack file leaves out.
	tree := manifest.Read(p, manifest.Keys{
		JobsPath: field.NewPath(jobsKey), Jobs: values[jobsKey],
		NATSPath: field.NewPath(natsKey), NATS: values[natsKey],
	}, files, stackOnly(reflect.TypeFor[jobspec.Job](), ""))
	for _, k := range keys {
		if values[k.name] == nil && k.missing != "" {
			p.Missing(field.NewPath(k.name), "%s", k.missing)
		}
	}
	p.Written(tree.Written)
	values[natsKey], values[jobsKey] = tree.NATS, tree.Jobs
	for _, k := range keys {
		if text, ok := k.into(s).(*string); ok {
			if written, ok := given(get, k.name); ok {
				*text = written
			}
			continue
		}
		decode.Into(p, field.NewPath(k.name), values[k.name], k.into(s))
	}
	for i := range s.Jobs {
		s.Jobs[i].SetPath(field.NewPath(jobsKey).Index(i))
	}
	return s
}

// stackOnly returns the fields of a job and its roles that no PersiaJob has, as names joined
// by dots.
func stackOnly(t reflect.Type, prefix string) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		switch name := check.JSONName(f); {
		case name == "":
		case f.Tag.Get("beside") == "manifest":
			names = append(names, prefix+name)
		case f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == t.PkgPath():
			names = append(names, stackOnly(f.Type, prefix+name+".")...)
		}
	}
	return names
}

// given returns the value of a key, unless it is empty.
func given(get func(key string) (string, bool), key string) (string, bool) {
	text, ok := get(key)
	return text, ok && text != "" && text != "null"
}
