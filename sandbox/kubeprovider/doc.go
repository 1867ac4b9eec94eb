// Package kubeprovider is a Pulumi provider that replaces the official pulumi-kubernetes 4.30 for programs written with
// its Go SDK; docs/contribute/decisions.md says why. It is at least as strict: what fails there fails here. It has what this
// program uses: it ignores other annotations of Pulumi, and awaits no other kinds.
//
// What is known of the official provider is from its source at github.com/pulumi/pulumi-kubernetes, named below by file
// under provider/pkg, and from pull request 4278, which made create refuse what exists.
//
// # The same
//
//   - Create is a plain create (await/await.go): an object of
//     that name is an error, "already exists", unless upsertExistingObjects applies
//     it by server-side apply instead. A preview of a create is a dry run
//     and lets that error pass.
//   - Update is server-side apply to the object that is there; one that is gone is
//     an error. It removes what its own create and kubectl wrote, and takes fields from other
//     writers, since the program sets enablePatchForce. A preview of an update is a dry run, and fails
//     where it is refused.
//   - Diff compares the new inputs with the state pruned to the old inputs, both
//     in the form of Kubernetes' Go types (provider/provider.go, provider/util.go,
//     clients/unstructured.go). The cluster is not asked: drift shows after a
//     refresh, and a field that the API server answers otherwise differs for ever.
//   - A change of the fields in replaceOn (provider/diff.go) replaces the object,
//     the old one deleted first where the name stays. Other immutable fields fail the update.
//   - Refresh gives each field of the inputs the value that the cluster has, and
//     adds none (pruneLiveState). A workload, Job or Service that is
//     not ready then is reported, and the next update waits for it.
//   - Create and update wait for the kinds in kindRules (await/awaiters.go). pulumi.com/waitFor and
//     pulumi.com/skipAwait change that (metadata/overrides.go).
//   - Delete goes by foreground propagation, unless pulumi.com/deletionPropagationPolicy says
//     background, and waits 10 minutes until the object is gone; with pulumi.com/skipAwait it does not wait for a
//     workload or a Job. An object or kind that is gone is deleted.
//   - data and stringData of a Secret are secrets of Pulumi's in the state.
//   - Another clusterIdentifier replaces the provider, and all that it manages.
//
// # Stricter
//
//   - Names are required: nothing is named automatically. Nothing is imported.
//   - A kubeconfig is required, of a cluster on this machine.
//   - A StatefulSet is not ready before its controller has seen the last change.
//   - A workload that Kubernetes says has failed is an error at once, not when the
//     time is up. An object that is being deleted is not waited for.
//
// # Different
//
//   - One field manager, pulumi-kubernetes-sandbox, for all objects; the official
//     provider makes up a name for each.
//   - The provider looks at an object four times a second, and watches none.
//   - The provider shows the API server's warnings, also about unknown fields.
//   - The provider waits 15 seconds for a kind that does not exist yet; the official
//     provider tries a create five times more, pausing longer each time.
package kubeprovider
