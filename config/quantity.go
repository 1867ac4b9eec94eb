package config

import (
	"errors"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// QuantityForm is a regular expression for amounts of a resource. It leaves out
// decimal exponents: comparing 1e99999999 takes a minute.
const QuantityForm = `^[+-]?[0-9.]{1,20}([numkMGTPE]|[KMGTPE]i)?$`

var quantityForm = regexp.MustCompile(QuantityForm)

// parseQuantity reads an amount of a resource in Kubernetes' notation.
func parseQuantity(text string) (resource.Quantity, error) {
	if quantityForm.MatchString(text) {
		if q, err := resource.ParseQuantity(text); err == nil {
			return q, nil
		}
	}
	return resource.Quantity{}, errors.New("must be a quantity like 80, 500m or 600Gi, without spaces")
}
