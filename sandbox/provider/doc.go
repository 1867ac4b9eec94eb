// Package provider serves Pulumi providers from this process to an engine that runs in another one.
//
// The engine finds them through the environment variable PULUMI_DEBUG_PROVIDERS, which holds NAME:PORT pairs separated
// by commas, and connects to the port on loopback instead of starting a plugin.
package provider
