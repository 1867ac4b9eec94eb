// Package stack is the program: [Deploy] turns a stack file into a running
// PERSIA training, from the network to the last replica.
package stack
