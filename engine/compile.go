package engine

import "errors"

// Compile decides how to make a sandbox. It changes nothing: paths are resolved and
// remembered by device and inode, so that Start can refuse what has changed
// since. Its error joins all that is wrong: ErrInvalid for a Spec that cannot be,
// UnsupportedError for what this host cannot do.
func Compile(s Spec, h Host) (*Plan, error) {
	if err := errors.Join(h.check(), s.Validate()); err != nil {
		return nil, &Error{Op: "compile", Err: err}
	}
	pl := newPlanner(s.normal(), h)
	pl.decideLevel()
	if pl.decideUser() { // what it could not find, decideFiles would not either
		pl.decideFiles()
	}
	pl.decideEnv()
	pl.decideLimits()
	pl.decideOverlay()
	pl.decideSeccomp()
	if !pl.hasNamespaces() {
		pl.decidePrivate()
	}
	switch pl.plan.Level {
	case LevelNamespaces:
		pl.decideLandlock()
	case LevelLandlock:
		pl.decideLandlockOnly()
	case LevelSeatbelt:
		pl.decideSeatbelt()
	}
	if err := joinSome(pl.errs); err != nil {
		return nil, &Error{Op: "compile", Err: err}
	}
	pl.plan.config = pl.config
	return pl.plan, nil
}
