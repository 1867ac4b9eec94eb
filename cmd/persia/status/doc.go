// Package status reports what the training jobs of a cluster do, and why they wait. It only reads
// the cluster.
package status
