// Package e2e brings stacks up and down in the sandbox, as `make up` and `make down` do, and checks what is there.
//
// Most tests run in parallel, in one process: a test that needs an environment variable or
// a working folder runs a command that has it.
package e2e
