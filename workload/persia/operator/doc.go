// Package operator leaves training jobs to PERSIA's own operator: it runs the operator,
// and registers a PersiaJob for each training. What makes the pods is a program of
// upstream's, so that a job has what that program gives to pods, and no more.
package operator
