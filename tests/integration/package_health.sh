# Whether the package manager works: prints what it says where it does not, nothing where it does.
# $1: seconds since the epoch. A package manager whose files were not written since then works as it did before.
since=$1
newer() {
    for path in "$@"; do
        if [ -e "$path" ]; then find "$path" -newermt "@$since" ! -name 'lock*' ! -name '*.lock' -print -quit; fi
    done
}
# run COMMAND...: its output where it fails
run() {
    output=$(LC_ALL=C "$@" 2>&1 </dev/null) || printf '%s ended with %s:\n%s\n' "$*" $? "$output"
}
if command -v apt-get >/dev/null; then
    sources=$(newer /etc/apt /usr/share/keyrings /var/lib/apt/lists)
    [ -n "$sources$(newer /var/lib/dpkg)" ] || exit 0
    if [ -n "$sources" ]; then  # a first update of a bare host takes seconds
        run apt-get -q -o APT::Update::Error-Mode=any -o DPkg::Lock::Timeout=300 update
        run apt-get -q --simulate install tree
    fi
    run apt-get check  # after the update, which builds the cache that this reads
elif command -v dnf >/dev/null || command -v yum >/dev/null; then
    [ -n "$(newer /etc/yum.repos.d /etc/yum.conf /etc/dnf /etc/pki/rpm-gpg /var/lib/rpm /usr/lib/sysimage/rpm)" ] || exit 0
    dnf=$(command -v dnf || command -v yum)
    run "$dnf" -q makecache
    # The answer no ends with 1 as an error does.
    output=$(LC_ALL=C "$dnf" --assumeno install make 2>&1 </dev/null) ||
        case $output in *"Operation aborted"*) ;; *) printf '%s install make:\n%s\n' "$dnf" "$output" ;; esac
fi
