// Package cluster reaches the API server of one cluster: it finds where objects of any
// kind live, watches them, and names what keeps one from being deleted.
package cluster
