# Whether the package manager works: prints what it says where it does not, nothing where it does.
# $1: seconds since the epoch. A package manager whose files were not written since then works as it did before.
# $2: empty where the package sources are not read again, as where some are dead by intention.
since=$1
newer() {
    for path in "$@"; do
        if [ -e "$path" ]; then find "$path" -newermt "@$since" ! -name 'lock*' ! -name '*.lock' -print -quit; fi
    done
}
# run COMMAND...: its output where it fails
run() {
    output=$(LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@" 2>&1 </dev/null) || printf '%s ended with %s:\n%s\n' "$*" $? "$output"
}
# try INSTALLED NAME...: really install and remove the first package that INSTALLED NAME does not find. A simulation succeeds
# beside a package that is half configured, and the installation does not.
try() {
    known=$1
    shift
    for package in "$@"; do
        if ! $known "$package" >/dev/null 2>&1; then
            run $install "$package"
            run $remove "$package"
            return
        fi
    done
}
if command -v apt-get >/dev/null; then
    sources=${2-$(newer /etc/apt /usr/share/keyrings /var/lib/apt/lists)}
    [ -n "$sources$(newer /var/lib/dpkg)" ] || exit 0
    if [ -n "$sources" ]; then  # a first update of a bare host takes seconds
        run apt-get -q -o APT::Update::Error-Mode=any -o DPkg::Lock::Timeout=300 update
    fi
    run apt-get check  # after the update, which builds the cache that this reads
    audit=$(dpkg --audit 2>&1)  # its status is 0 whatever it finds
    [ -z "$audit" ] || printf 'dpkg --audit:\n%s\n' "$audit"
    options="-q -y --no-install-recommends -o DPkg::Lock::Timeout=300"
    install="apt-get $options install" remove="apt-get $options purge"
    try "dpkg -s" tree hello
elif command -v dnf >/dev/null || command -v yum >/dev/null; then
    [ -n "$(newer /etc/yum.repos.d /etc/yum.conf /etc/dnf /etc/pki/rpm-gpg /var/lib/rpm /usr/lib/sysimage/rpm)" ] || exit 0
    dnf=$(command -v dnf || command -v yum)
    [ -z "${2-read}" ] || run "$dnf" -q makecache
    run "$dnf" -q check  # dependencies, duplicates, obsoletes of what is installed (dnf(8))
    # Without what it would remove as no longer needed.
    options="-q -y --setopt=clean_requirements_on_remove=0 --setopt=install_weak_deps=0"
    install="$dnf $options install" remove="$dnf $options remove"
    try "rpm -q" libvdpau make
fi
