// Package kube registers Kubernetes objects with Pulumi.
//
// The program builds every object as a plain value of Kubernetes' own types (k8s.io/api). Such a value needs no Pulumi
// to build or test, and can hold everything that a user may write in a pod. Only this package turns such values into
// Pulumi resources: the same resources that the constructors of the Pulumi Kubernetes SDK would register.
package kube

import (
	"cmp"
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/config"
)

// Registrar registers the components of a stack in a cluster. After an error it registers nothing more,
// so that a program looks at the error once, at the end.
type Registrar struct {
	Context *pulumi.Context
	// Images says where nodes pull images from, and System where operators run.
	Images config.Images
	System Placement
	// Planned are the objects of the stack.
	Planned []runtime.Object

	opts       []pulumi.ResourceOption
	components []*Objects
	err        error
}

// NewRegistrar returns a registrar of components with some options.
func NewRegistrar(ctx *pulumi.Context, opts ...pulumi.ResourceOption) *Registrar {
	return &Registrar{Context: ctx, opts: opts}
}

// Fail keeps an error, unless it is nil or not the first one.
func (r *Registrar) Fail(err error) { r.err = cmp.Or(r.err, err) }

// Err returns the first error.
func (r *Registrar) Err() error { return r.err }

// End registers the outputs of the components, when all of their objects are registered, and returns the first error.
func (r *Registrar) End() error {
	for _, objects := range r.components {
		if r.err == nil {
			r.Fail(r.Context.RegisterResourceOutputs(&objects.component, Outputs(objects.Outputs)))
		}
	}
	return r.err
}

// Objects registers the objects of a component.
type Objects struct {
	*Registrar
	// Outputs is a struct, whose fields the console shows: see [Outputs].
	Outputs any

	component struct{ pulumi.ResourceState }
}

// Component registers a component, and returns what registers its objects.
func (r *Registrar) Component(typeToken, name string) *Objects {
	objects := &Objects{Registrar: r, Outputs: struct{}{}}
	if r.err == nil {
		r.Fail(r.Context.RegisterComponentResource(typeToken, name, &objects.component, r.opts...))
		r.components = append(r.components, objects)
	}
	return objects
}

// Outputs returns the outputs of a component: the fields of a struct that have a pulumi tag and a value.
func Outputs(component any) pulumi.Map {
	outputs, fields := pulumi.Map{}, reflect.Indirect(reflect.ValueOf(component))
	for _, field := range reflect.VisibleFields(fields.Type()) {
		value, err := fields.FieldByIndexErr(field.Index)
		if name := field.Tag.Get("pulumi"); name != "" && field.IsExported() && err == nil && !value.IsZero() {
			outputs[name] = pulumi.Any(value.Interface())
		}
	}
	return outputs
}

// Parent has a resource belong to the component.
func (o *Objects) Parent() pulumi.ResourceOrInvokeOption { return pulumi.Parent(&o.component) }

// Child returns the options of a resource of the component, which inherits nothing from the component's own options and
// depends on needs. Pulumi makes a component wait for its dependencies, but not the component's children.
func (o *Objects) Child(needs []pulumi.CustomResource) pulumi.ResourceOption {
	return pulumi.Composite(o.Parent(), After(needs))
}

// Add registers an object after needs, under the type token of its kind in the Pulumi Kubernetes SDK.
func (o *Objects) Add(name string, object runtime.Object, needs []pulumi.CustomResource, opts ...pulumi.ResourceOption) *Object {
	return o.AddWith(name, object, nil, needs, opts...)
}

// AddWith is [Objects.Add] for an object with fields that are not known yet.
func (o *Objects) AddWith(name string, object runtime.Object, later Later, needs []pulumi.CustomResource,
	opts ...pulumi.ResourceOption) *Object {
	o.Planned = append(o.Planned, object)
	if o.err == nil {
		registered, err := register(o.Context, name, object, later, append(opts, o.Child(needs))...)
		if err == nil {
			return registered
		}
		o.Fail(err)
	}
	none := pulumi.Map{}.ToMapOutput()
	return &Object{Metadata: none, Spec: none, Status: none}
}

// Needs returns resources as a list.
func Needs(resources ...pulumi.CustomResource) []pulumi.CustomResource { return resources }
