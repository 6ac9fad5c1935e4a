#!/bin/sh
# Installs the Debian packages that the tests use, if something of them is missing and this is root. Otherwise the tests
# that need them say so. Each argument asks for more: WHAT:PACKAGES, where WHAT is a program or an absolute path.
set -eu
missing=

# need PACKAGES COMMAND... asks for packages unless the command succeeds. The name of a program does not say that it can
# do what the tests need: some packages bring a smaller one of the same name.
need() {
	packages=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $packages"
}

program() { command -v "$1"; }

# Roots of one file cannot load libraries: Debian's busybox is dynamic, busybox-static is not.
static() { program "$1" && ! ldd "$(command -v "$1")"; }

for p in bwrap:bubblewrap make:make git:git unshare:util-linux setpriv:util-linux script:bsdutils ps:procps pgrep:procps xz:xz-utils \
	sqlite3:sqlite3 curl:curl ssh-keygen:openssh-client openssl:openssl tmux:tmux jq:jq node:nodejs zip:zip unzip:unzip \
	stress-ng:stress-ng trinity:trinity pkg-config:pkg-config man:man-db lscpu:util-linux screen:screen git-lfs:git-lfs \
	php:php-cli Rscript:r-base-core identify:imagemagick pdflatex:texlive-latex-base chromium:chromium "$@"; do
	case $p in
	/*) need "${p#*:}" [ -e "${p%%:*}" ] ;;
	*) need "${p#*:}" program "${p%%:*}" ;;
	esac
done
need busybox-static static busybox
need "gcc libc6-dev" sh -c '[ -e /usr/include/stdio.h ] && [ -e "$(cc -print-file-name=libc.a)" ]'
need libseccomp-dev [ -e /usr/include/seccomp.h ]
need php-mbstring sh -c 'php -m | grep -q mbstring'
need perl perl -MPOSIX -MFile::Find -e 1
need python3 python3 -c 'import asyncio, ctypes, json, mmap, resource, socket, sqlite3' # not only python3-minimal

# Tests that run what comes with Python take Debian's.
version='import sys; print("python%d.%d" % sys.version_info[:2])'
python=$(/usr/bin/python3 -c "$version" 2>/dev/null || echo python3.11)
need "lib$python-testsuite" [ -e "/usr/lib/$python/test/test_json" ]
need "$python-venv" [ -e "/usr/lib/$python/ensurepip" ]

[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "missing, and to be installed by root:$missing" >&2
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
# shellcheck disable=SC2086 # a list of words
apt-get install -q -y --no-install-recommends $missing >/dev/null
