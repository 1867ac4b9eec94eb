// Package restapi reads and writes resources as the provider does: it turns plans into requests,
// sends updates field by field, and turns answers into Terraform's objects.
package restapi
