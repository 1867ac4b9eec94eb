package natsspec

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/decode"
)

// passwordForm matches passwords that need no escaping in a URL, because not every client
// unescapes them.
var passwordForm = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

func checkUsers(p *check.Problems, path *field.Path, users []User) {
	for i, user := range users {
		at := path.Index(i)
		p.Name(at.Child("name"), user.Name, validation.IsConfigMapKey) // a key of a Secret
		checkPassword(p, at.Child("password"), user.Password)
	}
	check.UniqueField(p, path, "name", users, func(u User) string { return u.Name }, "is already used by users[%d]; give each user its own name")
}

func checkPassword(p *check.Problems, path *field.Path, password decode.Secret) {
	switch {
	case password == "":
		p.Required(path, "write it with pulumi config set --secret --path '%s'", path)
	case !passwordForm.MatchString(string(password)):
		invalidSecret(p, path, "must consist of letters, digits, and -._~, because it is part of a URL; choose another, for example with `openssl rand -hex 24`")
	}
}

// checkCertificate checks that a server can present a certificate to clients that connect to
// host.
func checkCertificate(p *check.Problems, path *field.Path, c *Certificate, host string) {
	if c == nil {
		return
	}
	before := p.Count()
	for _, part := range []struct{ name, text string }{
		{"ca", c.CA}, {"certificate", c.Certificate}, {"key", string(c.Key)},
	} {
		if part.text == "" {
			p.Required(path.Child(part.name), "write the text of a PEM file, with pulumi config set --secret --path '%s'", path.Child(part.name))
		}
	}
	if p.Count() > before {
		return
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM([]byte(c.CA)) {
		invalidSecret(p, path.Child("ca"), "contains no certificate; write the text of a PEM file")
		return
	}
	pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		invalidSecret(p, path.Child("certificate"), "and key are not a matching pair of PEM texts; set both again")
		return
	}
	certificateFits(p, path.Child("certificate"), pair.Leaf, chain(pair), authorities, host)
	for _, part := range []struct{ name, text string }{{"ca", c.CA}, {"certificate", c.Certificate}} {
		warnOfDates(p, path.Child(part.name), part.text, time.Now())
	}
}

// warnOfDates warns of certificates that have ended, or that begin later.
func warnOfDates(p *check.Problems, path *field.Path, text string, now time.Time) {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
		case certificate.NotAfter.Before(now):
			p.Warn(path, "the certificate of %q ended on %s, and no client accepts it; set a new one", certificate.Subject, day(certificate.NotAfter))
		case certificate.NotBefore.After(now):
			p.Warn(path, "the certificate of %q begins on %s, and no client accepts it before; set one that is valid now", certificate.Subject, day(certificate.NotBefore))
		}
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// certificateFits checks everything but the dates: a stack that is valid today must not be
// refused tomorrow.
func certificateFits(p *check.Problems, path *field.Path, leaf *x509.Certificate, chain, authorities *x509.CertPool, host string) {
	if leaf.VerifyHostname(host) != nil {
		invalidSecret(p, path, "must be valid for %s; create one with that name, or a wildcard for it, among its DNS names", host)
		return
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: authorities, Intermediates: chain, CurrentTime: leaf.NotBefore})
	if err != nil {
		invalidSecret(p, path, "is not signed by ca for server authentication; append the intermediate certificates")
	}
}

// chain returns the certificates that follow the first one.
func chain(pair tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool
}

// invalidSecret refuses a value without printing it.
func invalidSecret(p *check.Problems, path *field.Path, format string, args ...any) {
	p.Invalid(path, field.OmitValueType{}, format, args...)
}
