package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRealNodeIsAsked: the default of `train` is no other command's.
func TestRealNodeIsAsked(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"up":                  {[]string{"up"}, ""},
		"up with a real node": {[]string{"up", "--real-node", "gpu"}, "gpu"},
		"preview":             {[]string{"preview"}, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var f flags
			found, rest, err := command(&f).Find(test.args)
			require.NoError(t, err)
			require.NoError(t, found.ParseFlags(rest))
			assert.Equal(t, test.want, f.real.Pool)
		})
	}
}
