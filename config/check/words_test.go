package check

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTypo(t *testing.T) {
	known := []string{"ro", "rw", "implicit-dirs", "PERSIA_CKPT_KEEP"}
	for word, want := range map[string][]string{
		"implict-dirs": {"implicit-dirs"}, "implicit-dirs": nil, "implicit-file": nil, "r": nil, "PERSIA_CKPT_DIR": nil, "PERSIA_CKPT_KEPT": {"PERSIA_CKPT_KEEP"},
	} {
		assert.Equal(t, want, Typo(word, known), word)
	}
}

func TestLookalike(t *testing.T) {
	for text, want := range map[string]string{
		"/workspace/train.py": "", "größe": "", "文件/训练.yml": "", "обучение модели": "", "train обучение": "", "μ": "",
		"w\u043erkspace":     "a Latin letter",
		"\u0410dam":          "a Latin letter",
		"\u03bfpt":           "a Latin letter",
		"a\u00a0b":           "a space",
		"a\u200bb":           "nothing",
		"\ufeffa":            "nothing",
		"implicit\u2013dirs": "a hyphen",
		"\u201ca\u201d":      "a quote",
		"a\uff1ab":           ":",
	} {
		_, like, found := lookalike(text)
		assert.Equal(t, want, like, "%q", text)
		assert.Equal(t, want != "", found, "%q", text)
	}
}
