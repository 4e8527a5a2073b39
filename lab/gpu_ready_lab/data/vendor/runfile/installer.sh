#!/bin/sh
# Stand-in for NVIDIA's self-extracting driver installer (gpu-ready lab): the part that makeself writes.
# The archive follows the line END-OF-SCRIPT; options that makeself does not know are passed to the nvidia-installer inside.
label="NVIDIA Accelerated Graphics Driver for Linux-x86_64 @version@"
targetdir="NVIDIA-Linux-x86_64-@version@"
sum=@sha256@
size=@size@
payload() { sed '1,/^END-OF-SCRIPT$/d' "$archive"; }

archive=$(readlink -f "$0")
action=install target='' keep='' tmproot=${TMPDIR:-/tmp}
count=$#
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case "$word" in
    --check) action=check ;;
    --info) action=info ;;
    --lsm) action=lsm ;;
    -x | --extract-only) action=extract ;;
    --keep) keep=yes ;;
    --target)
      target=$1 action=extract
      shift
      count=$((count - 1))
      ;;
    --target=*) target=${word#--target=} action=extract ;;
    --tmpdir=*)
      tmproot=${word#--tmpdir=}
      set -- "$@" "$word"
      ;;
    --tmpdir)
      tmproot=$1
      shift
      count=$((count - 1))
      set -- "$@" "--tmpdir=$tmproot"
      ;;
    *) set -- "$@" "$word" ;;
  esac
done

case "$action" in
  info)
    echo "Identification: $label"
    echo "Target directory: $targetdir"
    echo "Uncompressed size: $size KB"
    echo "Compression: gzip"
    echo "Script run after extraction:"
    echo "     ./nvidia-installer"
    exit 0
    ;;
  lsm)
    echo "No LSM."
    exit 0
    ;;
esac

printf 'Verifying archive integrity... '
if [ "$(payload | sha256sum | cut -d ' ' -f 1)" != "$sum" ]; then
  echo "Error in check sums"
  exit 1
fi
echo OK
[ "$action" != check ] || exit 0

if [ "$action" = extract ]; then
  directory=${target:-$targetdir}
  if [ -e "$directory" ]; then
    echo "The directory '$directory' already exists.  Please either remove this directory, or specify a different target directory with the '--target' option." >&2
    exit 1
  fi
  mkdir -p "$directory" || exit 1
else
  directory=$(mktemp -d "$tmproot/selfgz.XXXXXX") || exit 1
fi
printf 'Uncompressing %s' "$label"
if ! payload | tar -xz -C "$directory"; then
  echo "Extraction failed." >&2
  [ "$action" = extract ] || rm -rf "$directory"
  exit 1
fi
echo '...'
[ "$action" = install ] || exit 0

cd "$directory" || exit 1
./nvidia-installer "$@"
status=$?
cd /
[ -n "$keep" ] || rm -rf "$directory"
exit $status
END-OF-SCRIPT
