package gcp

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

//go:embed validation.json
var validationJSON []byte

// restriction is the entry of a field in validation.json.
type restriction struct {
	OneOf         []string `json:"oneOf"`
	ConflictsWith []string `json:"conflictsWith"`
	ExactlyOneOf  []string `json:"exactlyOneOf"`
	// Message refuses a value, for which it has VALUE.
	Message string `json:"message"`
}

// restrict adds the provider's validation to the resources.
func restrict(resources map[string]*schema.Resource) error {
	var all map[string]map[string]restriction
	if err := json.Unmarshal(validationJSON, &all); err != nil {
		return fmt.Errorf("validation.json: %w", err)
	}
	for name, restrictions := range all {
		for path, r := range restrictions {
			s := find(resources[name], strings.Split(path, "."))
			if s == nil {
				return fmt.Errorf("validation.json: %s.%s is not in the schema", name, path)
			}
			if err := r.apply(s, path[strings.LastIndex(path, ".")+1:]); err != nil {
				return fmt.Errorf("validation.json: %s.%s: %w", name, path, err)
			}
		}
	}
	return nil
}

// find returns the field at a path, or nil.
func find(in *schema.Resource, path []string) *schema.Schema {
	if in == nil {
		return nil
	}
	s := in.Schema[path[0]]
	if s == nil || len(path) == 1 {
		return s
	}
	block, _ := s.Elem.(*schema.Resource)
	return find(block, path[1:])
}

func (r restriction) apply(s *schema.Schema, field string) error {
	s.ConflictsWith, s.ExactlyOneOf = r.ConflictsWith, r.ExactlyOneOf
	validated := s
	if element, ok := s.Elem.(*schema.Schema); ok {
		validated = element
	}
	if r.OneOf != nil {
		validated.ValidateFunc = validation.StringInSlice(r.OneOf, false)
	}
	if r.Message == "" {
		return nil
	}
	for _, f := range formats {
		if match := f.message.FindStringSubmatch(r.Message); match != nil {
			validated.ValidateFunc = f.validate(message{r.Message, field}, match[1:])
			return nil
		}
	}
	return fmt.Errorf("no format has the message %q", r.Message)
}

// message returns the provider's error for a wrong value of a field.
type message struct{ text, field string }

// validator is a validation in the form in which pulumi-gcp 7.38 writes them.
type validator = func(value any, key string) (warnings []string, errs []error)

// unless returns a validation that refuses values with the message.
func (m message) unless(valid func(value string) bool) validator {
	return func(value any, key string) ([]string, []error) {
		if valid(value.(string)) {
			return nil, nil
		}
		text := strings.Replace(m.text, m.field, key, 1)
		return nil, []error{errors.New(strings.ReplaceAll(text, "VALUE", value.(string)))}
	}
}

// formats are the provider's validations other than enumerations, by their messages.
var formats = []struct {
	message  *regexp.Regexp
	validate func(m message, bounds []string) validator
}{
	{regexp.MustCompile(`doesn't match regexp (".*")$`), func(m message, quoted []string) validator {
		expression, _ := strconv.Unquote(quoted[0])
		return matches(expression)(m, nil)
	}},
	{regexp.MustCompile(`invalid value for member`), matches(`^(?:.+:.+|allUsers|allAuthenticatedUsers)$`)},
	{regexp.MustCompile(`can only contain lowercase letters, numbers and hyphens`), matches(`^[a-z0-9-]+$`)},
	{regexp.MustCompile(`can only contain lowercase letters, numeric characters`), matches(`^[a-z0-9_.-]*$`)},
	{regexp.MustCompile(`at least \((\d+)\)`), func(_ message, least []string) validator {
		return validation.IntAtLeast(integer(least[0]))
	}},
	{regexp.MustCompile(`in the range \((\d+) - (\d+)\)`), func(_ message, bounds []string) validator {
		return validation.IntBetween(integer(bounds[0]), integer(bounds[1]))
	}},
	{regexp.MustCompile(`invalid CIDR address`), parses(func(value string) error {
		_, _, err := net.ParseCIDR(value)
		return err
	})},
	{regexp.MustCompile(`in the format HH:mm`), parses(func(value string) error {
		_, err := time.Parse("15:04", value)
		return err
	})},
	{regexp.MustCompile(`parsing time`), parses(func(value string) error {
		_, err := time.Parse(time.RFC3339, value)
		return err
	})},
}

func matches(expression string) func(message, []string) validator {
	compiled := regexp.MustCompile(expression)
	return func(m message, _ []string) validator { return m.unless(compiled.MatchString) }
}

func parses(parse func(string) error) func(message, []string) validator {
	return func(m message, _ []string) validator {
		return m.unless(func(value string) bool { return parse(value) == nil })
	}
}

// integer returns a number of a message, which is all digits.
func integer(digits string) int {
	number, _ := strconv.Atoi(digits)
	return number
}
