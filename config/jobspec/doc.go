// Package jobspec defines the training jobs of a stack file: types, defaults and rules. It
// imports package natsspec, because a job can override settings of NATS.
package jobspec
