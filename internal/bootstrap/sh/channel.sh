# The channel is shared by all subshells and children, so one request is under
# way at a time. The lock is a file, descriptor 8, of which all share the place
# read up to: a line that has been read is taken, which is one read of one byte
# and so no one else's, and a line appended gives it back. Its first line has
# the number of the process that took it last, to be replaced when it was killed.
#
# It stands beside what TEGMEN_TOOLS names. In /proc/self/fd that is a descriptor
# again, so the file has no other name. Elsewhere it is a file as any, for no shell
# can open a descriptor a second time by /dev/fd: that gives the same place in it,
# and no right to write.
_tegmen_file=${TEGMEN_TOOLS%4}8

# Sends the request with the members $1, and leaves what follows the id in
# _tegmen_reply; 1 when the host closed.
_tegmen_request() {
	_tegmen_lock
	_tegmen_ask "$1" && _tegmen_x=0 || _tegmen_x=1
	_tegmen_unlock
	return "$_tegmen_x"
}

# The id is last, so that it is this one whatever the members are. An error
# without an id is of this request, too: there is no other.
_tegmen_ask() {
	_tegmen_count=$((${_tegmen_count:-0} + 1))
	_tegmen_id=$_tegmen_pid.$_tegmen_count
	command printf '{"jsonrpc":"2.0",%s,"id":"%s"}\n' "$1" "$_tegmen_id" >&3
	while _tegmen_read; do
		case $_tegmen_reply in
		'{"jsonrpc":"2.0","id":"'"$_tegmen_id"'",'*)
			_tegmen_reply=${_tegmen_reply#'{"jsonrpc":"2.0","id":"'"$_tegmen_id"'",'}
			return 0 ;;
		'{"jsonrpc":"2.0","id":null,'*)
			_tegmen_reply=${_tegmen_reply#'{"jsonrpc":"2.0","id":null,'}
			case $1 in '"method":"sync"') ;; *) return 0 ;; esac ;;
		esac
	done
	return 1
}

# A trap ends a read as the end of the channel does, but the next one goes on. One
# that ends so may leave the variable as it was (busybox).
_tegmen_read() {
	_tegmen_reply='' _tegmen_ends=0 _tegmen_part=''
	until IFS= command read -r _tegmen_part <&3; do
		_tegmen_reply=$_tegmen_reply$_tegmen_part
		case $_tegmen_part in
		'') _tegmen_ends=$((_tegmen_ends + 1)) ;;
		*) _tegmen_ends=0 ;;
		esac
		[ "$_tegmen_ends" -lt 3 ] || return 1
		_tegmen_part=''
	done
	_tegmen_reply=$_tegmen_reply$_tegmen_part
}

_tegmen_lock() {
	[ /proc/self -ef "/proc/${_tegmen_pid:-none}" ] || _tegmen_self
	case $TEGMEN_HELLO in
	unlocked) return ;;
	esac
	_tegmen_tries=0 _tegmen_polls=0 _tegmen_zombie=
	until IFS= command read -r _tegmen_x <&8; do
		IFS=' ' command read -r _tegmen_owner _tegmen_x <"$_tegmen_file" || _tegmen_owner=none
		if _tegmen_lives "$_tegmen_owner"; then _tegmen_tries=0; else _tegmen_tries=$((_tegmen_tries + 1)); fi
		# Long enough for one that has taken it to write its number. Of those
		# that then replace the dead one, the last to write is the next.
		if [ "$_tegmen_tries" -gt 100 ]; then
			_tegmen_tries=0
			_tegmen_own
			_tegmen_sleep 0.2
			IFS=' ' command read -r _tegmen_owner _tegmen_x <"$_tegmen_file" || :
			case $_tegmen_owner in
			"$_tegmen_pid")
				# It may have died in the middle of a line, or of an answer.
				command printf '\n' >&3
				_tegmen_ask '"method":"sync"' || :
				return ;;
			esac
		fi
		_tegmen_sleep 0.005
	done 2>/dev/null
	_tegmen_own
}

# Makes _tegmen_pid the number of this process; $$ is that of the first shell also
# in subshells. Without /proc, which tells for nothing whether it still is right,
# each request asks, and only a child can be asked.
_tegmen_self() {
	if [ -r /proc/self/stat ]; then
		IFS=' ' command read -r _tegmen_pid _tegmen_x </proc/self/stat
	else
		_tegmen_pid=$(exec /bin/sh -c 'echo "$PPID"' 2>/dev/null)
	fi || _tegmen_pid=$$
}

_tegmen_own() {
	command printf '%-20s\n' "$_tegmen_pid" 1<>"$_tegmen_file" || :
}

_tegmen_unlock() {
	case $TEGMEN_HELLO in
	unlocked) ;;
	*) command printf '\n' >>"$_tegmen_file" || : ;;
	esac
}

# A zombie does not. Without /proc only ps knows one, if it may be run, and is too
# slow to be asked each time. Who may not be sent a signal lives.
_tegmen_lives() {
	if IFS= command read -r _tegmen_x <"/proc/$1/stat"; then
		case $_tegmen_x in
		*') Z '* | *') X '*) return 1 ;;
		esac
		return
	fi
	[ ! -e /proc/self/stat ] || return 1
	case $1 in
	'' | *[!0123456789]* | "$_tegmen_zombie") return 1 ;;
	esac
	case $(LC_ALL=C; command kill -0 "$1" 2>&1) in
	*'No such process'*) return 1 ;;
	esac
	_tegmen_polls=$((_tegmen_polls + 1))
	[ $((_tegmen_polls % 100)) -ne 0 ] && return
	case $(command ps -o stat= -p "$1") in
	Z*) _tegmen_zombie=$1; return 1 ;;
	esac
}

# Not all know fractions.
_tegmen_sleep() {
	command sleep "$1" || command sleep 1 || :
}

# The first of a tree of scripts says hello, and makes the lock of a file without
# a name. The answer, which has nothing that is not known here, is skipped by the
# first to read another.
_tegmen_hello() {
	case ${TEGMEN_HELLO-} in
	?*) return ;;
	esac
	TEGMEN_HELLO=unlocked
	set -- "$_tegmen_file"
	case $1 in
	/proc/*) set -- "${TMPDIR:-/tmp}/.tegmen-$$" "/tmp/.tegmen-$$" "/dev/shm/.tegmen-$$" ;;
	esac
	set -C # what is there under that name is another's
	for _tegmen_x do
		command printf '%-20s\n' - >"$_tegmen_x" || continue
		exec 8<"$_tegmen_x"
		case $_tegmen_x in
		"$_tegmen_file") ;;
		*) command rm -f "$_tegmen_x" ;;
		esac
		IFS= command read -r _tegmen_x <&8 && command printf '\n' >>"$_tegmen_file" && TEGMEN_HELLO=locked
		break
	done 2>/dev/null
	set +C
	export TEGMEN_HELLO
	command printf '{"jsonrpc":"2.0","id":"hello","method":"hello","params":{"protocol":1,"token":"%s"}}\n' "${TEGMEN_TOKEN-}" >&3
	unset TEGMEN_TOKEN TEGMEN_FD
}
