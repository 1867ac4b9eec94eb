// Command kubernetes-provider is Pulumi's own Kubernetes provider, without the descriptions of its
// resources, which are for languages and not for the engine.
package main

import "github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"

// version is of the SDK that asks for the provider. The code is the only one that is a Go module, of
// January 2026: it does not know enablePatchForce, so an update fails on a field that a person has changed.
const version = "4.30.0"

func main() {
	provider.Serve("kubernetes", version, []byte(`{"name": "kubernetes", "version": "`+version+`"}`), nil)
}
