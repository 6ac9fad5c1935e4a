//go:build !unix

package guest

import "errors"

func own(int) error { return errors.ErrUnsupported }
