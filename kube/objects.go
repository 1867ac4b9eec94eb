package kube

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/runtime"
)

// Objects registers the objects of a component. After an error it registers nothing more, so that a
// caller looks at the error once, at the end.
type Objects struct {
	ctx       *pulumi.Context
	component pulumi.ComponentResource
	err       error
}

// NewComponent registers a component, and returns what registers its objects.
func NewComponent(ctx *pulumi.Context, typeToken, name string, component pulumi.ComponentResource, opts ...pulumi.ResourceOption) *Objects {
	return &Objects{ctx, component, ctx.RegisterComponentResource(typeToken, name, component, opts...)}
}

// Add registers an object after needs, as [Register] does.
func (o *Objects) Add(name string, object runtime.Object, needs []pulumi.CustomResource, opts ...pulumi.ResourceOption) *Object {
	return o.AddWith(name, object, nil, needs, opts...)
}

// AddWith is [Objects.Add] for an object with fields that are not known yet.
func (o *Objects) AddWith(name string, object runtime.Object, later Later, needs []pulumi.CustomResource, opts ...pulumi.ResourceOption) *Object {
	if o.err == nil {
		var registered *Object
		registered, o.err = RegisterWith(o.ctx, name, object, later, append(opts, Child(o.component, needs))...)
		if o.err == nil {
			return registered
		}
	}
	none := pulumi.Map{}.ToMapOutput()
	return &Object{Metadata: none, Spec: none, Status: none}
}

// End ends the component, and returns the first error of its objects.
func (o *Objects) End() error {
	if o.err != nil {
		return o.err
	}
	return o.ctx.RegisterResourceOutputs(o.component, pulumi.Map{})
}

// Needs returns resources as a list.
func Needs(resources ...pulumi.CustomResource) []pulumi.CustomResource { return resources }
