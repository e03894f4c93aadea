#!/bin/sh
# Finishes the file tree of the shop's images: names of users, a shell, and places that the programs write to. $1 is the tree.
set -eu
root=$1

mkdir -p "$root/proc" "$root/sys" "$root/tmp" "$root/root" "$root/var/lib/nginx" "$root/var/log/nginx"
chmod 1777 "$root/tmp"
for applet in $("$root/bin/busybox" --list); do
  [ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
done
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
