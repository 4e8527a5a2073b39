#!/bin/sh
# Stand-in for NVIDIA's self-extracting installer of CUDA toolkits (gpu-ready lab): the part that makeself writes.
# The archive follows the line END-OF-SCRIPT; options that makeself does not know are passed to the cuda-installer inside.
label="CUDA Installer @version@"
sum=@sha256@
payload() { sed '1,/^END-OF-SCRIPT$/d' "$archive"; }

archive=$(readlink -f "$0")
tmproot=${TMPDIR:-/tmp}
for word in "$@"; do
  case "$word" in
    --tmpdir=*) tmproot=${word#--tmpdir=} ;;
    --check)
      [ "$(payload | sha256sum | cut -d ' ' -f 1)" = "$sum" ] || {
        echo "Error in check sums"
        exit 1
      }
      echo " All good."
      exit 0
      ;;
  esac
done

if [ "$(payload | sha256sum | cut -d ' ' -f 1)" != "$sum" ]; then
  echo "Error in check sums $label"
  exit 1
fi
directory=$(mktemp -d "$tmproot/selfgz.XXXXXX") || exit 1
if ! payload | tar -xz -C "$directory"; then
  echo "Extraction failed." >&2
  rm -rf "$directory"
  exit 1
fi
cd "$directory" || exit 1
./cuda-installer "$@"
status=$?
cd /
rm -rf "$directory"
exit $status
END-OF-SCRIPT
