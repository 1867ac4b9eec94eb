// Package cachespec defines the caches through which nodes pull images: settings and rules.
package cachespec
