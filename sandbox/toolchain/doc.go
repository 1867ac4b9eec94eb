// Package toolchain compiles the programs that the sandbox runs from Go
// modules: the Pulumi CLI, a Kubernetes control plane, kwok, the NATS
// operator and, for tests, the NATS server and the Pushgateway. Nothing else is
// downloaded.
//
// The folders beside this file are modules of their own, one per set of
// dependencies: each pins one version of one project in its go.mod and names
// the programs to compile as tools. The versions that the programs report are
// read from there.
package toolchain
