# All subshells and children share the channel, so one request is in flight at a time.
# The lock is a file, descriptor 8, whose read offset they share: reading a line, a single
# read of one byte, takes the lock; appending a line releases it. The first line has the
# process ID of the last owner, so that others can replace it if it was killed.
#
# The lock is next to the file that TEGMEN_TOOLS names. In /proc/self/fd that is a
# descriptor again, and the file needs no other name. Elsewhere it is an ordinary file,
# since /dev/fd cannot reopen a descriptor: it gives the same offset and no write access.
_tegmen_file=${TEGMEN_TOOLS%4}8

# Sends the request with the members $1, and sets _tegmen_reply to the part of the answer
# after the id. The status is 1 if the host closed the channel.
_tegmen_request() {
	_tegmen_lock
	_tegmen_ask "$1" && _tegmen_x=0 || _tegmen_x=1
	_tegmen_unlock
	return "$_tegmen_x"
}

# The id comes last, so that members cannot override it. An error without an id belongs to
# this request as well: no other is in flight.
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

# A trap ends a read like the end of the channel, but the next read continues. Such a read
# may leave the variable unchanged (busybox).
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
		# Long enough for a new owner to write its process ID. Of several that then
		# replace a dead owner, the last to write gets the lock.
		if [ "$_tegmen_tries" -gt 100 ]; then
			_tegmen_tries=0
			_tegmen_own
			_tegmen_sleep 0.2
			IFS=' ' command read -r _tegmen_owner _tegmen_x <"$_tegmen_file" || :
			case $_tegmen_owner in
			"$_tegmen_pid")
				# The dead owner may have left half a line, or half an answer.
				command printf '\n' >&3
				_tegmen_ask '"method":"sync"' || :
				return ;;
			esac
		fi
		_tegmen_sleep 0.005
	done 2>/dev/null
	_tegmen_own
}

# Sets _tegmen_pid to the ID of this process; in subshells, $$ is that of the first shell.
# With /proc it is cheap to see whether it is still right. Without, each request finds
# out, which takes a child process.
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

# Reports whether a process lives; a zombie does not. Without /proc only ps knows zombies,
# if it may be run, and it is too slow to run each time. A process that must not be
# signaled lives.
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

# Not every sleep accepts fractions.
_tegmen_sleep() {
	command sleep "$1" || command sleep 1 || :
}

# The first script of a process tree sends hello, and creates the lock, a file without a
# name. The answer contains nothing new; the first read of another answer skips it.
_tegmen_hello() {
	case ${TEGMEN_HELLO-} in
	?*) return ;;
	esac
	TEGMEN_HELLO=unlocked
	set -- "$_tegmen_file"
	case $1 in
	/proc/*) set -- "${TMPDIR:-/tmp}/.tegmen-$$" "/tmp/.tegmen-$$" "/dev/shm/.tegmen-$$" ;;
	esac
	set -C # never reuse an existing file: it belongs to somebody else
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
