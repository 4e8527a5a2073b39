"""Shell scripts for hosts without Python: find one, or install it. bootstrap.py fills in the braces."""

MANAGERS = ("apt-get", "dnf", "yum")
LIMIT = 1200
"""Seconds. dnf and yum wait for another package manager without end; mirrors can be slow."""
FIND = r"""
for path in /usr/bin/python3 /usr/libexec/platform-python /usr/local/bin/python3 /usr/bin/python3.[0-9]*[0-9]; do
    [ -x "$path" ] || continue
    version=$("$path" -c 'import sys; print("%%d.%%d" %% sys.version_info[:2])' 2>&1) &&
        echo "python $version $path" || echo "broken $? $path $(echo "$version" | tail -n 1)"
done
for program in %s; do
    if command -v "$program" >/dev/null; then echo "manager $program"; fi
done
echo "system"
cat /etc/os-release
""" % " ".join(MANAGERS)
"""Prints what bootstrap.parse_found reads."""

_TIMEOUT = "timeout -k 30 %d " % LIMIT
_LATE = ' || { [ $? -ne 124 ] || echo "it did not end within %d minutes" >&2; exit 1; }\n' % (LIMIT // 60)
_LATE_FORM = _LATE.replace("{", "{{").replace("}", "}}")
APT = (
    _TIMEOUT + "apt-get -q update && export DEBIAN_FRONTEND=noninteractive && "
    + _TIMEOUT + "apt-get -q -y -o DPkg::Lock::Timeout=120 --no-install-recommends install python3" + _LATE
)  # fmt: skip
RPM = _TIMEOUT + "{manager} -y install python3" + _LATE_FORM
VAULT = r"""
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
printf '[main]\nreposdir=/dev/null\ngpgcheck=1\nplugins=0\ncachedir=%s/cache\n' "$directory" >"$directory/yum.conf"
quiet_gpg() {{ gpg --homedir "$directory" --batch --trust-model always "$@" 2>/dev/null; }}
pick() {{
    ring="$directory/$1.ring"
    quiet_gpg --no-default-keyring --keyring "$ring" --import "$directory/$1.download" &&
        quiet_gpg --no-default-keyring --keyring "$ring" --export-options export-minimal,no-export-attributes \
            --armor --export "$2" >"$directory/$1.key" &&
        quiet_gpg --with-fingerprint --with-colons "$directory/$1.key" |
        awk -F: -v pinned="$2" '/^pub/ {{ keys++ }} /^fpr/ && !found {{ found = $10 }}
            END {{ exit !(keys == 1 && found == pinned) }}'
}}
add() {{
    curl -fsSL --max-time 60 --max-filesize 1000000 -o "$directory/$1.download" "$3"
    pick "$1" "$4" || {{ echo "the key $3 is not the pinned one ($4)" >&2; return 1; }}
    printf '[%s]\nname=%s\nbaseurl=%s\ngpgkey=file://%s\n' "$1" "$1" "$2" "$directory/$1.key" >>"$directory/yum.conf"
}}
{adds}
""" + _TIMEOUT + '{manager} -y -c "$directory/yum.conf" install python3' + _LATE_FORM  # fmt: skip
"""From the archive of an ended release. Every system with yum has gpg and awk.

yum gets exactly the pinned key, as gpg exports it (without subkeys and user ids that the key did not sign), never the
downloaded file: rpm imports every armoured block of a file, also such as gpg does not see (with a space before it).
"""
