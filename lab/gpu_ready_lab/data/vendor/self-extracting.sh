#!/bin/sh
# Stand-in for NVIDIA's self-extracting installers (gpu-ready lab): the part that makeself writes.
# The archive follows the line END-OF-SCRIPT; options that makeself does not know are passed to the program inside.
label="@label@"
payload() { sed '1,/^END-OF-SCRIPT$/d' "$archive"; }

archive=$(readlink -f "$0")
tmproot=${TMPDIR:-/tmp}
check=''
for word in "$@"; do
  case "$word" in
    --tmpdir=*) tmproot=${word#--tmpdir=} ;;
    --check) check=yes ;;
  esac
done
printf 'Verifying archive integrity... '
if [ "$(payload | sha256sum | cut -d ' ' -f 1)" != "@sha256@" ]; then
  echo "Error in check sums $label"
  exit 1
fi
echo OK
[ -z "$check" ] || exit 0

directory=$(mktemp -d "$tmproot/selfgz.XXXXXX") || exit 1
printf 'Uncompressing %s' "$label"
if ! payload | tar -xz -C "$directory"; then
  echo "Extraction failed." >&2
  rm -rf "$directory"
  exit 1
fi
echo '...'
cd "$directory" || exit 1
./@program@ "$@"
status=$?
cd /
rm -rf "$directory"
exit $status
END-OF-SCRIPT
