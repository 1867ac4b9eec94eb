// Package operator leaves training jobs to PERSIA's own operator: it runs the operator,
// and registers a PersiaJob for each training. Upstream's program creates the pods,
// so a job has only the features that this program supports.
package operator
