// Package compute registers and reads resources of Compute Engine under the type tokens of Pulumi's Google Cloud SDK.
//
// It replaces the SDK's package of the same name, which has hundreds of resources and takes a minute and
// 5 GB to compile, more than the rest of the program together. Names, fields and tokens are the SDK's, so
// the official provider sees no difference.
package compute

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// version is the version of the provider: the SDK's in go.mod.
var version = pulumi.Version("7.38.0")

// Resource is a resource of Compute Engine.
type Resource struct {
	pulumi.CustomResourceState

	Name pulumi.StringOutput `pulumi:"name"`
}

// Register registers a resource of a kind, such as routerNat.
func Register(ctx *pulumi.Context, kind, name string, inputs pulumi.Map, opts ...pulumi.ResourceOption) (*Resource, error) {
	resource := &Resource{}
	token := "gcp:compute/" + kind + ":" + strings.ToUpper(kind[:1]) + kind[1:]
	return resource, ctx.RegisterResource(token, name, inputs, resource, append(opts, version)...)
}

// LookUp reads a resource into a struct with pulumi tags, and reports whether it exists. Args name it.
func LookUp(ctx *pulumi.Context, kind string, args map[string]any, into any, provider pulumi.ProviderResource) (exists bool, err error) {
	function := "get" + strings.ToUpper(kind[:1]) + kind[1:]
	err = ctx.Invoke("gcp:compute/"+function+":"+function, args, into, pulumi.Provider(provider), version)
	if IsAbsent(err, args["name"].(string)) {
		return false, nil
	}
	return err == nil, err
}

// IsAbsent reports whether Google Cloud's provider has not found what has a name.
func IsAbsent(err error, name string) bool {
	return err != nil && strings.Contains(err.Error(), "/"+name+" not found")
}
