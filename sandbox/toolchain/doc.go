// Package toolchain compiles the programs that the sandbox runs from Go modules: for every stack the Pulumi CLI, a
// Kubernetes control plane, kwok and the NATS operator; for pods that really run the NATS server and the Pushgateway;
// the programs of a real node; and for a benchmark kubectl. Nothing else is downloaded.
//
// The folders next to this file are separate modules, one per set of dependencies: each pins one version of a project
// in its go.mod and names the programs to compile as tools, or has a program of its own that uses the project as a
// library. The versions that the programs report are read from there.
package toolchain
