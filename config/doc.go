// Package config reads stack files: [Load] decodes a stack, completes it with defaults, and
// checks it. [Stack.Plan] says whether it fits its node pools, and [Stack.Warnings] what it
// may not have meant.
//
// Load accepts a stack or reports all of its problems at once, each with its path in the
// stack file, the value, and the remedy. By then nothing has been registered.
//
// The packages below hold the topics of a stack file, each with its types, defaults and
// rules. This package holds the rules that span topics.
package config
