// Package jobspec has what a stack file says of a training job: its roles, what they run
// and what their pods get. Besides the shared pieces it imports package nats, of which a
// job has settings of its own.
package jobspec
