package seatbelt

import (
	"path"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// Secrets returns the files of a Mac and of the user with the given home directory that
// no sandbox needs: a default for Config.Hidden together with ReadAll. It lists them
// whether they exist or not. home is absolute with symbolic links resolved; if it is "",
// only files of the system are listed. The list cannot be complete, so ReadAll remains
// weaker than Read.
func Secrets(home string) []string {
	secrets := []string{
		"/Library/Keychains",                         // the system's keys, of Wi-Fi and certificates
		"/Library/Application Support/com.apple.TCC", // which programs may use camera, screen and disk
		"/private/var/db/SystemKey",                  // opens the system's keychain
		"/private/var/db/dslocal",                    // users, with hashes of their passwords
		"/private/etc/master.passwd",                 // the same, in its former place
		"/private/etc/ssh",                           // host keys
		"/private/etc/krb5.keytab",                   // Kerberos keys of services
		"/private/var/root",                          // the home directory of root
	}
	if home == "" {
		return secrets
	}
	for _, name := range append(rootfs.SecretNames(),
		"Library/Group Containers/2BUA8C4S2C.com.1password", // 1Password's vault
		"Library/Keychains",                         // the user's passwords
		"Library/Application Support/com.apple.TCC", // what programs may access

		// Browsers: cookies are sessions, and some store passwords.
		"Library/Safari", "Library/Cookies", "Library/HTTPStorages", "Library/Containers/com.apple.Safari",
		"Library/Application Support/Google/Chrome", "Library/Application Support/Chromium",
		"Library/Application Support/Firefox", "Library/Application Support/Microsoft Edge",
		"Library/Application Support/BraveSoftware", "Library/Application Support/Arc",
		"Library/Application Support/Vivaldi", "Library/Application Support/com.operasoftware.Opera",

		// Letters.
		"Library/Mail", "Library/Messages",
	) {
		secrets = append(secrets, path.Join(home, name))
	}
	return secrets
}
