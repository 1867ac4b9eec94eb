package kube

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestLabelName(t *testing.T) {
	long := strings.Repeat("a", 80)
	cases := map[string][]string{
		"short":           {"criteo", "nn-worker"},
		"just as long":    {long[:60], "bc"},
		"too long":        {long},
		"cut at a hyphen": {long[:53], "b", long},
	}
	for name, parts := range cases {
		t.Run(name, func(t *testing.T) {
			got, whole := LabelName(parts...), strings.Join(parts, "-")
			assert.Empty(t, validation.IsDNS1123Label(got), got)
			if len(whole) <= validation.DNS1123LabelMaxLength {
				assert.Equal(t, whole, got)
			} else {
				assert.NotContains(t, got, "--")
				assert.NotEqual(t, got, LabelName(whole+"1"))
			}
		})
	}
}
