// Package addon plays what GKE installs in a cluster: the drivers of its storage, the
// default storage class, and the kinds of Managed Service for Prometheus.
package addon
