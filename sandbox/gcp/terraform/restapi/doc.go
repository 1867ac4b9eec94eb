// Package restapi reads and writes resources as the provider does: it makes requests of
// what is planned, sends updates field by field, and makes of answers what Terraform
// holds.
package restapi
