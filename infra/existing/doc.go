// Package existing looks into an existing cluster before the program registers anything
// in it, and refuses one that cannot hold the stack.
package existing
