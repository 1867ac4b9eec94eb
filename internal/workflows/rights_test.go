package workflows

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onProject are the roles that a page grants to an account on the whole project, one by
// one or in a loop.
func onProject(page, account string) []string {
	var roles []string
	loop := regexp.MustCompile(`(?s)for ROLE in ([^;]*); do\n(.*?)\n *done`)
	for _, match := range loop.FindAllStringSubmatch(page, -1) {
		if strings.Contains(match[2], "gcloud projects add-iam-policy-binding") && strings.Contains(match[2], account) {
			roles = append(roles, strings.Fields(match[1])...)
		}
	}
	return roles
}

// TestRightsOfWorkflows checks that the account that deploys acts as the nodes' account and as no
// other, and that the account that previews reads the Secrets that a refresh compares.
func TestRightsOfWorkflows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "guides", "pull-requests.md"))
	require.NoError(t, err)
	page := string(text)
	deploy := onProject(page, "$DEPLOY")
	require.NotEmpty(t, deploy)
	for _, role := range deploy {
		assert.NotContains(t, []string{"iam.serviceAccountUser", "iam.serviceAccountAdmin", "iam.serviceAccountTokenCreator", "editor", "owner"}, role,
			"on the project this role is one over all service accounts")
	}
	assert.Regexp(t, `for ROLE in iam\.serviceAccountUser [^;]*; do\n\s*gcloud iam service-accounts add-iam-policy-binding \$NODES --member=serviceAccount:\$DEPLOY`, page)
	assert.Regexp(t, `create rolebinding persia-preview --clusterrole=persia-secrets --user=\$PREVIEW`, page)
	assert.Regexp(t, `create clusterrole persia-secrets --verb=get --resource=secrets\n`, page, "no right to list or to write")
}

// TestTrustIsByAttributes: GitHub writes the subject of a token in another form for
// repositories that are new, and a name can be taken over.
func TestTrustIsByAttributes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "guides", "pull-requests.md"))
	require.NoError(t, err)
	page := string(text)
	assert.Contains(t, page, "attribute.repository_id=assertion.repository_id")
	assert.Contains(t, page, "attribute-condition=\"assertion.repository_id == '$REPOSITORY_ID'\"")
	members := regexp.MustCompile(`principal(Set)?://[^"\s]+`).FindAllString(page, -1)
	require.NotEmpty(t, members)
	for _, member := range members {
		assert.True(t, strings.HasPrefix(member, "principalSet://") && strings.Contains(member, "/attribute."), "%s depends on the form of the subject", member)
	}
}
