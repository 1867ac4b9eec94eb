// Package kueue installs Kueue, which admits a job when there is room for all of its pods, and
// registers the queues of a stack.
package kueue
