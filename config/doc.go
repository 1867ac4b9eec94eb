// Package config reads stack files: [Load] decodes a stack, completes it with defaults, and checks it. [Stack.Plan]
// reports whether its pods fit its node pools, and [Stack.Warnings] returns warnings.
//
// Load accepts a stack or reports all of its problems at once, each with its path in the stack
// file, the value, and the remedy. By then the program has registered nothing.
//
// Each topic of a stack file has a file here with its types, and stands only on the topics before it: pods, the
// cluster and its machines, images, pools, volumes, PEDL, and jobs. Its method resolve fills in defaults that depend on
// other fields, and its method check reports problems. [Stack], in stack.go, joins them. A rule about several topics is
// a method of Stack, like checkPools, in a file that stands on stack.go. On top of all, load.go calls them in order.
//
// Package input turns the text of a stack file into values and collects problems.
package config
