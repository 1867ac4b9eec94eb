// Package e2e brings stacks up and down in the sandbox, as `make up` and
// `make down` do, and looks at what then is there.
package e2e
