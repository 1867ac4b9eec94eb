// Package cgroup keeps the control groups of a machine: one in each hierarchy, and in it
// one for the machine's own programs, beside those of the pods.
package cgroup
