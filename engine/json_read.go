package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/seccomp"
)

// jsonReader reads a jsonObject strictly: a key that it does not know, or one that is
// there twice, is an InvalidError with its path and line.
type jsonReader struct {
	text []byte
	dec  *json.Decoder
}

// maxElements bounds a list, and so the time that it takes: a Spec may be another's.
const maxElements = 10_000

// readObject reads text, which is one JSON object, into o, which is zero.
func readObject(text []byte, o jsonObject) error {
	r := jsonReader{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	if err := r.checkSyntax(); err != nil {
		return err
	}
	return r.value("", o)
}

// checkSyntax makes sure that reading tokens cannot fail.
func (r *jsonReader) checkSyntax() error {
	if len(bytes.TrimSpace(r.text)) == 0 {
		return invalid("empty: want a JSON object; {} is the default")
	}
	for i := 0; i < len(r.text); {
		c, size := utf8.DecodeRune(r.text[i:])
		if c == utf8.RuneError && size == 1 {
			return &InvalidError{Line: r.line(int64(i)), Problem: "not UTF-8"}
		}
		i += size
	}
	var all json.RawMessage
	err := json.Unmarshal(r.text, &all)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &InvalidError{Line: r.line(syntax.Offset - 1), Problem: "not JSON: " + syntax.Error(), Err: err}
	}
	return err
}

// line is where the byte at an offset is.
func (r *jsonReader) line(offset int64) int {
	offset = min(max(offset, 0), int64(len(r.text)))
	return 1 + bytes.Count(r.text[:offset], []byte("\n"))
}

// refuse is an error about what was read last.
func (r *jsonReader) refuse(path, value, format string, args ...any) error {
	return &InvalidError{Field: path, Value: value, Problem: fmt.Sprintf(format, args...),
		Line: r.line(r.dec.InputOffset())}
}

// value reads what stands at path.
func (r *jsonReader) value(path string, at any) error {
	if p, ok := at.(**seccomp.Policy); ok {
		return r.policy(path, p)
	}
	token, err := r.dec.Token()
	if err != nil {
		return err // checkSyntax has seen to it that there is none
	}
	switch p := at.(type) {
	case jsonObject:
		return r.object(path, token, p)
	case jsonOptional:
		return r.object(path, token, p.set())
	case jsonArray:
		return r.array(path, token, p)
	}
	if want := readLeaf(token, at); want != "" {
		return r.refuse(path, shown(token), "want %s", want)
	}
	return nil
}

func (r *jsonReader) object(path string, token json.Token, o jsonObject) error {
	if token != json.Delim('{') {
		return r.refuse(path, shown(token), "want an object")
	}
	members := o.members()
	seen := make(map[string]bool)
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		key := token.(string) // nothing else is syntax
		m, ok := memberOf(members, key)
		switch {
		case !ok:
			return r.refuse(within(path, key), "", "unknown field: use %s", keysOf(members))
		case seen[key]:
			return r.refuse(within(path, key), "", "listed twice")
		}
		seen[key] = true
		if err := r.value(within(path, key), m.at); err != nil {
			return err
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return err
	}
	for _, m := range members {
		if m.always && !seen[m.key] {
			return r.refuse(within(path, m.key), "", "missing")
		}
	}
	return nil
}

func (r *jsonReader) array(path string, token json.Token, list jsonArray) error {
	if token != json.Delim('[') {
		return r.refuse(path, shown(token), "want a list")
	}
	list.clear()
	for i := 0; r.dec.More(); i++ {
		if i == maxElements {
			return r.refuse(path, "", "more than %d elements", maxElements)
		}
		if err := r.value(path+"["+strconv.Itoa(i)+"]", list.add()); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return err
}

// policy reads docker's format, as strictly as the rest.
func (r *jsonReader) policy(path string, to **seccomp.Policy) error {
	var raw json.RawMessage
	if err := r.dec.Decode(&raw); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	p := new(seccomp.Policy)
	err := seccomp.CheckKeys(raw)
	if err == nil {
		err = dec.Decode(p)
	}
	if err != nil || string(raw) == "null" {
		e := &InvalidError{Field: path, Problem: "want an object", Err: err}
		if err != nil {
			e.Problem = strings.TrimPrefix(err.Error(), "json: ")
		}
		e.Line = r.line(r.dec.InputOffset() - int64(len(raw)) + dec.InputOffset())
		return e
	}
	*to = p
	return nil
}

// readLeaf stores a token, and returns what it should have been if it does not fit.
func readLeaf(token json.Token, at any) (want string) {
	text, isText := token.(string)
	number, isNumber := token.(json.Number)
	var v int64
	var err error
	switch p := at.(type) {
	case *string:
		if *p = text; !isText {
			return "a string"
		}
	case *bool:
		var ok bool
		if *p, ok = token.(bool); !ok {
			return "true or false"
		}
	case *float64:
		if *p, err = strconv.ParseFloat(number.String(), 64); err != nil {
			return "a number"
		}
	case *int:
		v, err = strconv.ParseInt(number.String(), 10, strconv.IntSize)
		if *p = int(v); err != nil {
			return "a whole number"
		}
	case *jsonCount:
		v, err = wholeOrUnlimited(token)
		if *p = jsonCount(v); err != nil {
			return `a whole number, or "unlimited"`
		}
	case *Bytes:
		v, err = wholeOrUnlimited(token)
		if *p = Bytes(v); err != nil {
			return `a whole number of bytes, or "unlimited"`
		}
	case *time.Duration:
		if isNumber {
			*p, err = parseSeconds(number.String())
		} else {
			*p = UnlimitedTime
		}
		if err != nil || !isNumber && text != unlimited {
			return `a number of seconds, or "unlimited"`
		}
	case *jsonMode:
		mode, err := strconv.ParseUint(text, 8, 32)
		if *p = jsonMode(mode); err != nil {
			return `permission bits as octal digits in quotes, such as "0755"`
		}
	default:
		panic(fmt.Sprintf("engine: no JSON for %T", at))
	}
	return ""
}

func wholeOrUnlimited(token json.Token) (int64, error) {
	if token == unlimited {
		return math.MaxInt64, nil
	}
	number, _ := token.(json.Number)
	return strconv.ParseInt(number.String(), 10, 64)
}

// shown is a token in a message.
func shown(token json.Token) string {
	switch v := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		return "" // a list or an object
	case string:
		return strconv.Quote(v[:min(len(v), 100)])
	default:
		return fmt.Sprint(v)
	}
}

func memberOf(members []jsonMember, key string) (jsonMember, bool) {
	for _, m := range members {
		if m.key == key {
			return m, true
		}
	}
	return jsonMember{}, false
}

func keysOf(members []jsonMember) string {
	var keys []string
	for _, m := range members {
		keys = append(keys, m.key)
	}
	return strings.Join(keys, ", ")
}
