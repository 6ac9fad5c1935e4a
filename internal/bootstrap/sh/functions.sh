# Functions for a script that calls tools of the host, with the protocol described in
# package broker: descriptor 3, a JSON-RPC message a line. They need POSIX sh and a test
# with -ef. sh.go appends what depends on the run: _tegmen_tool, which knows the tools,
# _tegmen_control, and a function for each tool.
#
# Utilities are called with "command", since a tool may have the name of one.

_tegmen_nl='
'
_tegmen_busy=

# tool NAME [ARGUMENT…]: calls the tool with that exact name.
tool() {
	case $#:$_tegmen_busy in
	0:*) command printf 'tool: usage: tool NAME [ARGUMENT...]\n' >&2; return 2 ;;
	*:?*) command printf '%s: busy: called by a trap, during a call\n' "$1" >&2; return 1 ;;
	esac
	_tegmen_busy=1 _tegmen_status=0
	_tegmen_tool "$@" || _tegmen_status=$?
	_tegmen_busy=
	return "$_tegmen_status"
}

# result JSON, result - (JSON from standard input), result -t TEXT: returns a value from
# the run.
result() {
	case $#:${1-} in
	2:-t) _tegmen_quote "$2" ;;
	1:-) _tegmen_oneline "$(command cat)" ;;
	1:?*) _tegmen_oneline "$1" ;;
	*) command printf 'result: usage: result JSON, result -, or result -t TEXT\n' >&2; return 2 ;;
	esac
	_tegmen_request "\"method\":\"result\",\"params\":{\"value\":$_tegmen_json}" || return 1
	case $_tegmen_reply in
	'"error":'*) _tegmen_complain result || return 1 ;;
	esac
}

# _tegmen_call NAME ROUTE PARAMETERS OUTPUT [ARGUMENT…]. PARAMETERS has a word for each
# parameter, its name after "s:" for strings and "j:" for others, and a space at each end.
# OUTPUT is "base64" if the value is bytes.
_tegmen_call() {
	_tegmen_name=$1 _tegmen_route=$2 _tegmen_params=$3 _tegmen_output=$4
	shift 4
	_tegmen_arguments "$@" || return 2
	_tegmen_request "\"method\":\"tools/call\",\"params\":{$_tegmen_route,\"arguments\":$_tegmen_args}" ||
		{ command printf '%s: canceled: the host closed the connection\n' "$_tegmen_name" >&2; return 1; }
	case $_tegmen_reply in
	'"error":'*) _tegmen_complain "$_tegmen_name"; return ;;
	'"result":{"value":'*'}}')
		_tegmen_reply=${_tegmen_reply#'"result":{"value":'}
		_tegmen_reply=${_tegmen_reply%'}}'} ;;
	*) return 0 ;; # no value
	esac
	case $_tegmen_output:$_tegmen_reply in
	base64:'"'*)
		_tegmen_unquote
		if command -v base64 >/dev/null; then
			command printf '%s\n' "$_tegmen_reply" | command base64 -d
		else
			command printf '%s\n' "$_tegmen_reply"
		fi ;;
	:'"'*) _tegmen_unquote; _tegmen_text "$_tegmen_reply"; command printf '\n' ;;
	*) command printf '%s\n' "$_tegmen_reply" ;;
	esac
}

