// Command kubernetes-provider is the official Kubernetes provider of Pulumi, without the descriptions of its
// resources, which are for languages and not for the engine.
package main

import "github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"

// version is the release that go.mod has the commit of.
const version = "4.30.0"

func main() {
	provider.Serve("kubernetes", version, []byte(`{"name": "kubernetes", "version": "`+version+`"}`), nil)
}
