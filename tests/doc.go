// Package tests runs the whole program over Pulumi's mocks: what it registers,
// in which order, and with which inputs. It needs no network and no process.
package tests
