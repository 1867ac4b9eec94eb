// Package workflows tests what lies in .github and scripts: that the workflows give
// away nothing that they need not, which actionlint does not look at, and that their
// scripts do what they say.
package workflows
