package toolchain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEstimate(t *testing.T) {
	small := tool{name: "small", takes: time.Minute}
	large := tool{name: "large", takes: 9 * time.Minute}
	tiny := tool{name: "tiny"}
	tools := []tool{small, large, tiny}

	left := newEstimate(tools, []string{"small", "large", "tiny"})
	assert.Equal(t, " about 10 min left", left.String(), "as it once took")
	left.done(small, 2*time.Minute)
	assert.Equal(t, " about 18 min left", left.String(), "this machine is half as fast")
	left.done(large, 3*time.Minute)
	assert.Empty(t, left.String(), "less than a minute is left")

	assert.Empty(t, newEstimate(tools, []string{"tiny"}).String())
	assert.Equal(t, " about 9 min left", newEstimate(tools, []string{"large"}).String(), "the others are up to date")
}
