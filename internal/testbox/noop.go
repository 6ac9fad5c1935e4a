//go:build unix

package testbox

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
)

// Noop writes the smallest static program there is, exit(0), into dir and returns its path. What it costs to run is
// what it costs to start.
func Noop(dir string) (string, error) {
	code, machine := []byte{0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05}, uint16(62) // mov $60,%eax; xor %edi,%edi; syscall
	if runtime.GOARCH == "arm64" {
		code, machine = nil, 183
		for _, w := range []uint32{0xd2800ba8, 0xd2800000, 0xd4000001} { // mov x8,#93; mov x0,#0; svc #0
			code = binary.LittleEndian.AppendUint32(code, w)
		}
	}
	const base, headers = 0x400000, 64 + 56
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 15: 0})
	for _, v := range []any{
		uint16(2), machine, uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base),
		uint64(headers + len(code)), uint64(headers + len(code)), uint64(0x1000),
	} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			return "", err
		}
	}
	b.Write(code)
	path := filepath.Join(dir, "noop")
	return path, os.WriteFile(path, b.Bytes(), 0o755)
}
