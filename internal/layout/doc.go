// Package layout tests how the source is laid out: small files, small packages, small
// types, topics of a stack file that do not import each other, and folders without
// cycles.
package layout
