package check

import "unicode"

// punctuation maps characters that editors and web pages write to the ones they resemble.
var punctuation = map[rune]string{
	'‐': "a hyphen", '‑': "a hyphen", '‒': "a hyphen", '–': "a hyphen", '—': "a hyphen", '−': "a hyphen",
	'‘': "a quote", '’': "a quote", '“': "a quote", '”': "a quote", '„': "a quote",
}

// lookalike returns the first character of a text that looks like another one, and the other one. A
// letter of another alphabet counts only in a word with Latin letters.
func lookalike(text string) (character rune, like string, found bool) {
	var latin bool // the word has Latin letters
	var other rune // the first Cyrillic or Greek letter of the word, or 0
	for _, r := range text {
		switch {
		case punctuation[r] != "":
			return r, punctuation[r], true
		case r != ' ' && unicode.Is(unicode.Zs, r):
			return r, "a space", true
		case unicode.Is(unicode.Cf, r):
			return r, "nothing", true
		case r >= '！' && r <= '～':
			return r, string(r - '！' + '!'), true
		case !unicode.IsLetter(r):
			latin, other = false, 0
		case unicode.Is(unicode.Latin, r):
			latin = true
		case other == 0 && unicode.In(r, unicode.Cyrillic, unicode.Greek):
			other = r
		}
		if latin && other != 0 {
			return other, "a Latin letter", true
		}
	}
	return 0, "", false
}