# Removes the quotes.
_tegmen_unquote() {
	_tegmen_reply=${_tegmen_reply#'"'}
	_tegmen_reply=${_tegmen_reply%'"'}
}

# Prints the error in _tegmen_reply. The status is 2 if the caller is to blame. Quotes in
# the message are escaped, so it cannot contain the text that the cut looks for.
_tegmen_complain() {
	_tegmen_code=${_tegmen_reply#'"error":{"code":'}
	_tegmen_message=${_tegmen_code#*'"message":"'}
	_tegmen_code=${_tegmen_code%%,*}
	_tegmen_type=${_tegmen_message#*'","data":{"type":"'}
	{
		command printf '%s: %s: ' "$1" "${_tegmen_type%%'"'*}"
		_tegmen_text "${_tegmen_message%%'","data":{"type":"'*}"
		command printf '\n'
	} >&2
	case $_tegmen_code in
	-32[67]* | -32002 | -32007) return 2 ;;
	esac
	return 1
}

# Sets _tegmen_args to the JSON for the arguments of the caller.
_tegmen_arguments() {
	case $#:${1-} in
	0:) _tegmen_args='{}'; return ;;
	1:-) _tegmen_oneline "$(command cat)"; _tegmen_args=$_tegmen_json; return ;;
	1:'{'*) _tegmen_oneline "$1"; _tegmen_args=$_tegmen_json; return ;;
	esac
	_tegmen_args='' _tegmen_left=${_tegmen_params# }
	for _tegmen_value do
		_tegmen_type=auto
		case $_tegmen_value in
		*=*) _tegmen_key=${_tegmen_value%%=*} ;;
		*) _tegmen_key= ;;
		esac
		case $_tegmen_key in
		?*:) _tegmen_key=${_tegmen_key%:} _tegmen_type=json ;;
		esac
		case $_tegmen_key in
		'' | [!A-Za-z_]* | *[!A-Za-z0-9_.-]*)
			case $_tegmen_left in
			'') command printf '%s: invalid_params: too many arguments\n' "$_tegmen_name" >&2; return 2 ;;
			esac
			_tegmen_key=${_tegmen_left%%' '*} _tegmen_left=${_tegmen_left#*' '}
			_tegmen_key=${_tegmen_key#?:} _tegmen_type=auto ;;
		*) _tegmen_value=${_tegmen_value#*=} ;;
		esac
		case $_tegmen_type:$_tegmen_params in
		json:*) _tegmen_oneline "$_tegmen_value" ;;
		*" s:$_tegmen_key "*) _tegmen_quote "$_tegmen_value" ;;
		*) _tegmen_guess "$_tegmen_value" ;;
		esac
		_tegmen_args="$_tegmen_args,\"$_tegmen_key\":$_tegmen_json"
	done
	_tegmen_args="{${_tegmen_args#,}}"
}

# Takes what looks like JSON as JSON, otherwise as text.
_tegmen_guess() {
	case $1 in
	true | false | null | '{'*'}' | '['*']' | '"'*'"') _tegmen_oneline "$1" ;;
	[0123456789-]*) if _tegmen_number "$1"; then _tegmen_json=$1; else _tegmen_quote "$1"; fi ;;
	*) _tegmen_quote "$1" ;;
	esac
}

_tegmen_number() {
	_tegmen_int=${1#-}
	case $_tegmen_int in
	*[eE]*)
		_tegmen_exp=${_tegmen_int#*[eE]} _tegmen_int=${_tegmen_int%%[eE]*}
		case ${_tegmen_exp#[+-]} in '' | *[!0123456789]*) return 1 ;; esac ;;
	esac
	case $_tegmen_int in
	*.*)
		case ${_tegmen_int#*.} in '' | *[!0123456789]*) return 1 ;; esac
		_tegmen_int=${_tegmen_int%%.*} ;;
	esac
	case $_tegmen_int in '' | *[!0123456789]* | 0?*) return 1 ;; esac
}

# Puts JSON on one line. Between tokens a tab is as good as a newline; within a string both
# are invalid, and the host reports that.
_tegmen_oneline() {
	_tegmen_json=$1
	case $1 in
	*"$_tegmen_nl"*)
		_tegmen_split "$_tegmen_nl"
		set -f
		set -- $1
		IFS='	'
		_tegmen_json="$*"
		_tegmen_unsplit ;;
	esac
}

# Between these two, words are split at $1 and not expanded.
_tegmen_split() {
	_tegmen_ifs=${IFS-unset} _tegmen_f=$-
	IFS=$1
	set -f
}
_tegmen_unsplit() {
	case $_tegmen_ifs in unset) unset IFS ;; *) IFS=$_tegmen_ifs ;; esac
	case $_tegmen_f in *f*) ;; *) set +f ;; esac
}

