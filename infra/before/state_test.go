package before_test

import (
	"errors"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"

	"persia/infra/before"
)

// engine fails as often as errs has errors, and then returns a stack without outputs.
type engine struct {
	errs  []string
	calls int
}

func (e *engine) NewResource(pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	return "", nil, errors.New("the program reads only")
}

func (e *engine) Call(pulumi.MockCallArgs) (resource.PropertyMap, error) {
	e.calls++
	if e.calls <= len(e.errs) {
		return nil, errors.New(e.errs[e.calls-1])
	}
	return resource.PropertyMap{}, nil
}

// TestReadDuringAWrite checks that a read that meets a write of the state succeeds, and that other
// errors end it.
func TestReadDuringAWrite(t *testing.T) {
	const torn = "readStackOutputs returned an error: failed to load checkpoint: EOF"
	for name, c := range map[string]struct {
		errs  []string
		calls int
		err   string
	}{
		"no write":      {nil, 1, ""},
		"two writes":    {[]string{torn, torn}, 3, ""},
		"another error": {[]string{"no such stack"}, 1, "no such stack"},
		"without end":   {[]string{torn, torn, torn, torn, torn, torn, torn, torn, torn, torn, torn}, 10, torn},
	} {
		t.Run(name, func(t *testing.T) {
			mock := &engine{errs: c.errs}
			err := pulumi.RunErr(func(ctx *pulumi.Context) error {
				_, err := before.Read(ctx)
				return err
			}, pulumi.WithMocks("persia", "dev", mock))
			assert.Equal(t, c.calls, mock.calls)
			if c.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.err)
			}
		})
	}
}
