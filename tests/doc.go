// Package tests runs the whole program over Pulumi's mocks, and checks the resources that it
// registers, their order, and their inputs. It needs no network and no process.
package tests
