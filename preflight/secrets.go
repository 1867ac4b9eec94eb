package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"persia/config/stackfile"
)

// secretsCheck says what opens the secrets. That all are there and encrypted is a
// matter of the stack file, which is valid.
func (p *preflight) secretsCheck() Check {
	const name = "secrets"
	detail := fmt.Sprintf("%s in %s", values(p.file.encrypted), p.file.name)
	switch {
	case p.file.Setting(stackfile.SecretsProvider) != "":
		provider, _, _ := strings.Cut(p.file.Setting(stackfile.SecretsProvider), "://")
		return ok(name, detail+", which "+provider+" opens")
	case p.file.Setting(stackfile.EncryptionSalt) != "":
		return passphraseCheck(name, detail+", which a passphrase opens")
	default:
		return ok(name, detail)
	}
}

func values(n int) string {
	switch n {
	case 0:
		return "no encrypted values"
	case 1:
		return "1 encrypted value"
	default:
		return fmt.Sprintf("%d encrypted values", n)
	}
}

// passphraseCheck looks where Pulumi looks for the passphrase.
func passphraseCheck(name, detail string) Check {
	const variable = "PULUMI_CONFIG_PASSPHRASE"
	file := os.Getenv(variable + "_FILE")
	_, given := os.LookupEnv(variable)
	switch {
	case given:
		return ok(name, detail+": "+variable+" is set")
	case file == "":
		return warning(name, detail+": Pulumi will ask for it, and fail where there is nobody to ask", "set "+variable+" or "+variable+"_FILE")
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return missing(name, detail+": "+variable+"_FILE names "+file+", which is not there", "write the passphrase there, or correct the variable")
	}
	return ok(name, detail+": it is in "+file)
}
