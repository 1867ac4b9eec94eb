// Package config reads stack files: [Load] decodes a stack, completes it with defaults, and checks it. [Stack.Plan]
// reports whether its pods fit its node pools, and [Stack.Warnings] returns warnings.
//
// Load accepts a stack or reports all of its problems at once, each with its path in the stack
// file, the value, and the remedy. By then the program has registered nothing.
//
// Each topic of a stack file has a file here, with its types, defaults and rules. Package input
// turns the text of a stack file into values and collects problems.
package config
