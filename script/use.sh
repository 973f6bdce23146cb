# SPDX-License-Identifier: PostgreSQL
# Functions of scripts that use installed packages in a fresh system (use-packages, use-rpm), where this file is beside them.

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# expect TEXT FILE
expect() {
    grep -q -- "$1" "$2" || {
        cat "$2" >&2
        fail "the output lacks \"$1\""
    }
}

quietly() {
    "$@" >/tmp/log 2>&1 || {
        tail -n 20 /tmp/log >&2
        fail "failed: $*"
    }
}

# as USER COMMAND...
as() {
    name=$1
    shift
    setpriv --reuid "$name" --regid "$(id -g "$name")" --init-groups env -i PATH="$PATH" HOME=/ "$@"
}

# Prints all files, users and groups, except those that package managers and programs keep for themselves.
files() {
    find / -xdev \( -path /proc -o -path /tmp -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log \
        -o -path /root/.rpmdb -o -path /repository \) -prune -o -print | grep -v '^/var/lib/ucf\|^/etc/ld.so.cache$' | sort
    cut -d : -f 1 /etc/passwd /etc/group
}

# files_of_the_command: what the package of the command has
files_of_the_command() {
    tally --version > /tmp/version
    expect '^tally ' /tmp/version
    for file in /usr/share/bash-completion/completions/tally /usr/lib/pgtally/libtally_pq.so \
        /usr/share/pgtally/prometheus/pgtally.rules.yml /usr/share/pgtally/grafana/pgtally-server.json; do
        [ -s "$file" ] || fail "$file is missing"
    done
    [ -n "$(find /usr/share/man/man1 -name 'tally-top.1*' -size +0)" ] || fail "the manual pages are missing"
    [ -n "$(find /usr/share/doc/pgtally* /usr/share/licenses/pgtally* -name 'LICENSES.libraries*' -size +0 2>/dev/null)" ] ||
        fail "the licences of the libraries in the command are missing"
    unit=$(find /lib/systemd /usr/lib/systemd -name 'pgtally-record@.service' | head -n 1)
    [ ! -e /etc/systemd/system/multi-user.target.wants/pgtally-record@.service ] || fail "a recording would start automatically"
    unreadable=$(find /usr/bin/tally /usr/lib/pgtally /usr/share/pgtally /usr/share/man/man1/tally* "$unit" \
        /usr/share/*/*/tally /usr/share/*/*/_tally /usr/share/*/*/tally.fish ! -perm -004)
    [ -z "$unreadable" ] || fail "not everybody may read $unreadable"
}

# records DATA: the command of the unit, as its user, records this server, and everything is in the report
records() {
    command=$(sed -n 's/^ExecStart=//p' "$unit" | sed "s,-o [^ ]*,-o /tmp/recording,; s,%f,$1,")
    expect '^ExecStart=/usr/bin/tally record' "$unit"
    rm -rf /tmp/recording
    # shellcheck disable=SC2086 # a command
    quietly as "$(sed -n 's/^User=//p' "$unit")" $command --for 2s
    as postgres tally report --json /tmp/recording > /tmp/report
    expect '"ledger"' /tmp/report
    quietly as postgres tally report -o /tmp/recording/report.html /tmp/recording
    # A command that was built without the page has no charts.
    expect '<script>' /tmp/recording/report.html
}

# refuses_others: a user without rights on the server is told so
refuses_others() {
    status=0
    as nobody tally top --once > /tmp/refused 2>&1 || status=$?
    [ "$status" = 1 ] || { cat /tmp/refused >&2; fail "tally top of an ordinary user: exit status $status"; }
    expect '^tally: ' /tmp/refused
}

wants=/etc/systemd/system/multi-user.target.wants
# has_systemctl: a stub notes in /told what systemd would be told
has_systemctl() {
    mkdir -p "$wants" /run/systemd
    # In the path before the real one, if that is installed.
    printf '%s\n' '#!/bin/sh' 'echo "$*" >> /told' > /usr/sbin/systemctl
    chmod 755 /usr/sbin/systemctl
    : > /told
}

# enable_a_recording: what `systemctl enable` does, where systemd runs
enable_a_recording() {
    ln -s "$unit" "$wants/pgtally-record@var-lib-postgresql.service"
    mkdir /run/systemd/system
}

# stopped_recordings: systemd was told to stop all of them
stopped_recordings() {
    rmdir /run/systemd/system
    expect '^stop pgtally-record@\*.service$' /told
}
