# SPDX-License-Identifier: PostgreSQL
# Functions shared by the checks that run PostgreSQL's own tests (check-server, check-statements) or test tools (installcheck)
# with any server of script/servers.
#
# PostgreSQL's tests come from Debian's source package of the server's major version; for 16, which Debian does not have, from
# Ubuntu's. They are kept in build/postgresql-source, so the network is needed only once.

. "$(dirname "$0")/system.sh"
build=$here/build/postgresql-source

# begin "NAME" DIRECTORY...: fetches the server, and PostgreSQL's sources with these directories if any, then continues this
# script in the server's system, where it sets bindir, version, major and source.
begin() {
    name=$1
    need_known "$name"
    shift
    if [ "${PGTALLY_IN_SERVER:-}" != "$name" ]; then
        if [ "$name" = 15 ]; then
            [ -e "$here/pg_tally/pg_tally.so" ] || fail "pg_tally is not built; run make"
        else
            "$here/script/servers" --build "$name" || exit
        fi
        # shellcheck disable=SC2016 # expanded there
        look_at "$("$here/script/in-server" "$name" sh -c '"$PG_CONFIG" --version')"
        [ $# = 0 ] || need_source "$@"
        PGTALLY_IN_SERVER=$name exec "$here/script/in-server" "$name" "$here/script/$(basename "$0")" "$name"
    fi
    look_at "$("$PG_CONFIG" --version)"
    bindir=$("$PG_CONFIG" --bindir)
    [ $# = 0 ] || need_source "$@"
    echo "PostgreSQL $version ($name)${1:+, the tests of $(basename "$source")}"
}

# Sets version and major from "PostgreSQL 17.11 (Debian ...)", "PostgreSQL 19rc1".
look_at() {
    version=$(echo "$1" | sed -n 's/^PostgreSQL \([0-9.]*[a-z0-9]*\).*/\1/p')
    major=${version%%[!0-9]*}
}

# ------------------------------------------------------------------ the tests' source

# Checksum of postgresql.org's archive of 16.2, which Ubuntu 24.04 was released with and therefore keeps. Debian cannot verify
# Ubuntu's signature, so the archive's content is checked instead.
sha256_of_16=446e88294dbc2c9085ab4b7061a646fa604b4bec03521d5ea671c2e5ad9b2952

# Runs apt with separate package lists, leaving the system's lists unchanged.
apt_source() {
    command=$1
    shift
    "$command" -q -o "Dir::Etc::SourceList=$build/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$build/apt/lists" -o "Dir::Cache=$build/apt/cache" \
        -o APT::Sandbox::User= -o Acquire::Check-Valid-Until=false "$@"
}

# Downloads the source of the server's version, or the newest of its major version, to $build/apt.
fetch() {
    command -v apt-get >/dev/null ||
        fail "could not find the tests in $build; unpack the source of PostgreSQL $version there"
    mkdir -p "$build/apt/lists/partial" "$build/apt/cache/archives/partial"
    case $major in
    15) suites='bookworm bookworm-updates' ;;
    16) suites=noble ;;
    17) suites='trixie trixie-updates' ;;
    18) suites=forky ;;
    *) suites='unstable experimental' ;;
    esac
    for suite in $suites; do
        case $suite in
        noble) echo "deb-src [trusted=yes] http://archive.ubuntu.com/ubuntu noble main" ;;
        *) echo "deb-src http://deb.debian.org/debian $suite main" ;;
        esac
        case $suite in
        *-updates) echo "deb-src http://deb.debian.org/debian-security ${suite%-updates}-security main" ;;
        esac
    done > "$build/apt/sources.list"
    apt_source apt-get update >"$build/apt/log" 2>&1 || true
    # The security archive may no longer have a version that its index lists.
    packages=$(apt_source apt-cache showsrc "postgresql-$major" 2>/dev/null | sed -n 's/^Version: //p' | sort -rV)
    for package in $packages; do
        # Files in the cache are complete.
        (cd "$build/apt" && apt_source apt-get source --download-only --tar-only \
            "postgresql-$major=$package") >>"$build/apt/log" 2>&1 && return
    done
    fail "could not download the tests of PostgreSQL $major (needed once):" \
        "$(tail -n 5 "$build/apt/log")"
}

# Prints the first of these paths that exists.
first() {
    ls -d "$@" 2>/dev/null | head -n 1
}

# Sets archive to PostgreSQL's source, downloaded once.
need_archive() {
    archive=$(first "$build/apt/postgresql-${major}"_*.orig.tar.bz2)
    [ -z "$archive" ] || return 0
    fetch
    archive=$(first "$build/apt/postgresql-${major}"_*.orig.tar.bz2)
}

