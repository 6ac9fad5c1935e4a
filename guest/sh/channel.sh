# The channel is shared by all subshells and children, so one request is under
# way at a time. The lock is a file, descriptor 8, of which all share the place
# read up to: a line that has been read is taken, which is one read of one byte
# and so no one else's, and a line appended gives it back. Its first line has
# the number of the process that took it last, to be replaced when it was killed.
#
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
	# $$ is the same in subshells.
	[ /proc/self -ef "/proc/${_tegmen_pid:-none}" ] ||
		IFS=' ' command read -r _tegmen_pid _tegmen_x </proc/self/stat || _tegmen_pid=$$
	case $TEGMEN_HELLO in
	unlocked) return ;;
	esac
	_tegmen_tries=0
	until IFS= command read -r _tegmen_x <&8; do
		IFS=' ' command read -r _tegmen_owner _tegmen_x </proc/self/fd/8 || _tegmen_owner=none
		if _tegmen_lives "$_tegmen_owner"; then _tegmen_tries=0; else _tegmen_tries=$((_tegmen_tries + 1)); fi
		# Long enough for one that has taken it to write its number. Of those
		# that then replace the dead one, the last to write is the next.
		if [ "$_tegmen_tries" -gt 100 ]; then
			_tegmen_tries=0
			_tegmen_own
			_tegmen_sleep 0.2
			IFS=' ' command read -r _tegmen_owner _tegmen_x </proc/self/fd/8 || :
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

_tegmen_own() {
	command printf '%-20s\n' "$_tegmen_pid" 1<>/proc/self/fd/8 || :
}

_tegmen_unlock() {
	case $TEGMEN_HELLO in
	unlocked) ;;
	*) command printf '\n' >>/proc/self/fd/8 || : ;;
	esac
}

# A zombie does not.
_tegmen_lives() {
	IFS= command read -r _tegmen_x <"/proc/$1/stat" || return 1
	case $_tegmen_x in
	*') Z '* | *') X '*) return 1 ;;
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
	set -C # what is there under that name is another's
	for _tegmen_x in "${TMPDIR:-/tmp}" /tmp /dev/shm; do
		_tegmen_x=$_tegmen_x/.tegmen-$$
		command printf '%-20s\n' - >"$_tegmen_x" || continue
		exec 8<"$_tegmen_x"
		command rm -f "$_tegmen_x"
		IFS= command read -r _tegmen_x <&8 && command printf '\n' >>/proc/self/fd/8 && TEGMEN_HELLO=locked
		break
	done 2>/dev/null
	set +C
	export TEGMEN_HELLO
	command printf '{"jsonrpc":"2.0","id":"hello","method":"hello","params":{"protocol":1,"token":"%s"}}\n' "${TEGMEN_TOKEN-}" >&3
	unset TEGMEN_TOKEN TEGMEN_FD
}
