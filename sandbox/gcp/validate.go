package gcp

import (
	"errors"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

// restriction limits the values of a field.
type restriction struct {
	OneOf         []string `json:"oneOf"`
	ConflictsWith []string `json:"conflictsWith"`
	ExactlyOneOf  []string `json:"exactlyOneOf"`
	AtLeast       *int     `json:"atLeast"`
	Between       []int    `json:"between"`
	// Matches is a regular expression, and Parses is CIDR or the layout of a time. Message refuses a
	// value, for which it has VALUE.
	Matches string `json:"matches"`
	Parses  string `json:"parses"`
	Message string `json:"message"`
}

// validation returns the validation of a field in the form in which pulumi-gcp 7.38 writes it, or nil.
func (r restriction) validation(field string) func(value any, key string) ([]string, []error) {
	valid := r.parse
	switch {
	case r.OneOf != nil:
		return validation.StringInSlice(r.OneOf, false)
	case r.AtLeast != nil:
		return validation.IntAtLeast(*r.AtLeast)
	case r.Between != nil:
		return validation.IntBetween(r.Between[0], r.Between[1])
	case r.Matches != "":
		valid = regexp.MustCompile(r.Matches).MatchString
	case r.Parses == "":
		return nil
	}
	return func(value any, key string) ([]string, []error) {
		if valid(value.(string)) {
			return nil, nil
		}
		text := strings.Replace(r.Message, field, key, 1)
		return nil, []error{errors.New(strings.ReplaceAll(text, "VALUE", value.(string)))}
	}
}

func (r restriction) parse(value string) bool {
	var err error
	if r.Parses == "CIDR" {
		_, _, err = net.ParseCIDR(value)
	} else {
		_, err = time.Parse(r.Parses, value)
	}
	return err == nil
}
