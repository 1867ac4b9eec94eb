package compute

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// version is the version of the provider: the SDK's in go.mod.
const version = "7.38.0"

// register registers a resource as the SDK does. Inputs that are nil are left out.
func register(ctx *pulumi.Context, token, name string, inputs pulumi.Map, resource pulumi.CustomResource, opts []pulumi.ResourceOption) error {
	for field, value := range inputs {
		if value == nil {
			delete(inputs, field)
		}
	}
	return ctx.RegisterResource(token, name, inputs, resource, append([]pulumi.ResourceOption{pulumi.Version(version)}, opts...)...)
}
