package rootfs

import (
	"slices"
	"strings"
)

// etcAlways are the parts of the host's /etc that are looked for by their names. Only
// the public part of /etc/ssl is among them: certificates, not private keys.
var etcAlways = []string{
	"ld.so.cache", "localtime", "alternatives", "services", "protocols", "fonts", "ssl/certs", "ssl/openssl.cnf",
	"pki/tls/certs", "pki/ca-trust/extracted", "ca-certificates/extracted",
}

// etcPrograms are the parts that programs and libraries of /usr read: tables, and
// defaults that packages bring along, often as the target of a link in /usr. A name
// is here if it meets all of this: what reads it is started by people and not by the
// system; packages fill it, and it is readable to everyone; it has no users, hosts,
// keys or passwords in it. So nothing of daemons, accounts, the network or credentials
// is here (pip.conf and npmrc have tokens in many places). Nor is what programs do
// well without: each directory is one more mount of each start. A "*" stands for
// anything that follows. Sorted.
var etcPrograms = []string{
	"ImageMagick-*", "R", "chromium", "chromium.d", "crypto-policies", "fedora-release", "ghostscript",
	"gitattributes", "gitconfig", "java-*", "libpaper.d", "lsb-release", "man_db.conf", "manpath.config", "maven",
	"mime.types", "os-release", "papersize", "php", "php.d", "php.ini", "redhat-release", "system-release", "texmf",
}

// etcOfHost lists the parts of the host's /etc that the sandbox has.
func (o Options) etcOfHost() (paths []string) {
	for _, name := range etcAlways {
		paths = append(paths, "/etc/"+name)
	}
	if o.List == nil {
		return paths
	}
	names, err := o.List("/etc")
	if err != nil {
		return paths // a host without one
	}
	for _, name := range names {
		if ofPrograms(name) {
			paths = append(paths, "/etc/"+name)
		}
	}
	return paths
}

// ofPrograms reports whether a name in /etc is one of etcPrograms.
func ofPrograms(name string) bool {
	i, found := slices.BinarySearch(etcPrograms, name)
	if found {
		return true
	}
	// "java-*" comes before all that it stands for.
	prefix, ok := "", false
	if i > 0 {
		prefix, ok = strings.CutSuffix(etcPrograms[i-1], "*")
	}
	return ok && strings.HasPrefix(name, prefix)
}
