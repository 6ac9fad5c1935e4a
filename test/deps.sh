#!/bin/sh
# Installs the Debian packages that the tests use, and those of the arguments
# (program:package), when something of them is missing and this is root.
# Otherwise the tests that need them say so.
set -eu
missing=
for p in bwrap:bubblewrap python3:python3 gcc:gcc make:make git:git unshare:util-linux ps:procps busybox:busybox-static xz:xz-utils \
	sqlite3:sqlite3 curl:curl ssh-keygen:openssh-client openssl:openssl perl:perl tmux:tmux jq:jq node:nodejs zip:zip unzip:unzip \
	stress-ng:stress-ng trinity:trinity pkg-config:pkg-config "$@"; do
	command -v "${p%%:*}" >/dev/null || missing="$missing ${p#*:}"
done
[ -e /usr/include/seccomp.h ] || missing="$missing libseccomp-dev"
[ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
python=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])' 2>/dev/null || echo python3.11)
[ -x /usr/bin/python3 ] && python=$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
[ -e "/usr/lib/$python/test/test_json" ] || missing="$missing lib$python-testsuite $python-venv"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "missing, and to be installed by root:$missing" >&2
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
# shellcheck disable=SC2086 # a list of words
apt-get install -q -y --no-install-recommends $missing >/dev/null
