// Package compute registers the resources of Compute Engine that the program
// uses, under the type tokens of Pulumi's Google Cloud SDK.
//
// It stands in for the SDK's package of the same name, which has hundreds of
// resources: to compile it takes a minute and 5 GB, more than the rest of the
// program together. Names, fields and tokens are the SDK's, so that the official
// provider sees no difference.
package compute
