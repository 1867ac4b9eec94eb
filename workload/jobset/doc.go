// Package jobset installs JobSet, whose controller makes the pods of jobs with the engine
// jobset, and describes its kind.
package jobset
