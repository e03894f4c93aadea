#!/bin/sh
# Finishes the file tree of the images that Kubernetes' own suite asks for. $1 is the tree.
set -eu
root=$1

mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/root" "$root/uploads" "$root/etc/nginx" \
  "$root/var/lib/nginx" "$root/var/log/nginx" "$root/usr/share/nginx/html"
chmod 1777 "$root/tmp"

# What update-alternatives would have made.
ln -sf nc.openbsd "$root/bin/nc"
# Specs name it by the path that it has in busybox.
ln -sf ../sbin/sysctl "$root/bin/sysctl"
# A shell that hands on environment variables whose names are no identifiers, and that runs programs, not applets.
ln -sf bash "$root/bin/sh"
# busybox only has the rest, such as wget and vi.
for applet in $("$root/bin/busybox" --list); do
  for place in bin usr/bin sbin usr/sbin; do
    if [ -e "$root/$place/$applet" ] || [ -L "$root/$place/$applet" ]; then continue 2; fi
  done
  ln -s busybox "$root/bin/$applet"
done

echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
# Specs look for this very user in this very group of the image.
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/false\nwww-data:x:33:33::/:/bin/false\nuser-defined-in-image:x:1000:1000::/tmp:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nwww-data:x:33:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\nnogroup:x:65534:\n' >"$root/etc/group"

cat >"$root/etc/nginx/nginx.conf" <<'CONF'
worker_processes 1;
pid /run/nginx.pid;
events {}
http {
  server {
    listen 80;
    root /usr/share/nginx/html;
  }
}
CONF
echo 'Welcome to nginx!' >"$root/usr/share/nginx/html/index.html"
mkdir -p "$root/run" "$root/var/lib/nginx/body"
