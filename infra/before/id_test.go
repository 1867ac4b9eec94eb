package before

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNames: buckets and grants of running stacks have these names. Another one would leave them behind.
func TestNames(t *testing.T) {
	const long = "a-stack-with-a-name-that-is-longer-than-a-label-of-kubernetes-may-be"
	for _, c := range []struct {
		id             ID
		label, account string
	}{
		{ID{"acme", "persia", "dev", ""}, "persia-dev-084fb610", "criteo.dev-084fb610"},
		{ID{"acme", "persia", "Dev", ""}, "persia-dev-6ef20942", "criteo.dev-6ef20942"},
		{ID{"acme", "persia", "de_v", ""}, "persia-de_v-f18a58d1", "criteo.de-v-f18a58d1"},
		{ID{"acme", "persia", "de.v", ""}, "persia-de-v-5a2543c7", "criteo.de-v-5a2543c7"},
		{ID{"acme", "persia", "-dev_", ""}, "persia--dev_-a39e92d9", "criteo.dev-a39e92d9"},
		{ID{"other", "persia", "dev", ""}, "persia-dev-2357838a", "criteo.dev-2357838a"},
		{ID{"acme", "persia", "dev", "p/us-central1/c"}, "persia-dev-e97512b1", "criteo.dev-e97512b1"},
		{ID{"acme", "My.Project", "dev", ""}, "my-project-dev-500a891f", "criteo.dev-500a891f"},
		{ID{"acme", "persia", long, ""}, "persia-a-stack-with-a-name-that-is-longer-than-a-label-b9ec97fe",
			"criteo.a-stack-with-a-name-that-is-longer-than-a-label-of-kub-a1d6504b"},
	} {
		assert.Equal(t, c.id, parse(c.id.String(), ID{}))
		assert.Equal(t, c.label, c.id.Label(), c.id)
		assert.Equal(t, c.account, c.id.ServiceAccount("criteo"), c.id)
	}
}
