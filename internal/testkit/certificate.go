package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Certificate is a certificate with its key and who has signed it, as PEM texts.
type Certificate struct {
	CA, Certificate, Key string
}

// NewCertificate returns a certificate with DNS names, for servers and clients, signed by an authority of its
// own. It is valid for an hour.
func NewCertificate(t testing.TB, names ...string) Certificate {
	t.Helper()
	return ValidCertificate(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), names...)
}

// ValidCertificate is [NewCertificate] with other dates.
func ValidCertificate(t testing.TB, from, until time.Time, names ...string) Certificate {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, DNSNames: names,
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, leafKey := newKey(t), newKey(t)
	key, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return Certificate{
		CA:          sign(t, authority, authority, authorityKey, authorityKey),
		Certificate: sign(t, leaf, authority, leafKey, authorityKey),
		Key:         encode("EC PRIVATE KEY", key),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, certificate, authority *x509.Certificate, key, authorityKey *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, authority, key.Public(), authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der)
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
