// Package jsoncount counts what a JSON text would decode to, without decoding it.
package jsoncount

import "bytes"

// Count returns upper bounds: of the values in a JSON text beyond the first, and of
// the members of its objects. For valid JSON the second is exact. It accepts any
// bytes.
func Count(text []byte) (values, members int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i+1)
		case ',', '[', '{':
			values++
		case ':':
			members++
		}
	}
	return values, members
}

// endOfString returns the index of the quote that ends the string whose first byte
// is text[i].
func endOfString(text []byte, i int) int {
	for {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text)
		}
		end, escapes := i+n, 0
		for end-escapes > i && text[end-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		i = end + 1
	}
}
