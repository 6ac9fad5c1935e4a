# Runs the tests as a user who has logged in.
systemd-run --quiet --scope --unit=session-1 --slice=user-1000 --uid=1000 --gid=1000 \
	env TEGMEN_SESSION=1 XDG_RUNTIME_DIR=/run/user/1000 HOME=/tmp sh /run/systemd/system/inside.sh
systemctl exit $?
