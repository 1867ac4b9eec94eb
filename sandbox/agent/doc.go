// Package agent is the kubelet of the few containers on simulated nodes whose
// program is really run; kwok pretends to run all others there.
//
// [Run] watches the pods. For each that is bound to a node and has a container of a known image, it runs the image's
// program as a local process for as long as the pod exists: with the container's arguments and environment, and with
// the identity of the pod's service account, so that the process may do what the account was granted and no more.
package agent
