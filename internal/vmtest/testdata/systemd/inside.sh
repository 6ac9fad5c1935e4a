# In a session: a cgroup of the machine's systemd, which the user may not change,
# with this shell in it as well.
set -e
/run/program -test.v -test.run '^TestInSession$' -test.timeout 2m
# In what a desktop runs its programs in.
systemd-run --user --quiet --scope --unit=terminal sh -c '/run/program -test.v -test.run "^TestInSlice$" -test.timeout 2m; exit $?'
