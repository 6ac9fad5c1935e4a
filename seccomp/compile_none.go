//go:build !(libseccomp && cgo && linux)

package seccomp

// Compile makes a filter of a policy. In this build it returns ErrNoCompiler.
func Compile(p *Policy, goarch, kernel string) (Filter, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return nil, ErrNoCompiler
}
