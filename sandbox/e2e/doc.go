// Package e2e brings stacks up and down in the sandbox, as `make up` and
// `make down` do, and looks at what then is there.
//
// A test that has a sandbox begins with alone, which runs it in a process of its own, in
// parallel with others.
package e2e
