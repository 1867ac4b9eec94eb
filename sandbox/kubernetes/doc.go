// Package kubernetes is a Pulumi provider that stands in for the official
// pulumi-kubernetes v4, whose plugin has no Go module, for programs written
// with its Go SDK.
//
// It applies objects by server-side apply as the field manager
// "pulumi-sandbox", waits until they are ready, and lets the API server decide
// what differs: a diff is a dry-run apply compared with the live object.
//
// It honours the annotations pulumi.com/skipAwait, pulumi.com/waitFor,
// pulumi.com/timeoutSeconds and pulumi.com/deletionPropagationPolicy, and
// replaces ConfigMaps and Secrets whose data changes unless the provider is
// configured with enableConfigMapMutable and enableSecretMutable, as the
// official provider does.
//
// It differs from the official provider in this: names are required, there is
// no automatic naming; Helm releases, YAML and Kustomize components, lists,
// patch resources and functions are refused; every kind is awaited, by kstatus.
package kubernetes
