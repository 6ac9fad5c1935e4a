# what: connecting to the sockets of docker, containerd, podman, D-Bus, systemd, X
# stops: a full escape if one is visible
# row: services of the host
# outside: ok EPROTOTYPE (a datagram socket)
# inside: ENOENT
# landlock: EPERM
# unproven: ENOENT EACCES ECONNREFUSED (a host without them)

from lib.probe import *

paths = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/snapd.socket",
         "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify", "/run/systemd/journal/stdout", "/tmp/.X11-unix/X0"]

with act():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(next((p for p in paths if os.path.exists(p)), paths[0]))
