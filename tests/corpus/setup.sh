# Functions for the commands of index.yaml; record.py runs both in a root file system of Debian.

# package NAME VERSION [FIELD...]: build a Debian package with the files of tree/ in the current directory's archive/
package() {
    name=$1 version=$2; shift 2
    mkdir -p archive build/DEBIAN
    [ ! -d tree ] || cp -a tree/. build
    { echo "Package: $name"; echo "Version: $version"; echo Architecture: amd64; echo "Maintainer: nobody <nobody@example.com>"
      echo "Description: sample"; for field; do echo "$field"; done; } >build/DEBIAN/control
    [ ! -f postinst ] || install -m 755 postinst build/DEBIAN
    dpkg-deb -b build "archive/${name}_${version}_amd64.deb"
    rm -rf build tree postinst
}

# index: make the archive a repository, serve it on port 80 of repo.example, and make it apt's only source
index() {
    (cd archive && apt-ftparchive packages . >Packages && apt-ftparchive "$@" release . >Release.new && mv Release.new Release)
    serve
    rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*
    echo "deb [trusted=yes] http://repo.example/ ./" >/etc/apt/sources.list
}

# serve: the archive at http://repo.example/
serve() {
    echo "127.0.0.1 localhost repo.example node1" >/etc/hosts
    busybox httpd -p 80 -h /tmp/archive
}
