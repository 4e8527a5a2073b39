#!/bin/sh
# Stand-in for NVIDIA's self-extracting driver installer (gpu-ready lab): the part that makeself writes.
# The archive follows the line END-OF-SCRIPT; what makeself does not know goes to the nvidia-installer inside.
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
  folder=${target:-$targetdir}
  if [ -e "$folder" ]; then
    echo "The directory '$folder' already exists.  Please either remove this directory, or specify a different target directory with the '--target' option." >&2
    exit 1
  fi
  mkdir -p "$folder" || exit 1
else
  folder=$(mktemp -d "$tmproot/selfgz.XXXXXX") || exit 1
fi
printf 'Uncompressing %s' "$label"
if ! payload | tar -xz -C "$folder"; then
  echo "Extraction failed." >&2
  [ "$action" = extract ] || rm -rf "$folder"
  exit 1
fi
echo '...'
[ "$action" = install ] || exit 0

cd "$folder" || exit 1
./nvidia-installer "$@"
status=$?
cd /
[ -n "$keep" ] || rm -rf "$folder"
exit $status
END-OF-SCRIPT
