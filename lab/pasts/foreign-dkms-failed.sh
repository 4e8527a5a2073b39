# J4b: the headers of the kernel were tried and removed again, because that module does not build; after foreign-dkms-broken
# Page: https://github.com/DisplayLink/evdi/issues/346
if apt-get -q -y --no-install-recommends install "linux-headers-$(uname -r)"; then
  echo "the headers were installed, although evdi does not build" >&2
  exit 1
fi
apt-get -q -y remove "linux-headers-$(uname -r)"
