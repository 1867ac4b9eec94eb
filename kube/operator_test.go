package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestReadOperator: the golden plans show what operators register.
func TestReadOperator(t *testing.T) {
	_, _, err := Operator{Manifest: "apiVersion: v1\nkind: Secret\nmetadata: {nme: a}"}.read("")
	assert.ErrorContains(t, err, `unknown field "nme"`)
}
