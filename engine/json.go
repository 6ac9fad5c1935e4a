package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/seccomp"
)

// jsonMember is a field of a Spec as JSON has it. One list of them serves both
// directions, so a key cannot be written that is not read.
type jsonMember struct {
	key string
	// at is where the value is: a jsonObject, jsonArray or jsonOptional, or a pointer
	// that writeValue knows. The pointer's type says the unit.
	at any
	// always is set if the zero value is written as well, and must not be missing.
	always bool
}

// jsonObject is a struct with members.
type jsonObject interface{ members() []jsonMember }

// jsonArray is a list, whose nil is left out and whose empty value is not.
type jsonArray interface {
	isNil() bool
	elements() []any
	clear()   // makes it empty
	add() any // appends an element
}

// jsonOptional is a pointer to a jsonObject.
type jsonOptional interface {
	get() jsonObject // nil: left out
	set() jsonObject
}

// Types of numbers that need more than their Go type to tell their form.
type (
	jsonCount int    // UnlimitedCount is "unlimited"
	jsonMode  uint32 // permission bits: octal digits in a string
)

// jsonSlice is a jsonArray of what each returns for an element.
type jsonSlice[T any] struct {
	list *[]T
	each func(*T) any
}

func (s jsonSlice[T]) isNil() bool { return *s.list == nil }

func (s jsonSlice[T]) elements() (all []any) {
	for i := range *s.list {
		all = append(all, s.each(&(*s.list)[i]))
	}
	return all
}

func (s jsonSlice[T]) clear() { *s.list = []T{} }

func (s jsonSlice[T]) add() any {
	*s.list = append(*s.list, *new(T))
	return s.each(&(*s.list)[len(*s.list)-1])
}

func texts(list *[]string) jsonArray {
	return jsonSlice[string]{list, func(s *string) any { return s }}
}

// leftOut reports whether a member has its zero value.
func (m jsonMember) leftOut() bool {
	if m.always {
		return false
	}
	switch p := m.at.(type) {
	case jsonObject:
		return !slices.ContainsFunc(p.members(), func(m jsonMember) bool { return !m.leftOut() })
	case jsonArray:
		return p.isNil()
	case jsonOptional:
		return p.get() == nil
	case *string:
		return *p == ""
	case *bool:
		return !*p
	case *float64:
		return *p == 0
	case *int:
		return *p == 0
	case *jsonCount:
		return *p == 0
	case *jsonMode:
		return *p == 0
	case *Bytes:
		return *p == 0
	case *time.Duration:
		return *p == 0
	case **seccomp.Policy:
		return *p == nil
	}
	panic(fmt.Sprintf("engine: no JSON for %T", m.at))
}

// writeValue appends the JSON of what stands at path.
func writeValue(b []byte, path string, at any) (_ []byte, err error) {
	switch p := at.(type) {
	case jsonObject:
		return writeObject(b, path, p)
	case jsonOptional:
		return writeObject(b, path, p.get())
	case jsonArray:
		b = append(b, '[')
		for i, e := range p.elements() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = writeValue(b, fmt.Sprintf("%s[%d]", path, i), e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *string:
		if !utf8.ValidString(*p) {
			return nil, invalidField(path, quoted(*p), "not UTF-8, so JSON cannot hold it")
		}
		return writeAny(b, *p)
	case *bool:
		return strconv.AppendBool(b, *p), nil
	case *float64:
		if math.IsNaN(*p) || math.IsInf(*p, 0) {
			return nil, invalidField(path, fmt.Sprint(*p), "not a number that JSON can hold")
		}
		return writeAny(b, *p)
	case *int:
		return strconv.AppendInt(b, int64(*p), 10), nil
	case *jsonCount:
		return writeLimit(b, int64(*p), strconv.Itoa(int(*p))), nil
	case *Bytes:
		return writeLimit(b, int64(*p), strconv.FormatInt(int64(*p), 10)), nil
	case *time.Duration:
		return writeLimit(b, int64(*p), seconds(*p)), nil
	case *jsonMode:
		return fmt.Appendf(b, `"%04o"`, *p), nil
	case **seccomp.Policy:
		return writeAny(b, *p)
	}
	panic(fmt.Sprintf("engine: no JSON for %T", at))
}

func writeObject(b []byte, path string, o jsonObject) (_ []byte, err error) {
	b = append(b, '{')
	first := true
	for _, m := range o.members() {
		if m.leftOut() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(strconv.AppendQuote(b, m.key), ':')
		if b, err = writeValue(b, within(path, m.key), m.at); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func writeLimit(b []byte, v int64, number string) []byte {
	if v == math.MaxInt64 {
		return strconv.AppendQuote(b, unlimited)
	}
	return append(b, number...)
}

// writeAny leaves <, > and & as they are, which people read.
func writeAny(b []byte, v any) ([]byte, error) {
	var w bytes.Buffer
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return append(b, bytes.TrimSuffix(w.Bytes(), []byte("\n"))...), nil
}

// within is the path of a member.
func within(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// seconds is a time as a decimal number, exactly.
func seconds(d time.Duration) string {
	sign, v := "", uint64(d)
	if d < 0 {
		sign, v = "-", -v
	}
	s := fmt.Sprintf("%s%d.%09d", sign, v/1e9, v%1e9)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// parseSeconds reads a number of JSON. Without an exponent it is exact.
func parseSeconds(number string) (time.Duration, error) {
	if !strings.ContainsAny(number, "eE") {
		return time.ParseDuration(number + "s")
	}
	f, err := strconv.ParseFloat(number, 64)
	if err == nil && math.Abs(f) >= math.MaxInt64/1e9 {
		err = errors.New("too large")
	}
	return time.Duration(math.Round(f * 1e9)), err
}
