// Persia brings up PERSIA recommender training on Google Cloud: a GKE cluster with GPU node pools, the NVIDIA driver,
// checkpoint volumes, NATS and the jobs that a stack file describes. It is a Pulumi program: see README.md.
package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/stack"
)

func main() {
	pulumi.Run(stack.Deploy)
}
