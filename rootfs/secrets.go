package rootfs

import "path"

// Secrets returns the files of a Linux system, and of the user with the given home
// directory, that no sandbox needs: a default for View.Hidden. It lists them whether they
// exist or not. If home is "" it lists those of the system. The list cannot be complete.
func Secrets(home string) []string {
	secrets := []string{
		"/var/mail", "/var/spool/mail", // letters
		"/var/crash", "/var/lib/systemd/coredump", // memory of programs, with what they knew
		"/var/log/journal", // output of the user's services
	}
	if home == "" {
		return secrets
	}
	for _, name := range append(SecretNames(), linuxSecrets...) {
		secrets = append(secrets, path.Join(home, name))
	}
	return secrets
}

// linuxSecrets are hidden on Linux only. Other systems keep some of them elsewhere, and
// have to compare each name with each path.
var linuxSecrets = []string{
	// Keys and passwords.
	".config/sops", ".config/age", ".age", // keys to other people's secrets
	".authinfo", ".authinfo.gpg", ".mylogin.cnf", ".config/vault", ".krb5cc",

	// Cloud accounts, and tunnels into this machine.
	".bluemix", ".aliyun", ".config/doctl", ".config/hcloud", ".rclone.conf", ".config/helm", ".config/argocd",
	".config/flyctl", ".fly", ".config/heroku", ".vercel", ".config/netlify", ".wrangler", ".config/.wrangler",
	".pulumi/credentials.json", ".config/stripe", ".databrickscfg", ".snowsql", ".terraformrc",
	".config/ngrok", ".ngrok2", ".cloudflared",

	// Credentials to publish code, models and reports, and of model accounts.
	".config/tea", ".jira.d", ".yarnrc", ".bunfig.toml", ".local/share/gem/credentials", ".config/pypoetry/auth.toml",
	".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/credentials", ".local/share/uv/credentials", ".condarc",
	".huggingface/token", ".cache/huggingface/token", ".m2/settings-security.xml", ".sbt/.credentials",
	".ivy2/.credentials", ".config/composer/auth.json", ".nuget/NuGet/NuGet.Config", ".kaggle", ".config/sentry",
	".sentryclirc", ".config/github-copilot", ".claude.json", ".local/share/opencode/auth.json", ".config/openai",
	".aider.conf.yml", ".config/io.datasette.llm/keys.json",

	// History of what was typed.
	".zhistory", ".histfile", ".local/share/atuin", ".rediscli_history", ".dbshell", ".mongodb", ".irb_history",
	".lesshst", ".viminfo",

	// Keyrings: all passwords of a session.
	".local/share/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet", ".pki", ".local/share/pki",
	".config/keepassxc", ".config/KeePass", ".config/Bitwarden", ".config/Bitwarden CLI", ".config/1Password",
	".local/share/gnome-online-accounts", ".config/goa-1.0",

	// Browsers: cookies are sessions, and some store passwords.
	".mozilla", ".config/mozilla", ".librewolf", ".waterfox", ".zen",
	".config/google-chrome", ".config/google-chrome-beta", ".config/google-chrome-unstable", ".config/chromium",
	".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
	"snap/firefox", "snap/chromium", "snap/brave", ".var/app",

	// Letters and messages.
	".thunderbird", ".local/share/evolution", ".config/evolution", ".mutt", ".mbsyncrc", ".msmtprc", ".fetchmailrc",
	".config/Signal", ".config/Slack", ".config/discord", ".local/share/TelegramDesktop",

	// Passwords of networks and of remote desktops.
	".config/NetworkManager", ".local/share/networkmanagement", ".vnc", ".config/remmina", ".local/share/remmina",
	".smbcredentials", ".cert", ".Xauthority", ".ICEauthority",
}

// SecretNames returns where programs of all systems keep keys, passwords and histories,
// relative to a home directory.
func SecretNames() []string {
	return []string{
		// The user's keys and passwords.
		".ssh",               // private keys
		".gnupg",             // private keys
		".password-store",    // pass
		".config/op",         // 1Password
		".netrc",             // passwords of hosts, for curl and git
		".pgpass", ".my.cnf", // passwords of databases
		".vault-token", // HashiCorp Vault

		// Cloud accounts: they cost money or hold other people's data.
		".aws", ".azure", ".oci", ".boto", ".s3cfg",
		".config/gcloud",                // access and refresh tokens
		".config/rclone",                // passwords of storage
		".kube",                         // certificates of clusters
		".docker", ".config/containers", // registry logins
		".terraform.d/credentials.tfrc.json", // Terraform Cloud

		// Credentials to publish code in the user's name.
		".git-credentials", ".config/git/credentials",
		".config/gh", ".config/hub", ".config/glab-cli", // GitHub, GitLab
		".npmrc", ".yarnrc.yml", ".pypirc", ".gem/credentials",
		".cargo/credentials", ".cargo/credentials.toml",
		".m2/settings.xml", ".gradle/gradle.properties", ".composer/auth.json",
		".codex/auth.json", ".claude/.credentials.json", ".gemini/oauth_creds.json", // model accounts

		// History of what was typed, including passwords and tokens.
		".bash_history", ".bash_sessions", ".zsh_history", ".zsh_sessions", ".local/share/fish",
		".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history",
	}
}
