package gke

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/gcp"
	"persia/internal/testkit"
)

// TestCredentials runs the real credential plugin as the two kubeconfigs configure it: Pulumi's
// with application default credentials, and the users' with the login of gcloud.
func TestCredentials(t *testing.T) {
	testkit.Processes(t)
	for _, program := range []string{gcp.AuthPlugin, "gcloud"} {
		if _, err := exec.LookPath(program); err != nil {
			testkit.Skip(t, program+" is not on the PATH: the kubeconfig was not tried with it")
		}
	}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "of-the-account", "expires_in": 3600, "token_type": "Bearer"}`))
	}))
	defer endpoint.Close()
	dir := t.TempDir()
	accountKey, loginToken := filepath.Join(dir, "account.json"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(accountKey, keyFile(t, endpoint.URL), 0o600))
	gcloudDir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(gcloudDir, "application_default_credentials.json"), keyFile(t, endpoint.URL), 0o600))
	require.NoError(t, os.WriteFile(loginToken, []byte("of-the-login"), 0o600))

	for name, c := range map[string]struct {
		args         []string
		account      bool
		others       bool
		login        bool
		token        string
		withoutToken string
	}{
		"Pulumi with application default credentials":        {args: byDefaultCredentials, account: true, token: "of-the-account"},
		"Pulumi with a login alone":                          {args: byDefaultCredentials, login: true, withoutToken: "default credentials"},
		"Pulumi with what only the provider and gcloud read": {args: byDefaultCredentials, others: true, withoutToken: "default credentials"},
		"people with a login":                                {args: byLogin, login: true, token: "of-the-login"},
		"people with both":                                   {args: byLogin, account: true, login: true, token: "of-the-login"},
		"people with neither":                                {args: byLogin, withoutToken: "gcloud"},
	} {
		t.Run(name, func(t *testing.T) {
			environment := []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CLOUDSDK_CONFIG=" + t.TempDir(),
				"CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=true",
				// There is no machine of Google Cloud here to ask.
				"NO_GCE_CHECK=true",
				`KUBERNETES_EXEC_INFO={"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","spec":{"interactive":false}}`,
			}
			if c.account {
				environment = append(environment, "GOOGLE_APPLICATION_CREDENTIALS="+accountKey)
			}
			if c.others {
				environment = append(environment, "CLOUDSDK_CONFIG="+gcloudDir, "GOOGLE_OAUTH_ACCESS_TOKEN=of-the-provider",
					"GOOGLE_CREDENTIALS="+accountKey, "GOOGLE_CLOUD_KEYFILE_JSON="+accountKey, "GCLOUD_KEYFILE_JSON="+accountKey)
			}
			if c.login {
				environment = append(environment, "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE="+loginToken)
			}
			token, complaint := credential(t, c.args, environment)
			assert.Equal(t, c.token, token)
			assert.Contains(t, complaint, c.withoutToken)
		})
	}
}

// credential returns the token that the plugin of a kubeconfig prints, or its error.
func credential(t *testing.T, args, environment []string) (token, complaint string) {
	t.Helper()
	text := testkit.Must(kubeconfigText("c", "192.0.2.1", "", args))(t)
	var kubeconfig struct {
		Users []struct {
			User struct {
				Exec struct {
					Command string
					Args    []string
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &kubeconfig))
	plugin := kubeconfig.Users[0].User.Exec
	command := exec.CommandContext(t.Context(), plugin.Command, plugin.Args...)
	command.Env = environment
	output, err := command.Output()
	if exit, failed := err.(*exec.ExitError); failed {
		return "", string(exit.Stderr)
	}
	require.NoError(t, err)
	var printed struct{ Status struct{ Token string } }
	require.NoError(t, json.Unmarshal(output, &printed), string(output))
	return printed.Status.Token, ""
}

// keyFile returns the key of a service account that does not exist, with an endpoint here.
func keyFile(t *testing.T, tokenURI string) []byte {
	t.Helper()
	key := testkit.Must(rsa.GenerateKey(rand.Reader, 2048))(t)
	der := testkit.Must(x509.MarshalPKCS8PrivateKey(key))(t)
	text := testkit.Must(json.Marshal(map[string]string{
		"type": "service_account", "project_id": "my-project", "private_key_id": "1", "client_id": "1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": "deploy@my-project.iam.gserviceaccount.com", "token_uri": tokenURI,
	}))(t)
	return text
}

// TestAccessWarning: an update says to whom it closes the control plane.
func TestAccessWarning(t *testing.T) {
	const office, vpn = "81.2.69.142/32", "10.9.0.0/16"
	block := func(cidr string) any { return map[string]any{"cidrBlock": cidr} }
	const onlyNetwork = "only machines in the network clicks can connect to it then, Pulumi included"
	for name, c := range map[string]struct {
		had  []any
		now  config.Cluster
		says []string
	}{
		"nothing before":              {nil, config.Cluster{}, nil},
		"as it was":                   {[]any{block(office)}, config.Cluster{AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: office}}}, nil},
		"a larger range":              {[]any{block(office)}, config.Cluster{AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: "81.2.0.0/16"}}}, nil},
		"none any more":               {[]any{block(office)}, config.Cluster{}, []string{"closes the control plane to " + office + ": ", onlyNetwork}},
		"one of two":                  {[]any{block(office), block(vpn)}, config.Cluster{AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: vpn}}}, []string{office + ": only machines in the network clicks and " + vpn}},
		"only private addresses":      {[]any{block(office), block(vpn)}, config.Cluster{PrivateEndpoint: true, AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: office}, {CIDR: vpn}}}, []string{"plane to " + office + ": only machines in the network clicks and " + vpn + " can"}},
		"another cluster in its room": {[]any{block(office)}, config.Cluster{Region: "us-east1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			state := map[resource.URN]map[string]any{"urn:pulumi:dev::persia::gcp:container/cluster:Cluster::clicks": {
				"name": "clicks", "project": "mine", "location": "", "privateClusterConfig": map[string]any{"enablePrivateEndpoint": false},
				"masterAuthorizedNetworksConfig": map[string]any{"cidrBlocks": c.had},
			}}
			c.now.Name = "clicks"
			text := AccessWarning("mine", c.now, state)
			for _, part := range c.says {
				assert.Contains(t, text, part)
			}
			assert.Equal(t, c.says == nil, text == "", text)
		})
	}
}
