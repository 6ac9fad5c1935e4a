//go:build !(libseccomp && cgo && linux)

package seccomp

// Compile compiles a policy into a filter. This build lacks libseccomp: the error
// is that of Validate, or else ErrNoCompiler.
func Compile(p *Policy, goarch, kernel string) (Filter, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return nil, ErrNoCompiler
}
