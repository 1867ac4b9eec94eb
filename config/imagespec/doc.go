// Package imagespec is what a stack file says of where nodes pull container images from.
package imagespec
