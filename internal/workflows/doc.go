// Package workflows tests the files in .github and scripts: that the workflows grant only the
// rights that they need, which actionlint does not check, and that their scripts work.
package workflows
