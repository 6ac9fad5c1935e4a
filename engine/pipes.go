package engine

import "io"

// StdinPipe returns a pipe to the command's standard input. Close it when there is
// nothing more to write; Wait closes it as well.
func (c *Cmd) StdinPipe() (io.WriteCloser, error) {
	if c.run != nil || c.Stdin != nil {
		return nil, c.failed("open pipe", invalid("a pipe is made before Start, and Stdin is not set then"))
	}
	read, write, err := c.sandbox.pipe()
	if err != nil {
		return nil, c.failed("open pipe", err)
	}
	c.Stdin = read
	c.io.far, c.io.ours = append(c.io.far, read), append(c.io.ours, write)
	return write, nil
}

// StdoutPipe returns a pipe from the command's standard output. Read it to its end
// before Wait, which closes it.
func (c *Cmd) StdoutPipe() (io.ReadCloser, error) { return c.outputPipe(&c.Stdout) }

// StderrPipe is StdoutPipe for the standard error.
func (c *Cmd) StderrPipe() (io.ReadCloser, error) { return c.outputPipe(&c.Stderr) }

func (c *Cmd) outputPipe(w *io.Writer) (io.ReadCloser, error) {
	if c.run != nil || *w != nil {
		return nil, c.failed("open pipe", invalid("a pipe is made before Start, and Stdout or Stderr is not set then"))
	}
	read, write, err := c.sandbox.pipe()
	if err != nil {
		return nil, c.failed("open pipe", err)
	}
	*w = write
	c.io.far, c.io.ours = append(c.io.far, write), append(c.io.ours, read)
	return read, nil
}
