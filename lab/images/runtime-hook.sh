#!/bin/sh
# Finishes the runtime's file tree: nothing was configured in it, so what a package's scripts or base-files would have
# made is made here. $1 is the tree.
set -eu
root=$1

mkdir -p "$root/proc" "$root/sys" "$root/tmp" "$root/root" "$root/usr/bin" "$root/usr/local/bin"
chmod 1777 "$root/tmp"

for applet in $("$root/bin/busybox" --list); do
  [ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
done
# The usual first line of scripts names this path.
ln -sf ../../bin/busybox "$root/usr/bin/env"

printf 'root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$root/etc/group"
