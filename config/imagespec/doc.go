// Package imagespec defines from where nodes pull images in a stack file: settings and rules.
package imagespec
