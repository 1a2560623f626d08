# shellcheck shell=bash
# A bare Debian root, for scripts that try something on a fresh machine. To be sourced; as root.
#   make_bare_root ROOT RELEASE     by debootstrap, with this machine's own package sources; 3 tries
#   enter_bare_root ROOT             runs ROOT/play there, in mount and PID namespaces of its own
# A script that sources this has a function not_tried: what to say, and how to end, where the root cannot be made.

make_bare_root() {
  local root=$1 release=$2 mirror try key
  [ "$(id -u)" = 0 ] || not_tried "it needs root"
  command -v debootstrap >/dev/null || not_tried "debootstrap is not installed (scripts/install-deps bare-root)"
  unshare --mount --pid --fork true 2>/dev/null || not_tried "this machine allows no namespaces"
  # The machine's own package source for this release.
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
             awk -v release="$release" '$2 == release { print $1; exit }')
  [ -n "$mirror" ] || not_tried "this machine's apt sources have no $release (apt-get update?)"
  # Mounts inside are gone with their namespace: what is left is plain files.
  rm -rf --one-file-system "$root"
  mkdir -p "$(dirname "$root")"
  for try in 1 2 3; do
    if debootstrap --variant=minbase "$release" "$root" "$mirror" >"$root.log" 2>&1; then break; fi
    rm -rf --one-file-system "$root"
    [ "$try" -lt 3 ] || { tail -n 3 "$root.log"; not_tried "the package source $release cannot be reached"; }
    sleep 10
  done

  # The same package sources, without anything else of this machine.
  rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
  cp -a /etc/apt/sources.list.d "$root/etc/apt/"
  [ ! -e /etc/apt/sources.list ] || cp -a /etc/apt/sources.list "$root/etc/apt/"
  cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
  cp -a /etc/apt/trusted.gpg.d/. "$root/etc/apt/trusted.gpg.d/" 2>/dev/null || true
  for key in /usr/share/keyrings/*; do cp -an "$key" "$root/usr/share/keyrings/" 2>/dev/null || true; done
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  # Its network is this machine's: servers that apt installs must not start on it.
  printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"

  # Not a plain chroot: the lab makes mounts and namespaces, which the kernel refuses inside one.
  cat > "$root/enter" <<'ENTER'
#!/bin/sh
set -eu
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount -t tmpfs tmpfs run
mount --rbind /dev dev
mkdir -p .old
pivot_root . .old
umount -l /.old
exec env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /bin/sh /play
ENTER
  chmod 755 "$root/enter"
}

enter_bare_root() { unshare --mount --pid --fork --kill-child "$1/enter" "$1"; }