# need_source DIRECTORY...: sets source to a PostgreSQL source tree that has these
need_source() {
    source=$(first "$build/postgresql-$version" "$build/postgresql-$major"[.a-z]*)
    missing=
    for folder in "$@"; do
        [ -n "$source" ] && [ -d "$source/$folder" ] || missing="$missing postgresql-*/$folder"
    done
    if [ -n "$missing" ]; then
        need_archive
        if [ "$major" = 16 ] && ! echo "$sha256_of_16  $archive" | sha256sum --check --status; then
            fail "$archive is not postgresql.org's archive of 16.2; delete it, and unpack the source of PostgreSQL 16 in $build"
        fi
        rm -rf "$build/unpacked"
        mkdir "$build/unpacked"
        # shellcheck disable=SC2086 # several folders, with a pattern for tar
        (set -f && tar -C "$build/unpacked" -xf "$archive" --wildcards $missing)
        unpacked=$(first "$build/unpacked"/postgresql-*)
        source=$build/$(basename "$unpacked")
        mkdir -p "$source"
        cp -R "$unpacked/." "$source"
        rm -rf "$build/unpacked"
    fi
}

# ------------------------------------------------------------------ work directory and server

user=
if [ "$(id -u)" = 0 ]; then
    user=${PGTALLY_USER:-postgres}
    id "$user" >/dev/null 2>&1 || fail "user $user does not exist; set PGTALLY_USER to one that may run servers"
fi

# Runs a command as the server's user. That user can read the environment of its processes, so none of the caller's variables
# are passed on that could be credentials or redirect psql. Its home is /, which belongs to root: in another user's directory, or
# in /tmp, others could put a .psqlrc.
as_server() {
    (exec_as_server "$@")
}

# The same in place of this shell, for a command in the background: its PID is that of the shell.
exec_as_server() {
    cd "$work"
    set -- env -i PATH="$PATH" HOME=/ LC_ALL=C.UTF-8 LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-}" "$@"
    [ -z "$user" ] || set -- setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$@"
    exec "$@"
}

server=
stop_server() {
    [ -n "$server" ] || return 0
    as_server "$bindir/pg_ctl" -D "$work/$server/data" -m immediate -w stop >/dev/null 2>&1 || true
    # An immediate stop leaves the segment behind, which is named after device and inode of the data directory.
    rm -f "$(printf '/dev/shm/pg_tally.%x.%x' $(stat -c '%d %i' "$work/$server/data" 2>/dev/null))"
    server=
}
watcher=
cleanup() {
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
    stop_server
    rm -rf "$work"
}

# Sets work to a temporary directory, removed at exit, with the extension in its lib, and socket to a directory below it for
# sockets, which is why the path is short. The directory belongs to root: in one of the server's user, that user could replace
# files that root reads and writes by links or pipes. So files in $socket and in the servers' directories are opened only
# through as_server.
make_work() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/tally.XXXXXX")
    trap cleanup EXIT
    trap 'exit 130' INT TERM HUP
    mkdir "$work/lib"
    cp "$PGTALLY_LIBRARY" "$work/lib/pg_tally.so"
    chmod 755 "$work" "$work/lib" "$work/lib"/*
    socket=$work/run
    of_server "$socket"
}

# of_server DIRECTORY: makes the directory, for the server's user only
of_server() {
    mkdir -m 700 "$1"
    [ -z "$user" ] || chown "$user" "$1"
}

# start_server NAME SETTING...: starts a new server
start_server() {
    server=$1
    shift
    of_server "$work/$server"
    as_server "$bindir/initdb" --no-sync --auth=trust --username=postgres --no-locale --encoding=UTF8 \
        -D "$work/$server/data" >"$work/initdb" 2>&1 || fail "initdb: $(tail -n 5 "$work/initdb")"
    {
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$socket'"
        # all connections are those of a superuser
        echo "unix_socket_permissions = 0700"
        echo "fsync = off"
        # needed by the isolation tests of prepared transactions
        echo "max_prepared_transactions = 2"
        echo "dynamic_library_path = '$work/lib:\$libdir'"
        printf '%s\n' "$@"
    } | as_server sh -c 'cat >> "$1"' sh "$work/$server/data/postgresql.conf"
    as_server "$bindir/pg_ctl" -D "$work/$server/data" -l "$work/$server/log" -w start >/dev/null 2>&1 ||
        fail "could not start the server: $(as_server tail -n 10 "$work/$server/log")"
}

# ------------------------------------------------------------------ a copy of the installation

# Copies the server's installation to $work/installation, without the extension, and sets bindir to the copy's programs. A server finds its libraries and extensions relative to its programs. The programs are copied because links
# would lead back to the original. File dates are kept, so that nothing is rebuilt for the copy.
copy_installation() {
    copy=$work/installation
    lib=$("$PG_CONFIG" --pkglibdir) share=$("$PG_CONFIG" --sharedir)
    mkdir -p "$copy$bindir" "$copy$lib" "$copy$share/extension"
    cp -p "$bindir"/* "$copy$bindir"
    ln -s "$lib"/* "$copy$lib"
    for file in "$share"/*; do [ "$file" = "$share/extension" ] || ln -s "$file" "$copy$share"; done
    ln -s "$share/extension"/* "$copy$share/extension"
    # Programs from Python packages find their libraries in a directory NAME.libs above them.
    above=$bindir
    for _ in 1 2 3; do
        above=$(dirname "$above")
        for file in "$above"/*.libs; do [ ! -d "$file" ] || ln -s "$file" "$copy$above"; done
    done
    rm -f "$copy$lib"/pg_tally* "$copy$share/extension"/pg_tally*
    bindir=$copy$bindir
}