# Sets _tegmen_json to the JSON string for $1. For long ones awk is worth its start.
_tegmen_quote() {
	case $1 in
	*[\"\\[:cntrl:]]*) ;;
	*) _tegmen_json="\"$1\""; return ;;
	esac
	local LC_ALL=C # makes bash work on bytes
	if [ "${#1}" -gt 1000 ] && command -v awk >/dev/null; then
		_tegmen_json=\"$(command printf '%s\n' "$1" | LC_ALL=C command awk '
			{ gsub(/["\\]/, "\\\\&") }
			/[\001-\037]/ { for (i = 1; i < 32; i++) gsub(sprintf("%c", i), sprintf("\\u%04x", i)) }
			NR > 1 { printf "\\n" }
			{ printf "%s", $0 }')\"
		return
	fi
	_tegmen_json=\" _tegmen_rest=$1
	while :; do
		_tegmen_head=${_tegmen_rest%%[\"\\[:cntrl:]]*}
		_tegmen_rest=${_tegmen_rest#"$_tegmen_head"}
		_tegmen_json=$_tegmen_json$_tegmen_head
		case $_tegmen_rest in
		'') break ;;
		\"*) _tegmen_json=$_tegmen_json\\\" ;;
		\\*) _tegmen_json=$_tegmen_json\\\\ ;;
		"$_tegmen_nl"*) _tegmen_json=$_tegmen_json\\n ;;
		*) _tegmen_control ;;
		esac
		_tegmen_rest=${_tegmen_rest#?}
	done
	_tegmen_json=$_tegmen_json\"
}

# Prints the text of a JSON string without its quotes. Split at backslashes, each field
# begins with the escaped character; an empty field is a backslash, and the next is text.
_tegmen_text() {
	case $1 in
	*\\*) ;;
	*) command printf %s "$1"; return ;;
	esac
	_tegmen_split \\
	set -- $1. # keeps an empty field at the end
	_tegmen_unsplit
	_tegmen_n=0 _tegmen_plain=1 _tegmen_high=0
	for _tegmen_s do
		_tegmen_n=$((_tegmen_n + 1))
		[ "$_tegmen_n" -lt "$#" ] || _tegmen_s=${_tegmen_s%.}
		case $_tegmen_plain$_tegmen_s in
		1*) command printf %s "$_tegmen_s"; _tegmen_plain=; continue ;;
		u*) _tegmen_unicode; continue ;;
		esac
		_tegmen_lone
		case $_tegmen_s in
		'') command printf '\\'; _tegmen_plain=1 ;;
		b*) command printf '\b%s' "${_tegmen_s#?}" ;;
		f*) command printf '\f%s' "${_tegmen_s#?}" ;;
		n*) command printf '\n%s' "${_tegmen_s#?}" ;;
		r*) command printf '\r%s' "${_tegmen_s#?}" ;;
		t*) command printf '\t%s' "${_tegmen_s#?}" ;;
		*) command printf %s "$_tegmen_s" ;; # a quote or slash
		esac
	done
	_tegmen_lone
}

# Prints a field of _tegmen_text that begins with uXXXX. The first half of a surrogate pair
# waits in _tegmen_high for the second.
_tegmen_unicode() {
	_tegmen_s=${_tegmen_s#u} _tegmen_u=0
	for _tegmen_x in 1 2 3 4; do
		case $_tegmen_s in
		0*) _tegmen_d=0 ;; 1*) _tegmen_d=1 ;; 2*) _tegmen_d=2 ;; 3*) _tegmen_d=3 ;;
		4*) _tegmen_d=4 ;; 5*) _tegmen_d=5 ;; 6*) _tegmen_d=6 ;; 7*) _tegmen_d=7 ;;
		8*) _tegmen_d=8 ;; 9*) _tegmen_d=9 ;; [aA]*) _tegmen_d=10 ;; [bB]*) _tegmen_d=11 ;;
		[cC]*) _tegmen_d=12 ;; [dD]*) _tegmen_d=13 ;; [eE]*) _tegmen_d=14 ;; *) _tegmen_d=15 ;;
		esac
		_tegmen_u=$((_tegmen_u * 16 + _tegmen_d)) _tegmen_s=${_tegmen_s#?}
	done
	case $((_tegmen_u / 1024)):$_tegmen_high in
	54:*) # D800 to DBFF
		_tegmen_lone
		case $_tegmen_s in
		'') _tegmen_high=$_tegmen_u; return ;;
		esac
		_tegmen_utf8 65533 ;;
	55:0) _tegmen_utf8 65533 ;;
	55:*) _tegmen_utf8 $(((_tegmen_high - 55296) * 1024 + _tegmen_u - 56320 + 65536)); _tegmen_high=0 ;;
	*) _tegmen_lone; _tegmen_utf8 "$_tegmen_u" ;;
	esac
	command printf %s "$_tegmen_s"
}

# Half a surrogate pair is not a character.
_tegmen_lone() {
	case $_tegmen_high in
	0) ;;
	*) _tegmen_high=0; _tegmen_utf8 65533 ;;
	esac
}

_tegmen_utf8() {
	if [ "$1" -lt 128 ]; then
		_tegmen_bytes "$1"
	elif [ "$1" -lt 2048 ]; then
		_tegmen_bytes $((192 + $1 / 64)) $((128 + $1 % 64))
	elif [ "$1" -lt 65536 ]; then
		_tegmen_bytes $((224 + $1 / 4096)) $((128 + $1 / 64 % 64)) $((128 + $1 % 64))
	else
		_tegmen_bytes $((240 + $1 / 262144)) $((128 + $1 / 4096 % 64)) $((128 + $1 / 64 % 64)) $((128 + $1 % 64))
	fi
}

_tegmen_bytes() {
	for _tegmen_x do
		command printf "\\$((_tegmen_x / 64))$((_tegmen_x / 8 % 8))$((_tegmen_x % 8))"
	done
}
