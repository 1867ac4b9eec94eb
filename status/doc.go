// Package status says what the training jobs of a cluster do, and why they wait. It reads the
// cluster and changes nothing.
package status
