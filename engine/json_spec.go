package engine

import (
	"io"
)

// maxSpecText bounds what ParseSpec reads; a Spec with a policy of 10,000 rules is
// smaller.
const maxSpecText = 16 << 20

// ParseSpec reads a Spec from its JSON, which Spec.MarshalJSON writes and
// docs/schema/spec.schema.json describes: one object, in which fields that are left out
// are zero. Paths of the host may be relative to the current directory. It is strict:
// a field that is unknown, there twice or of another type is an InvalidError with its
// path and line. It does not Validate the Spec.
func ParseSpec(r io.Reader) (Spec, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSpecText+1))
	if err != nil {
		return Spec{}, &Error{Op: "read spec", Err: err}
	}
	if len(text) > maxSpecText {
		return Spec{}, invalid("more than %s of JSON", Bytes(maxSpecText))
	}
	var s Spec
	if err := readObject(text, &s); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// MarshalJSON writes what ParseSpec reads, without fields that are zero. Names end in
// their units; what is unlimited is "unlimited". It is an InvalidError if a text is not
// UTF-8.
func (s Spec) MarshalJSON() ([]byte, error) { return writeObject(nil, "", &s) }

// UnmarshalJSON replaces the Spec by what ParseSpec would read.
func (s *Spec) UnmarshalJSON(text []byte) error {
	var read Spec
	if err := readObject(text, &read); err != nil {
		return err
	}
	*s = read
	return nil
}

// MarshalJSON writes the limits as a Spec's JSON has them.
func (l Limits) MarshalJSON() ([]byte, error) { return writeObject(nil, "", &l) }

// UnmarshalJSON replaces the limits, as strictly as ParseSpec.
func (l *Limits) UnmarshalJSON(text []byte) error {
	var read Limits
	if err := readObject(text, &read); err != nil {
		return err
	}
	*l = read
	return nil
}

func (s *Spec) members() []jsonMember {
	return []jsonMember{
		{key: "name", at: &s.Name},
		{key: "hostname", at: &s.Hostname},
		{key: "user", at: optionalUser{&s.User}},
		{key: "fs", at: &s.FS},
		{key: "env", at: texts(&s.Env)},
		{key: "limits", at: &s.Limits},
		{key: "seccomp", at: &s.Seccomp},
		{key: "keep", at: &s.Keep},
		{key: "degrade", at: jsonSlice[Protection]{&s.Degrade, func(p *Protection) any { return (*string)(p) }}},
		{key: "allow_no_isolation", at: &s.AllowNoIsolation},
		{key: "require", at: jsonSlice[Requirement]{&s.Require, func(r *Requirement) any { return r }}},
	}
}

// optionalUser is Spec.User. Its ids are always there, since 0 is root.
type optionalUser struct{ at **User }

func (o optionalUser) get() jsonObject {
	if *o.at == nil {
		return nil
	}
	return *o.at
}

func (o optionalUser) set() jsonObject {
	*o.at = new(User)
	return *o.at
}

func (u *User) members() []jsonMember {
	return []jsonMember{{key: "uid", at: &u.UID, always: true}, {key: "gid", at: &u.GID, always: true}}
}

func (f *FS) members() []jsonMember {
	return []jsonMember{
		{key: "root", at: &f.Root},
		{key: "view", at: (*string)(&f.View)},
		{key: "hidden", at: texts(&f.Hidden)},
		{key: "overlay", at: &f.Overlay},
		{key: "mounts", at: jsonSlice[Mount]{&f.Mounts, func(m *Mount) any { return m }}},
		{key: "workspace", at: &f.Workspace},
		{key: "protect", at: (*string)(&f.Protect)},
		{key: "workspace_mode", at: (*string)(&f.WorkspaceMode)},
		{key: "upper", at: &f.Upper},
		{key: "allow_write", at: texts(&f.AllowWrite)},
	}
}

func (m *Mount) members() []jsonMember {
	return []jsonMember{
		{key: "type", at: (*string)(&m.Type)},
		{key: "source", at: &m.Source},
		{key: "target", at: &m.Target},
		{key: "read_only", at: &m.ReadOnly},
		{key: "size_bytes", at: &m.Size},
		{key: "mode", at: (*jsonMode)(&m.Mode)},
		{key: "no_exec", at: &m.NoExec},
	}
}

func (l *Limits) members() (list []jsonMember) {
	for _, f := range limitFields {
		list = append(list, jsonMember{key: f.json, at: f.at(l).json})
	}
	return append(list,
		jsonMember{key: "cpus", at: &l.CPUs},
		jsonMember{key: "cpu_set", at: &l.CPUSet},
		jsonMember{key: "io", at: jsonSlice[IOLimit]{&l.IO, func(io *IOLimit) any { return io }}})
}

func (l *IOLimit) members() []jsonMember {
	return []jsonMember{
		{key: "device", at: &l.Device},
		{key: "read_bytes_per_second", at: &l.ReadBPS},
		{key: "write_bytes_per_second", at: &l.WriteBPS},
		{key: "read_operations_per_second", at: (*jsonCount)(&l.ReadIOPS)},
		{key: "write_operations_per_second", at: (*jsonCount)(&l.WriteIOPS)},
	}
}

func (s *Seccomp) members() []jsonMember {
	return []jsonMember{
		{key: "profile", at: &s.Profile},
		{key: "policy", at: &s.Policy},
		{key: "no_exec", at: &s.NoExec},
		{key: "audit", at: &s.Audit},
	}
}

func (r *Requirement) members() []jsonMember {
	return []jsonMember{{key: "limit", at: (*string)(&r.Limit)}, {key: "enforcer", at: (*string)(&r.Enforcer)}}
}
