package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"persia/config/input"
)

// secretsCheck checks what decrypts the secrets. The stack file is already valid, so
// all secrets exist and are encrypted.
func (p *preflight) secretsCheck() Check {
	const name = "secrets"
	detail := fmt.Sprintf("%s in %s", values(p.file.encrypted), p.file.name)
	switch {
	case p.file.Setting(input.SecretsProvider) != "":
		provider, _, _ := strings.Cut(p.file.Setting(input.SecretsProvider), "://")
		return ok(name, detail+", decrypted with "+provider)
	case p.file.Setting(input.EncryptionSalt) != "":
		return passphraseCheck(name, detail+", decrypted with a passphrase")
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

// passphraseCheck looks for the passphrase where Pulumi does.
func passphraseCheck(name, detail string) Check {
	const variable = "PULUMI_CONFIG_PASSPHRASE"
	file := os.Getenv(variable + "_FILE")
	_, given := os.LookupEnv(variable)
	switch {
	case given:
		return ok(name, detail+": "+variable+" is set")
	case file == "":
		return warning(name, detail+": Pulumi asks for it in a terminal, and fails without one", "set "+variable+" or "+variable+"_FILE")
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return missing(name, detail+": "+variable+"_FILE is "+file+", which does not exist", "write the passphrase to that file, or correct the variable")
	}
	return ok(name, detail+": it is in "+file)
}
