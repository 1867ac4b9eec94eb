// Package compute registers the resources of Compute Engine that the program
// uses, under the type tokens of Pulumi's Google Cloud SDK.
//
// It replaces the SDK's package of the same name, which has hundreds of resources and takes a
// minute and 5 GB to compile, more than the rest of the program together. Names, fields and tokens
// are the SDK's, so the official provider sees no difference.
package compute
