# boot.sh OUT PROGRAM: makes this process, pid 1 of a namespace and in a cgroup
# that is the root of another, the systemd of a machine that has the units here and
# nothing else. It has a /run of its own, with OUT and PROGRAM in it.
set -e
mount --make-rprivate /
mount -t proc proc /proc
umount /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 run /mnt
mkdir -p /mnt/systemd/system /mnt/out /mnt/user/1000
chown 1000:1000 /mnt/user/1000
mount --bind "$PWD/testdata/systemd" /mnt/systemd/system
mount --bind "$1" /mnt/out
: >/mnt/program
mount --bind "$2" /mnt/program
# The host's generators have nothing to say about this machine, and take seconds.
for d in system user; do mount -t tmpfs none /usr/lib/systemd/$d-generators; done
mount -n --move /mnt /run
exec env -i container=tegmen PATH="$PATH" /lib/systemd/systemd --system --unit=job.target --log-target=kmsg --show-status=no
