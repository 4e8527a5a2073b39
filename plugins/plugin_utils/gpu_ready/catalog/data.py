"""Data of catalog/*.yml, compiled by `make catalog`; do not edit."""

import json
from typing import Any, Dict

# fmt: off
# ruff: noqa: E501
_DATA = json.loads(r'''{"DATE":"2026-11-21",
"DEFAULT_BRANCH":580,
"NEWEST_BRANCH":615,
"BRANCHES":{
"340":{"newest":"340.108","kind":"legacy","eol":"2019-12","cuda":"6.5","flavours":["proprietary"]},
"390":{"newest":"390.157","kind":"legacy","eol":"2022-12","cuda":"9.1","flavours":["proprietary"]},
"470":{"newest":"470.256.02","kind":"legacy","eol":"2024-07","cuda":"11.4","flavours":["proprietary"]},
"535":{"newest":"535.309.01","kind":"lts","eol":"2026-06","cuda":"12.2","flavours":["open","proprietary"]},
"550":{"newest":"550.163.01","kind":"production","eol":"2025-06","cuda":"12.4","flavours":["open","proprietary"]},
"570":{"newest":"570.211.01","kind":"production","eol":"2026-02","cuda":"12.8","flavours":["open","proprietary"]},
"575":{"newest":"575.64.05","kind":"new_feature","eol":"2025-08","cuda":"12.9","flavours":["open","proprietary"]},
"580":{"newest":"580.178.04","kind":"lts","eol":"2028-06","cuda":"13.0","flavours":["open","proprietary"]},
"590":{"newest":"590.48.01","kind":"new_feature","eol":"2026-03","cuda":"13.1","flavours":["open","proprietary"]},
"595":{"newest":"595.91.07","kind":"production","eol":"2027-03","cuda":"13.2","flavours":["open","proprietary"]},
"610":{"newest":"610.57.04","kind":"new_feature","eol":"2026-08","cuda":"13.3","flavours":["open","proprietary"]},
"615":{"newest":"615.71.09","kind":"new_feature","eol":null,"cuda":"13.4","flavours":["open","proprietary"]},
"620":{"newest":"620","kind":"new_feature","eol":null,"cuda":"13.5","flavours":["open"]}},
"TOOLKITS":{
"11.0":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.1":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.2":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.3":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.4":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.5":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.6":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.7":{"min_driver":"450.80.02","compute":["3.5","8.7"]},
"11.8":{"min_driver":"450.80.02","compute":["3.5","9.0"]},
"12.0":{"min_driver":"525.60.13","compute":["5.0","9.0"]},
"12.1":{"min_driver":"525.60.13","compute":["5.0","9.0"]},
"12.2":{"min_driver":"525.60.13","compute":["5.0","9.0"]},
"12.3":{"min_driver":"525.60.13","compute":["5.0","9.0"]},
"12.4":{"min_driver":"525.60.13","compute":["5.0","9.0"]},
"12.5":{"min_driver":"525.60.13","compute":["5.0","9.0"]},
"12.6":{"min_driver":"525.60.13","compute":["5.0","9.0"]},
"12.8":{"min_driver":"525.60.13","compute":["5.0","12.1"]},
"12.9":{"min_driver":"525.60.13","compute":["5.0","12.1"]},
"13.0":{"min_driver":"580.65.06","compute":["7.5","12.1"]},
"13.1":{"min_driver":"580.65.06","compute":["7.5","12.1"]},
"13.2":{"min_driver":"580.65.06","compute":["7.5","12.1"]},
"13.3":{"min_driver":"580.65.06","compute":["7.5","12.1"]},
"13.4":{"min_driver":"580.65.06","compute":["7.5","12.1"]}},
"CUDA_INSTALLER":{
"root":"https://developer.download.nvidia.com/compute/cuda",
"file":"{root}/{release}/local_installers/cuda_{release}_{driver}_linux.run",
"file_without_driver":"{root}/{release}/local_installers/cuda_{release}_linux.run",
"md5":"{root}/{release}/docs/sidebar/md5sum.txt",
"needs":["libxml2"]},
"CUDA_INSTALLERS":{
"11.0.2":{"driver":"450.51.05","sha256":"SCR62g4/EGBRApro9w+9DCOAQPWLCIDlUCY3SpWaacE="},
"11.0.3":{"driver":"450.51.06","sha256":"sHnE5Ait+Iw/H/uEGKl9xCJ8N5NWdrS/TKC+7GwyjMA="},
"11.1.0":{"driver":"455.23.05","sha256":"hYy6sJH96UVWokm5WA+t/1Wkbq+8tNSnQdLc01irlKU="},
"11.1.1":{"driver":"455.32.00","sha256":"Pq5nJwhgJJJeu87z6aRa03nYSQdo/QD5wti2/ZzY3Y8="},
"11.2.0":{"driver":"460.27.04","sha256":"nFAoMkGsMl0whSie2bnBcFMTad5BFlzicTUtSomMvc4="},
"11.2.1":{"driver":"460.32.03","sha256":"HamMuJfMX1inRFpKZspPaSaGdwbLOvWKZpzc2Nw9F8g="},
"11.2.2":{"driver":"460.32.03","sha256":"Ci5HciSvf2ADtJ7f0r/uB2Z6gUj+NifP0nZfatcvoZ0="},
"11.3.0":{"driver":"465.19.01","sha256":"Ji2n932xd7FTprcLWBIhDz9y8A62CKuc8qRYIyjEv1w="},
"11.3.1":{"driver":"465.19.01","sha256":"rZPqmO/O01hVxY06D8MmN3xgkXyz6MAX0+bYiBm/KTQ="},
"11.4.0":{"driver":"470.42.01","sha256":"0hnbMPdBWhFaTqIr27WYSwoY9/iRytYHTF2kXSI6qks="},
"11.4.1":{"driver":"470.57.02","sha256":"3WwzmnGZidJRj11U7qwe1wfQZz+GZLoMTUsq98O6AAU="},
"11.4.2":{"driver":"470.57.02","sha256":"u9h8oOkT+DdFSnljZ0c1E83e9VUILk2G7Zo4ZZzIHwo="},
"11.4.3":{"driver":"470.82.01","sha256":"dJGDgh/8BR4SPxLr3rFxsmPVW4bw3XyPI2EdsYAtbDc="},
"11.4.4":{"driver":"470.82.01","sha256":"RFRaertLZt/CAdyteHteg1Llt93z48xbLpF3r0GcJcg="},
"11.5.0":{"driver":"495.29.05","sha256":"rgoWk9lJfPPYHmlIlD43lGNpANtxyY1Y7v2sr38aHkw="},
"11.5.1":{"driver":"495.29.05","sha256":"YL6i/A+slVdAFfhlNVr79ZlCLsLIVVT18FKyknEaS8o="},
"11.5.2":{"driver":"495.29.05","sha256":"dJWavwK8ulJvCjquMix2QbJdoEDM1iNtBwOPgZl7c6Y="},
"11.6.0":{"driver":"510.39.01","sha256":"F4PabWOXB4YECYC1f6PLZCAUIVn8fQ5m+PBcSQXZjIM="},
"11.6.1":{"driver":"510.47.03","sha256":"qyGa/OALdCABEyaYZvv/derQN7z8I1UagzjCaEyYTX4="},
"11.6.2":{"driver":"510.47.03","sha256":"mbenPcxSpSzvTB/OtKYMMBWsm2QECCwWd9nv2rodRZM="},
"11.7.0":{"driver":"515.43.04","sha256":"CH/fy7ofeVQ7H3jkOo39rF9tskLQQt3oIOFtwYWJLyY="},
"11.7.1":{"driver":"515.65.01","sha256":"UihqKXBlSbfQ/usOfj7KGxUofENqafqICtOFsb4+BNs="},
"11.8.0":{"driver":"520.61.05","sha256":"kiPErzrr5Ke77Zq9mxY7A6GzS4VfvCtKDRtwasCaWhY="},
"12.0.0":{"driver":"525.60.13","sha256":"kF6blRaQCDn7dgZHGdt1JDnzi4y3MLSTNdi9U93605I="},
"12.0.1":{"driver":"525.85.12","sha256":"GyBaBicvFGP0dydv2rkD8/ZmkXwGjlIHOAAeacehh1s="},
"12.1.0":{"driver":"530.30.02","sha256":"aGmQNsEtca25rSeZ3OL/BwJw+rRIi5CSC5dWqz9SxBw="},
"12.1.1":{"driver":"530.30.02","sha256":"10Ai1B2AEFMZ36Ib7qObd6W5kZU5wEh6BcqvJEbWpw4="},
"12.2.0":{"driver":"535.54.03","sha256":"7PPSr63LrAKfD0UFeFgQ1S0AbkuHunn/P5hDNqK79Rg="},
"12.2.1":{"driver":"535.86.10","sha256":"xR6BTqp1YWCnMomx81iAzDjBjh3e3If0b3/w0Wlr25U="},
"12.2.2":{"driver":"535.104.05","sha256":"Kzmq4+dhjZ9Zo8j6HxvGHynAsODfdfsFB2uts1KVLvI="},
"12.3.0":{"driver":"545.23.06","sha256":"fBP6zjr2TW4WSNbjEB0xyBEedHFDrLAHfZc8FpCCBCI="},
"12.3.1":{"driver":"545.23.08","sha256":"tz0YzNX/hbuuMrQl37gnKWEu3mWwejfNXitXQZBhQDg="},
"12.3.2":{"driver":"545.23.08","sha256":"JLKvyfdw2M9D1vp63C6/1HxAhNsBvdoc484KTUk7pls="},
"12.4.0":{"driver":"550.54.14","sha256":"5qhC9OypSQV1zbaLaxu3jUe5Wol95I3uKSxDGJLlfRc="},
"12.4.1":{"driver":"550.54.15","sha256":"Nn0imbOkWIq0h6bScnbKXZ6tbjlJBPGLzLnhJDO5xPs="},
"12.5.0":{"driver":"555.42.02","sha256":"kPzH30giZDQGX/EqQ3ITa0C5pMvwyGArt2O3RfIrepk="},
"12.5.1":{"driver":"555.42.06","sha256":"teCneeCJyGYQBRFBxM9Ji+70MYWOxjOYEHORcn7L2wQ="},
"12.6.0":{"driver":"560.28.03","sha256":"MasEOU5psU3YZW4rRMKHfbGg6Jjf+KdUakxihDgQG5Q="},
"12.6.1":{"driver":"560.35.03","sha256":"c6zOckNRliXyWVCfXc/23I+9I9ylO4Uqqc44IAnpLp0="},
"12.6.2":{"driver":"560.35.03","sha256":"NymonLWPfKakZxnP8RDWKSrsdXdYWo1xNA8NusVPsjc="},
"12.6.3":{"driver":"560.35.05","sha256":"gdYOSARHlteIOqigSa/mUBuEPyxFY5s3A7I3jeMNVdM="},
"12.8.0":{"driver":"570.86.10","sha256":"YQhn3NbZTE42xJJPHQG52yjsCBZOivbHZPIbhCAGlfg="},
"12.8.1":{"driver":"570.124.06","sha256":"Io9ryvW3YY0DKTn0MZFPyS0OXtOevjcJiiRQLyahl5c="},
"12.8.2":{"driver":"570.211.01"},
"12.9.0":{"driver":"575.51.03","sha256":"u84rdg/iCWyhyG9yngO/N3wVGa3XsnVezE6bCp4H7kM="},
"12.9.1":{"driver":"575.57.08","sha256":"D22Abd2HIw0q2+imAGqdIBRP29qd4tasxnfapdA2QXo="},
"12.9.2":{"driver":"575.57.08"},
"13.0.0":{"driver":"580.65.06","sha256":"xklp81rZm/P56Ky449IjVRUMbKB6zBaoU3eGAKm2W6Y="},
"13.0.1":{"driver":"580.82.07","sha256":"THrFnR9B1nvifRQKRiKAFzitcQiFcKD6z9bsh4pMQQA="},
"13.0.2":{"driver":"580.95.05","sha256":"gaXQ0IcLogIu+wpTHcxgrb3Cu/97PvGdb9bYEFQGx3U="},
"13.0.3":{"driver":"580.126.20"},
"13.1.0":{"driver":"590.44.01","sha256":"a0/fJpSz16+8Um8mQStM9PBQsgIyRFUFMwcxD1OzI6c="},
"13.1.1":{"driver":"590.48.01","sha256":"JP8yNyNyJ4FDaASzkqSPaRy0DemAgJXT4hktDbbfuOQ="},
"13.1.2":{"driver":"590.48.01"},
"13.2.0":{"driver":"595.45.04"},
"13.2.1":{"driver":"595.58.03"},
"13.2.2":{"driver":"595.71.05"},
"13.3.0":{"driver":"610.43.02"},
"13.3.1":{"driver":"610.43.02"},
"13.4.1":{},
"13.4.2":{}},
"CUDNN_PATH":"cudnn/linux-x86_64/cudnn-linux-x86_64-{version}_cuda{cuda}-archive.tar.xz",
"CUDNNS":{
"8.9.7.29":{"cuda":["11","12"],"compute":["3.5","9.0"]},
"9.10.2.21":{"cuda":["11","12"],"compute":["5.0","12.1"]},
"9.17.0.29":{"cuda":["12","13"],"compute":["7.5","12.1"]},
"9.26.0.51":{"cuda":["12","13"],"compute":["7.5","12.1"],"sha256":{"13":"e62c9b4af62ea130765ea5b13244c05c9452edf1690072373d193d19766d9850"}},
"9.28.0.42":{"cuda":["12","13"],"compute":["7.5","12.1"]}},
"CUDNN_PACKAGES":{
"8":{"side_by_side":false,"deb":{"names":["libcudnn8","libcudnn8-dev"],"version":"{version}-1+cuda{cuda}.*"},"rpm":{"names":["libcudnn8","libcudnn8-devel"],"version":"{version}-1.cuda{cuda}.*"}},
"9":{"side_by_side":false,"deb":{"names":["libcudnn9-cuda-{cuda}","libcudnn9-dev-cuda-{cuda}","libcudnn9-headers-cuda-{cuda}"],"version":"{version}-*","any":"9.*"},"rpm":{"names":["libcudnn9-cuda-{cuda}","libcudnn9-devel-cuda-{cuda}","libcudnn9-headers-cuda-{cuda}"],"version":"{version}-*","any":"9.*"}}},
"DISTROS":{
"amzn2023":{"family":"amazon","ids":["amzn"],"versions":["2023"],"pretty":"Amazon Linux 2023","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"^6\\.12\\.":["kernel6.12-devel-{kernel}"],"^6\\.18\\.":["kernel6.18-devel-{kernel}"]},"build_tools":["dkms","gcc","make"],"build_repositories":["cuda-amzn2023"],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-amzn2023","streams":{"open":"{branch}-open","proprietary":"{branch}-dkms"},"fabricmanager":{"<=575":"nvidia-fabric-manager",">=580":"nvidia-fabricmanager"},"subnet_manager":"nvlsm","imex":{"550-575":"nvidia-imex-{branch}",">=580":"nvidia-imex"},"persistenced":"nvidia-persistenced","branches":[570,575,580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"],"unverified":{"branches":[575],"toolkits":["12.6","12.8","13.0"]}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker"],"engine":["docker"]}},"container_toolkit":"container-toolkit-rpm"},
"centos7":{"family":"rhel","ids":["centos","rhel","ol","scientific"],"versions":["7"],"pretty":"CentOS 7","package_manager":"yum","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\.":["kernel-uek-devel-{kernel}"],"\\.centos\\.plus\\.":["kernel-plus-devel-{kernel}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-7"],"vault":["vault-centos7-os","vault-centos7-updates","vault-centos7-extras"],"hold_tools":["yum-plugin-versionlock"],"max_branch":550,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel7","fabricmanager":"nvidia-fabric-manager","branches":[470,535,550],"packages":{"compute":{"proprietary":["nvidia-driver-latest-dkms-cuda","kmod-nvidia-latest-dkms"]},"full":{"proprietary":["nvidia-driver-latest-dkms","nvidia-driver-latest-dkms-cuda","kmod-nvidia-latest-dkms"]}},"precompiled":{"signed_by":"nvidia","ids":["rhel","centos"],"branches":[470,535,550],"packages":{"compute":{"proprietary":["nvidia-driver-branch-{branch}-cuda","kmod-nvidia-branch-{branch}"]},"full":{"proprietary":["nvidia-driver-branch-{branch}","nvidia-driver-branch-{branch}-cuda","kmod-nvidia-branch-{branch}"]}}},"toolkits":["11.0","11.1","11.2","11.3","11.4","11.5","11.6","11.7","11.8","12.0","12.1","12.2","12.3","12.4"],"unverified":{"branches":[470,535,550]}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550]}},"docker":{"docker_ce":{"repository":"docker-ce-el7","packages":[{"name":"docker-ce","version":"26.1.4-1.el7"},{"name":"docker-ce-cli","version":"26.1.4-1.el7"},{"name":"containerd.io","version":"1.6.33-3.1.el7"}],"engine":["docker-ce","docker-ce-cli"],"version":"26.1.4","conflicts":["docker","docker-client","docker-client-latest","docker-common","docker-latest","docker-latest-logrotate","docker-logrotate","docker-engine"]}},"container_toolkit":"container-toolkit-rpm"},
"debian12":{"family":"debian","ids":["debian"],"versions":["12"],"pretty":"Debian 12 (bookworm)","codename":"bookworm","package_manager":"apt","headers":["linux-headers-{kernel}"],"headers_by_kernel":{"-pve$":["proxmox-headers-{kernel}"]},"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["contrib","non-free","non-free-firmware"],"fabricmanager":null,"branches":{"535":{"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-smi","libcuda1","libnvidia-ml1","libnvidia-ptxjitcompiler1","nvidia-modprobe","firmware-nvidia-gsp"]},"full":{"proprietary":["nvidia-kernel-dkms","nvidia-driver","nvidia-smi","libcuda1","firmware-nvidia-gsp"]}}}}},"cuda_repo":{"repository":"cuda-debian12","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590,595,610,615],"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-driver-cuda"],"open":["nvidia-kernel-open-dkms","nvidia-driver-cuda"]},"full":{"proprietary":["cuda-drivers"],"open":["nvidia-open"]}},"toolkits":["12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"],"unverified":{"toolkits":["12.3","12.4","12.5","12.6","12.8","12.9","13.0"]}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"20.10.24"},"docker_ce":{"repository":"docker-ce-debian12","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit","node_exporter":{"package":"prometheus-node-exporter"}},
"debian13":{"family":"debian","ids":["debian"],"versions":["13"],"pretty":"Debian 13 (trixie)","codename":"trixie","package_manager":"apt","headers":["linux-headers-{kernel}"],"headers_by_kernel":{"-pve$":["proxmox-headers-{kernel}"]},"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["contrib","non-free","non-free-firmware"],"fabricmanager":null,"branches":{"550":{"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-smi","libcuda1","libnvidia-ml1","libnvidia-ptxjitcompiler1","nvidia-modprobe","firmware-nvidia-gsp"]},"full":{"proprietary":["nvidia-kernel-dkms","nvidia-driver","nvidia-smi","libcuda1","firmware-nvidia-gsp"]}}}}},"cuda_repo":{"repository":"cuda-debian13","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590,595,610,615],"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-driver-cuda"],"open":["nvidia-kernel-open-dkms","nvidia-driver-cuda"]},"full":{"proprietary":["cuda-drivers"],"open":["nvidia-open"]}},"toolkits":["13.0","13.1","13.2","13.3","13.4"],"unverified":{"toolkits":["13.0"]}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io","docker-cli"],"engine":["docker.io","docker-cli"],"version":"26.1.5"},"docker_ce":{"repository":"docker-ce-debian13","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-cli","docker-compose","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit","node_exporter":{"package":"prometheus-node-exporter"}},
"el10":{"family":"rhel","ids":["rhel","centos","rocky","almalinux","ol"],"versions":["10"],"relatives":{"eurolinux":["10"]},"pretty":"Enterprise Linux 10","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\..*\\+debug$":["kernel-uek-debug-devel-{release}"],"uek\\.":["kernel-uek-devel-{kernel}"],"\\+debug$":["kernel-debug-devel-{release}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-10"],"build_enable":[["crb","codeready-builder-for-rhel-10-x86_64-rpms","codeready-builder-for-rhel-10-rhui-rpms","codeready-builder-for-rhel-10-x86_64-rhui-rpms","rhui-codeready-builder-for-rhel-10-x86_64-rhui-rpms","ol10_codeready_builder"]],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel10","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["12.9","13.0","13.1","13.2","13.3","13.4"],"unverified":{"toolkits":["12.9","13.0"]}},"elrepo":{"only_when_asked":true,"kernels":"^6\\.12\\.0-[\\d.]+\\.el10_\\d+\\.x86_64$","kernel_modules":"precompiled","signed_by":"elrepo","repository":"elrepo-10","with_repositories":["epel-10"],"fabricmanager":null,"detect":"nvidia-detect","branches":{"580":{"packages":{"compute":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]},"full":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]}}},"595":{"packages":{"compute":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]},"full":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]}}}}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[550,570,575,580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-el10","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"kernel_packages":["kernel-modules-extra-{kernel}"],"conflicts":["docker","docker-client","docker-common","docker-engine","podman-docker","runc"]}},"container_toolkit":"container-toolkit-rpm","node_exporter":{"package":"node-exporter","repository":"epel-10"}},
"el8":{"family":"rhel","ids":["rhel","centos","rocky","almalinux","ol"],"versions":["8"],"relatives":{"eurolinux":["8"],"miraclelinux":["8"],"springdale":["8"],"circle":["8"],"navylinux":["8"],"anolis":["8"],"alinux":["3"]},"pretty":"Enterprise Linux 8","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\..*\\+debug$":["kernel-uek-debug-devel-{release}"],"uek\\.":["kernel-uek-devel-{kernel}"],"\\+debug$":["kernel-debug-devel-{release}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-8"],"build_enable":[["powertools","codeready-builder-for-rhel-8-x86_64-rpms","codeready-builder-for-rhel-8-rhui-rpms","codeready-builder-for-rhel-8-x86_64-rhui-rpms","rhui-codeready-builder-for-rhel-8-x86_64-rhui-rpms","ol8_codeready_builder"]],"vault":["vault-centos8"],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel8","streams":{"open":"{branch}-open","proprietary":"{branch}-dkms"},"fabricmanager":{"<=575":"nvidia-fabric-manager",">=580":"nvidia-fabricmanager"},"subnet_manager":"nvlsm","imex":{"550-575":"nvidia-imex-{branch}",">=580":"nvidia-imex"},"persistenced":"nvidia-persistenced","branches":[470,535,550,570,575,580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"precompiled":{"signed_by":"nvidia","ids":["rhel"],"streams":{"proprietary":"{branch}"},"branches":[535,550,570,575,580,590,595],"packages":{"compute":{"proprietary":["nvidia-driver-cuda"]},"full":{"proprietary":["nvidia-driver","nvidia-driver-cuda"]}}},"toolkits":["11.0","11.1","11.2","11.3","11.4","11.5","11.6","11.7","11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"],"unverified":{"branches":[470]}},"elrepo":{"only_when_asked":true,"kernels":"^4\\.18\\.0-[\\d.]+\\.el8(_\\d+)?\\.x86_64$","kernel_modules":"precompiled","signed_by":"elrepo","repository":"elrepo-8","with_repositories":["epel-8"],"fabricmanager":null,"detect":"nvidia-detect","branches":{"390":{"packages":{"compute":{"proprietary":["kmod-nvidia-390xx","nvidia-x11-drv-390xx","nvidia-x11-drv-390xx-libs"]},"full":{"proprietary":["kmod-nvidia-390xx","nvidia-x11-drv-390xx","nvidia-x11-drv-390xx-libs"]}}},"470":{"packages":{"compute":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]},"full":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]}}},"580":{"packages":{"compute":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]},"full":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]}}},"595":{"packages":{"compute":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]},"full":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]}}}}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-el8","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","podman-docker","runc"]}},"container_toolkit":"container-toolkit-rpm","node_exporter":{"package":"golang-github-prometheus-node-exporter","repository":"epel-8"}},
"el9":{"family":"rhel","ids":["rhel","centos","rocky","almalinux","ol"],"versions":["9"],"relatives":{"eurolinux":["9"],"miraclelinux":["9"],"springdale":["9"],"circle":["9"]},"pretty":"Enterprise Linux 9","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\..*\\+debug$":["kernel-uek-debug-devel-{release}"],"uek\\.":["kernel-uek-devel-{kernel}"],"\\+debug$":["kernel-debug-devel-{release}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-9"],"build_enable":[["crb","codeready-builder-for-rhel-9-x86_64-rpms","codeready-builder-for-rhel-9-rhui-rpms","codeready-builder-for-rhel-9-x86_64-rhui-rpms","rhui-codeready-builder-for-rhel-9-x86_64-rhui-rpms","ol9_codeready_builder"]],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel9","streams":{"open":"{branch}-open","proprietary":"{branch}-dkms"},"fabricmanager":{"<=575":"nvidia-fabric-manager",">=580":"nvidia-fabricmanager"},"subnet_manager":"nvlsm","imex":{"550-575":"nvidia-imex-{branch}",">=580":"nvidia-imex"},"persistenced":"nvidia-persistenced","branches":[535,550,570,575,580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"precompiled":{"signed_by":"nvidia","ids":["rhel"],"streams":{"proprietary":"{branch}"},"branches":[535,550,570,575,580,590,595],"packages":{"compute":{"proprietary":["nvidia-driver-cuda"]},"full":{"proprietary":["nvidia-driver","nvidia-driver-cuda"]}}},"toolkits":["11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"elrepo":{"only_when_asked":true,"kernels":"^5\\.14\\.0-[\\d.]+\\.el9_\\d+\\.x86_64$","kernel_modules":"precompiled","signed_by":"elrepo","repository":"elrepo-9","with_repositories":["epel-9"],"fabricmanager":null,"detect":"nvidia-detect","branches":{"470":{"packages":{"compute":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]},"full":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]}}},"580":{"packages":{"compute":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]},"full":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]}}},"595":{"packages":{"compute":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]},"full":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]}}}}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-el9","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","podman-docker","runc"]}},"container_toolkit":"container-toolkit-rpm","node_exporter":{"package":"node-exporter","repository":"epel-9"}},
"fedora42":{"family":"fedora","ids":["fedora"],"versions":["42"],"pretty":"Fedora 42","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"\\+debug$":["kernel-debug-devel-{release}"]},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"hold_tools":[],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-fedora42","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["13.0","13.1"],"unverified":{"imex":true}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-fedora42","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","docker-engine-selinux","docker-selinux","moby-engine","podman-docker"]},"distro":{"packages":["moby-engine"],"engine":["moby-engine"],"version":"27.5.1"}},"container_toolkit":"container-toolkit-rpm","node_exporter":{"package":"node-exporter"}},
"fedora43":{"family":"fedora","ids":["fedora"],"versions":["43"],"pretty":"Fedora 43","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"\\+debug$":["kernel-debug-devel-{release}"]},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"hold_tools":[],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-fedora43","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590,595],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["13.1","13.2"],"unverified":{"branches":[580,590],"imex":true,"toolkits":["13.1"]}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-fedora43","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","docker-engine-selinux","docker-selinux","moby-engine","podman-docker"]},"distro":{"packages":["moby-engine"],"engine":["moby-engine"],"version":"28.3.0"}},"container_toolkit":"container-toolkit-rpm","node_exporter":{"package":"node-exporter"}},
"fedora44":{"family":"fedora","ids":["fedora"],"versions":["44"],"pretty":"Fedora 44","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"\\+debug$":["kernel-debug-devel-{release}"]},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"hold_tools":[],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-fedora44","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["13.3","13.4"],"unverified":{"branches":[580,595],"imex":true}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-fedora44","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","docker-engine-selinux","docker-selinux","moby-engine","podman-docker"]},"distro":{"packages":["moby-engine"],"engine":["moby-engine"]}},"container_toolkit":"container-toolkit-rpm","node_exporter":{"package":"node-exporter"}},
"ubuntu2004":{"family":"debian","ids":["ubuntu"],"versions":["20.04"],"pretty":"Ubuntu 20.04 (focal)","codename":"focal","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted"],"fabricmanager":"nvidia-fabricmanager-{branch}","persistenced":"nvidia-compute-utils-{branch}-server","branches":[470,535],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[470,535],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}}},"cuda_repo":{"repository":"cuda-ubuntu2004","fabricmanager":"nvidia-fabricmanager-{branch}","branches":[470,535,550,570,575],"packages":{"compute":{"open":["libnvidia-compute-{branch}","nvidia-utils-{branch}","nvidia-dkms-{branch}-open"],"proprietary":["libnvidia-compute-{branch}","nvidia-utils-{branch}","nvidia-dkms-{branch}"]},"full":{"open":["nvidia-driver-{branch}-open"],"proprietary":["nvidia-driver-{branch}"]}},"toolkits":["11.0","11.1","11.2","11.3","11.4","11.5","11.6","11.7","11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9"],"unverified":{"branches":[470,535,550,570,575]}},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"26.1.3"},"docker_ce":{"repository":"docker-ce-ubuntu2004","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit","node_exporter":{"package":"prometheus-node-exporter"}},
"ubuntu2204":{"family":"debian","ids":["ubuntu"],"versions":["22.04"],"pretty":"Ubuntu 22.04 (jammy)","codename":"jammy","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted","multiverse"],"fabricmanager":"nvidia-fabricmanager-{branch}","persistenced":"nvidia-compute-utils-{branch}-server","branches":[470,535,570,580,595,615],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[470,535,570,580,595,615],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}},"absent":{"proprietary":[">=615"]}},"cuda_repo":{"repository":"cuda-ubuntu2204","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":{"580":{"packages":{"compute":{"open":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580-open"],"proprietary":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580"]},"full":{"open":["nvidia-driver-580-open"],"proprietary":["nvidia-driver-580"]}}},"590":{},"595":{},"610":{},"615":{}},"packages":{"compute":{"open":["libnvidia-compute","nvidia-dkms-open"],"proprietary":["libnvidia-compute","nvidia-dkms"]},"full":{"open":["nvidia-open"],"proprietary":["cuda-drivers"]}},"toolkits":["11.7","11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"29.1.3"},"docker_ce":{"repository":"docker-ce-ubuntu2204","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit","node_exporter":{"package":"prometheus-node-exporter"}},
"ubuntu2404":{"family":"debian","ids":["ubuntu"],"versions":["24.04"],"pretty":"Ubuntu 24.04 (noble)","codename":"noble","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted","multiverse"],"persistenced":"nvidia-compute-utils-{branch}-server","fabricmanager":{">=535":"nvidia-fabricmanager-{branch}"},"branches":[470,535,570,580,595,615],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[470,535,570,580,595,615],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}},"absent":{"proprietary":[">=615"]}},"cuda_repo":{"repository":"cuda-ubuntu2404","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":{"580":{"packages":{"compute":{"open":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580-open"],"proprietary":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580"]},"full":{"open":["nvidia-driver-580-open"],"proprietary":["nvidia-driver-580"]}}},"590":{},"595":{},"610":{},"615":{}},"packages":{"compute":{"open":["libnvidia-compute","nvidia-dkms-open"],"proprietary":["libnvidia-compute","nvidia-dkms"]},"full":{"open":["nvidia-open"],"proprietary":["cuda-drivers"]}},"toolkits":["12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"29.1.3"},"docker_ce":{"repository":"docker-ce-ubuntu2404","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit","node_exporter":{"package":"prometheus-node-exporter"}},
"ubuntu2604":{"family":"debian","ids":["ubuntu"],"versions":["26.04"],"pretty":"Ubuntu 26.04 (resolute)","codename":"resolute","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted","multiverse"],"fabricmanager":"nvidia-fabricmanager-{branch}","persistenced":"nvidia-compute-utils-{branch}-server","branches":[580,595,615],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[580,595,615],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}},"absent":{"proprietary":[">=615"]}},"cuda_repo":{"repository":"cuda-ubuntu2604","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","subnet_manager":"nvlsm","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":{"595":{},"610":{},"615":{}},"packages":{"compute":{"open":["libnvidia-compute","nvidia-dkms-open"],"proprietary":["libnvidia-compute","nvidia-dkms"]},"full":{"open":["nvidia-open"],"proprietary":["cuda-drivers"]}},"toolkits":["13.3","13.4"]},"runfile":{"only_when_asked":true,"fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"29.1.3"},"docker_ce":{"repository":"docker-ce-ubuntu2604","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit","node_exporter":{"package":"prometheus-node-exporter"}}},
"FAMILIES":{
"families":{"amazon":{"ids":["amzn"],"like":["amzn"]},"rhel":{"ids":["rhel","centos","rocky","almalinux","ol","virtuozzo","eurolinux","scientific","cloudlinux","miraclelinux","asianux","circle","springdale","rhcos","navylinux","oracle","redhat","rhv","xenenterprise","msvsphere","vzlinux","clearos","xcp-ng"],"like":["rhel","centos"],"platform":"el","not_from":20,"else":"fedora"},"fedora":{"ids":["fedora","nobara","bazzite","ultramarine","fedora-asahi-remix","fedora-coreos","bluefin","aurora","qubes","risios"],"like":["fedora"],"platform":"f"},"debian":{"ids":["debian","ubuntu","raspbian","linuxmint","pop","kali","devuan","deepin","zorin","elementary","neon","parrot","mx","pureos","lmde","proxmox","tails","ubuntu-core","uos","knoppix","siduction","bunsenlabs","antix","sparky","trisquel","endless","astra","openkylin","gnoppix","q4os","vyos","armbian","pika","peppermint","bodhi","tuxedo","linspire","ubuntukylin"],"like":["debian","ubuntu"],"keys":["DEBIAN_CODENAME","UBUNTU_CODENAME"]},"suse":{"ids":["sles","sled","sles_sap","sle_hpc","sle-hpc","sle-micro","sle-micro-rancher","sl-micro","suse","opensuse","opensuse-leap","opensuse-tumbleweed","opensuse-microos","opensuse-leap-micro","opensuse-slowroll","opensuse-aeon","caasp"],"like":["suse","opensuse","sles"]}},
"blocked":["mandriva","mageia","arch","gentoo","slackware"],
"blocked_platforms":["platform:uel"],
"bases":{"buster":"debian 10 (buster)","bullseye":"debian 11 (bullseye)","chimaera":"debian 11 (bullseye)","daedalus":"debian 12 (bookworm)","excalibur":"debian 13 (trixie)","bionic":"ubuntu 18.04 (bionic)","bookworm":"debian 12 (bookworm)","trixie":"debian 13 (trixie)","focal":"ubuntu 20.04 (focal)","jammy":"ubuntu 22.04 (jammy)","noble":"ubuntu 24.04 (noble)","resolute":"ubuntu 26.04 (resolute)"},
"followers":["linuxmint","lmde","pop","elementary","zorin","neon","tuxedo","ubuntukylin","linuxlite","bodhi","peppermint"],
"image_variants":["silverblue","kinoite","sericea","onyx","sway-atomic","budgie-atomic","cosmic-atomic","coreos","iot"],
"realtime_kernels":"(^|[-+.])(rt\\d*|realtime)($|[-+.])"},
"DRIVER_PACKAGES":{
"packages":{"ubuntu":{"libraries":["libnvidia-compute(-\\d{3}(-server)?)?"],"modules":["(nvidia-dkms|nvidia-kernel-source)(-\\d{3}(-server)?)?(-open)?","linux-(modules|objects)-nvidia-\\d{3}(-server)?(-open)?-.+"],"parts":["nvidia-(driver|headless|headless-no-dkms|driver-lrm)-\\d{3}(-server)?(-open)?","nvidia-driver(-open)?","(nvidia-open|cuda-drivers)(-\\d{3})?","nvidia-(kernel-common|compute-utils|utils|persistenced)(-\\d{3}(-server)?)?","nvidia-firmware(-\\d{3}(-server)?)?(-\\d{3}\\..+)?","libnvidia-(cfg1|common|decode|encode|extra|fbc1|gl|gpucomp)(-\\d{3}(-server)?)?","xserver-xorg-video-nvidia(-\\d{3}(-server)?)?","linux-signatures-nvidia-.+"]},"debian":{"libraries":["libcuda1","libnvidia-ml1","libnvidia-(tesla|legacy)-[\\w.]+-(cuda1|ml1)"],"modules":["nvidia-(kernel|open-kernel|kernel-open|tesla-\\d+-kernel|legacy-\\w+-kernel)-(dkms|source)"],"parts":["nvidia-driver(-bin|-cuda|-full|-libs)?","nvidia-(alternative|legacy-check|smi|kernel-support|open-kernel-support|persistenced)","nvidia-(egl|opencl|vulkan)-(common|icd)|nvidia-vdpau-driver|nvidia-cuda-mps","libcudadebugger1|libnvcuvid1|libnvoptix1","libnvidia-(allocator1|api1|cfg1|compiler|eglcore|encode1|fbc1|glcore|glvkspirv|gpucomp|ngx1|nvvm4|nvvm70)","libnvidia-(opencl1|opticalflow1|pkcs11-openssl3|present|ptxjitcompiler1|rtcore|sandboxutils|vksc-core)","(libegl-nvidia0|libglx-nvidia0|libgles-nvidia[12]|libgl1-nvidia-glvnd-glx|libnvidia-egl-\\w+-driver)","firmware-nvidia(-[\\d.]+)?-gsp|nvidia-firmware","nvidia-(tesla|legacy)-[\\w.]+-(driver|alternative|smi|legacy-check|kernel-support)"]},"nvidia_rpm":{"libraries":["nvidia-driver-((branch-\\d+|latest-dkms)-)?(cuda-libs|NVML)","libnvidia-ml"],"modules":["kmod-nvidia-(open|latest)-dkms","kmod-nvidia-(branch-)?\\d.*","kmod-nvidia-latest","(akmod|dkms)-nvidia(-open)?","nvidia-kmod-open-dkms"],"parts":["nvidia-driver(-branch-\\d+|-latest-dkms|-latest)?(-cuda|-devel|-libs|-NvFBCOpenGL)?","(nvidia-open|cuda-drivers)(-\\d{3})?","nvidia-(kmod-common|kmod-headers|persistenced|xconfig|libXNVCtrl)(-(branch-\\d+|latest-dkms))?","nvidia-(persistenced|xconfig|libXNVCtrl)(-(branch-\\d+|latest-dkms))?","libnvidia-(cfg|fbc|gpucomp)|xorg-x11-nvidia|nvidia-driver-common"]},"rpmfusion":{"libraries":["xorg-x11-drv-nvidia(-\\d+xx)?-cuda-libs"],"modules":["(akmod|kmod)-nvidia-\\d+xx(-.+)?","kmod-nvidia-open","akmod-nvidia-open"],"parts":["xorg-x11-drv-nvidia(-\\d+xx)?(-(cuda|libs|power|xorg-libs|kmodsrc|devel))?"]},"elrepo":{"libraries":["nvidia-x11-drv(-\\d+xx)?-libs"],"modules":["kmod-nvidia(-open)?(-\\d+xx)?"],"parts":["nvidia-x11-drv(-\\d+xx)?(-(32bit|compute-libs|devel))?"]}},
"publishers":{"lambda":{"name":"Lambda","urls":["//archive\\.lambda(labs)?\\.(com|ai)/"],"revisions":{"ubuntu":"-0lambda"}},"graphics_ppa":{"name":"the graphics-drivers PPA","urls":["//ppa\\.launchpad(content)?\\.net/graphics-drivers/"],"revisions":{"ubuntu":"~gpu"}},"pop":{"name":"Pop!_OS","urls":["//apt[\\w.-]*\\.pop-os\\.org/(proprietary|release)","/system76-dev/"],"revisions":{"ubuntu":"pop\\d"}},"dgx":{"name":"DGX OS","urls":["//repo\\.download\\.nvidia\\.com/baseos/"]},"cuda_local":{"name":"a local repository of NVIDIA's","source":"cuda_repo","urls":["^file:/+var/(cuda-repo|nvidia-driver-local-repo)-"],"sections":"^(cuda-\\w+-[\\d-]+-local|nvidia-driver-local)"},"cuda_repo":{"name":"NVIDIA's CUDA repository","source":"cuda_repo","urls":["/compute/cuda/repos/"],"sections":"^(gpu-ready-)?cuda(-|$)|^nvidia-cuda$","revisions":{"ubuntu":"-(1|1ubuntu1|0ubuntu1)$"},"beside":{"debian":"nvidia-driver-cuda|nvidia-kernel-open-dkms"},"vendors":"^NVIDIA","names":"kmod-nvidia-(open|latest)-dkms|kmod-nvidia-(branch-)?\\d{3}[.\\d]*(-\\d.*)?|nvidia-driver-(branch-\\d+|latest-dkms).*"},"amazon":{"name":"Amazon's NVIDIA repository","sections":"^(amazonlinux|amzn2)-nvidia","vendors":"^Amazon"},"rpmfusion":{"name":"RPM Fusion","urls":["rpmfusion"],"sections":"^rpmfusion-","vendors":"RPM Fusion","names":"xorg-x11-drv-nvidia.*"},"negativo17":{"name":"negativo17","urls":["//negativo17\\.org/"],"sections":"^(fedora|epel)-(nvidia|multimedia)","vendors":"negativo17|Simone Caronni","names":"(akmod|dkms)-nvidia|nvidia-kmod-open-dkms"},"elrepo":{"name":"ELRepo","source":"elrepo","urls":["/elrepo/"],"sections":"^elrepo","vendors":"elrepo","names":"nvidia-x11-drv.*"},"almalinux":{"name":"AlmaLinux","sections":"^almalinux-nvidia","vendors":"^AlmaLinux"},"distro_desktop":{"name":"the desktop series of Ubuntu's archive","archive":true,"revisions":{"ubuntu":"-0ubuntu\\d"},"only":{"ubuntu":"(?!.*-\\d{3}-server).*"}},"distro":{"name":"the distribution's archive","source":"distro","archive":true,"revisions":{"ubuntu":"-0ubuntu\\d","debian":"~deb\\d+u\\d+$|~bpo"},"beside":{"debian":"nvidia-alternative"}}}},
"MANAGED_HOSTS":{
"wsl2":{"paths":["/dev/dxg"],"texts":{"/proc/sys/kernel/osrelease":"microsoft-standard-WSL2"},"refuse":"always","message":"this is WSL2, where Windows has the driver, and a Linux driver hides its libraries","remedy":"update the driver in Windows, and take the host out of the inventory of gpu-ready"},
"vgpu_manager":{"paths":["/sys/module/nvidia_vgpu_vfio","/usr/bin/nvidia-vgpud","/usr/bin/nvidia-vgpu-mgr"],"refuse":"always","message":"NVIDIA's vGPU manager is installed, so this host gives its GPUs to virtual machines and has no CUDA of its own","remedy":"take the host out of the inventory of gpu-ready, and run gpu-ready on its virtual machines"},
"gpu_operator":{"paths":["/run/nvidia/driver/usr/bin/nvidia-smi","/run/nvidia/nvidia-driver.pid"],"refuse":"always","message":"a driver container of NVIDIA's GPU Operator has loaded the driver of this node (/run/nvidia/driver)","remedy":"label the node nvidia.com/gpu.deploy.driver=false and reboot it, so that the host may have a driver; or take it out of the inventory of gpu-ready"},
"lxc":{"texts":{"/run/systemd/container":"^lxc","/proc/1/environ":"(^|\\x00)container=lxc"},"refuse":"change","message":"this is an LXC container, whose kernel module belongs to the machine that it runs on","remedy":"install libraries of exactly the version of that module in the container (its installer has the option --no-kernel-modules), or upgrade the driver of the machine first; then set nvidia_driver_source to none"},
"eks":{"paths":["/etc/eks/nvidia-kmod-load.sh"],"refuse":"change","message":"this is an image of Amazon EKS, which chooses its kernel module at every boot (/etc/eks/nvidia-kmod-load.sh)","remedy":"change the AMI of the node group, or set nvidia_driver_source to none"},
"ecs":{"paths":["/var/lib/dkms-archive"],"refuse":"change","message":"this image chooses its kernel module at every boot from /var/lib/dkms-archive, as those of Amazon ECS do","remedy":"change the AMI of the cluster, or set nvidia_driver_source to none"},
"aks":{"paths":["/usr/bin/lib64/libnvidia-ml.so.1"],"refuse":"always","message":"this is a GPU node of Azure Kubernetes Service (/usr/bin/lib64), which its node pool builds","remedy":"change the image of the node pool, and take the host out of the inventory of gpu-ready"},
"bright":{"paths":["/cm/local/apps/cuda-driver"],"refuse":"change","message":"this is a node of Base Command Manager (/cm/local/apps/cuda-driver), which boots an image of its head node","remedy":"change the software image on the head node, or set nvidia_driver_source to none"},
"dgx":{"paths":["/etc/dgx-release"],"refuse":"change","may_replace":true,"message":"this is DGX OS (/etc/dgx-release), whose release contains the driver","remedy":"upgrade DGX OS, set nvidia_driver_source to none to keep its driver, or set nvidia_driver_replace_foreign to true to replace it"},
"pop":{"paths":["/etc/apt/preferences.d/system76-apt-preferences"],"refuse":"change","may_replace":true,"message":"Pop!_OS prefers its own driver to every other one (/etc/apt/preferences.d/system76-apt-preferences)","remedy":"install its driver (system76-driver-nvidia), or set nvidia_driver_replace_foreign to true after removing that pin"},
"lambda":{"paths":["/etc/apt/preferences.d/lambda"],"refuse":"change","may_replace":true,"message":"Lambda's archive outranks every other one on this host (/etc/apt/preferences.d/lambda)","remedy":"upgrade the driver from Lambda's archive, or set nvidia_driver_replace_foreign to true after removing that pin"},
"kernel_outside":{"refuse":"change","message":"the driver is loaded and /lib/modules has nothing of the running kernel, so both are of the machine that starts this system (a container, a microVM)","remedy":"upgrade the driver where the kernel comes from, with libraries of the same version here; if the package of the running kernel was removed, reboot first"}},
"MONITOR":"249f527a804513c8a932864e203f611a5d0f27d457d9943fb2ce61d91cadd0ee",
"DCGM":{
"packages":{"datacenter-gpu-manager-4-core":"4.5.3-*","datacenter-gpu-manager-exporter":"4.8.2-*"},
"confirmed":["cuda-ubuntu2204","cuda-ubuntu2404"],
"files":{"/etc/dcgm-exporter/gpu-ready-counters.csv":"c7a4353af9597a1d","/etc/systemd/system/nvidia-dcgm-exporter.service.d/gpu-ready.conf":"b01909b967f0b086"}},
"REPOSITORIES":{
"cuda-ubuntu2004":{"url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64/","suites":"/","components":"","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64/3bf863cc.pub","fingerprint":"EB693B3035CD5710E231E123A4B469963BF863CC","pin":{"package":"*","pin":"release l=NVIDIA CUDA","priority":600}},
"cuda-ubuntu2204":{"url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/","suites":"/","components":"","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/3bf863cc.pub","fingerprint":"EB693B3035CD5710E231E123A4B469963BF863CC","pin":{"package":"*","pin":"release l=NVIDIA CUDA","priority":600}},
"cuda-ubuntu2404":{"url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/","suites":"/","components":"","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/3bf863cc.pub","fingerprint":"EB693B3035CD5710E231E123A4B469963BF863CC","pin":{"package":"*","pin":"release l=NVIDIA CUDA","priority":600}},
"cuda-ubuntu2604":{"url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2604/x86_64/","suites":"/","components":"","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2604/x86_64/60DF8A40.pub","fingerprint":"14BAFBC7562AD710CA04E69905FBB6DA60DF8A40","pin":{"package":"*","pin":"release l=NVIDIA CUDA","priority":600}},
"cuda-debian12":{"url":"https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/","suites":"/","components":"","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/3bf863cc.pub","fingerprint":"EB693B3035CD5710E231E123A4B469963BF863CC","pin":{"package":"*","pin":"release l=NVIDIA CUDA","priority":600}},
"cuda-debian13":{"url":"https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/","suites":"/","components":"","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/8793F200.pub","fingerprint":"02182E60104FCDC26EAE1B8597A5D4CB8793F200","pin":{"package":"*","pin":"release l=NVIDIA CUDA","priority":600}},
"cuda-rhel7":{"kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel7/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel7/x86_64/D42D0685.pub","fingerprint":"610C7B14E068A878070DA4E99CD0A493D42D0685","gpgcheck":true,"repo_gpgcheck":false},
"cuda-rhel8":{"kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel8/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel8/x86_64/D42D0685.pub","fingerprint":"610C7B14E068A878070DA4E99CD0A493D42D0685","gpgcheck":true,"repo_gpgcheck":false,"modular":true},
"cuda-rhel9":{"kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/D42D0685.pub","fingerprint":"610C7B14E068A878070DA4E99CD0A493D42D0685","gpgcheck":true,"repo_gpgcheck":false,"modular":true},
"cuda-rhel10":{"key_sha256":"afbea87d3b979b3788ef34223aeeb323ade481128e2c133723ae99b8a51368bb","kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel10/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/rhel10/x86_64/CDF6BA43.pub","fingerprint":null,"gpgcheck":true,"repo_gpgcheck":false},
"cuda-fedora42":{"kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/fedora42/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/fedora42/x86_64/D42D0685.pub","fingerprint":"610C7B14E068A878070DA4E99CD0A493D42D0685","gpgcheck":true,"repo_gpgcheck":false},
"cuda-fedora43":{"kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/fedora43/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/fedora43/x86_64/1940C73E.pub","fingerprint":null,"gpgcheck":true,"repo_gpgcheck":false},
"cuda-fedora44":{"kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/fedora44/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/fedora44/x86_64/73CD9B30.pub","fingerprint":"129994480EC63D2789BC98E490DFED2F73CD9B30","gpgcheck":true,"repo_gpgcheck":false},
"cuda-amzn2023":{"kind":"rpm","url":"https://developer.download.nvidia.com/compute/cuda/repos/amzn2023/x86_64","key_url":"https://developer.download.nvidia.com/compute/cuda/repos/amzn2023/x86_64/D42D0685.pub","fingerprint":"610C7B14E068A878070DA4E99CD0A493D42D0685","gpgcheck":true,"repo_gpgcheck":false,"modular":true},
"epel-7":{"kind":"rpm","url":"https://archives.fedoraproject.org/pub/archive/epel/7/x86_64","key_url":"https://archives.fedoraproject.org/pub/archive/epel/RPM-GPG-KEY-EPEL-7","fingerprint":"91E97D7C4A5E96F17F3E888F6A2FAEA2352C64E5","gpgcheck":true,"repo_gpgcheck":false},
"epel-8":{"kind":"rpm","url":"https://dl.fedoraproject.org/pub/epel/8/Everything/x86_64","also":["https://mirrors.fedoraproject.org/metalink?repo=epel-8&","https://mirrors.fedoraproject.org/mirrorlist?repo=epel-8&"],"key_url":"https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-8","fingerprint":"94E279EB8D8F25B21810ADF121EA45AB2F86D6A1","gpgcheck":true,"repo_gpgcheck":false},
"epel-9":{"kind":"rpm","url":"https://dl.fedoraproject.org/pub/epel/9/Everything/x86_64","also":["https://mirrors.fedoraproject.org/metalink?repo=epel-9&","https://mirrors.fedoraproject.org/mirrorlist?repo=epel-9&"],"key_url":"https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-9","fingerprint":"FF8AD1344597106ECE813B918A3872BF3228467C","gpgcheck":true,"repo_gpgcheck":false},
"epel-10":{"kind":"rpm","url":"https://dl.fedoraproject.org/pub/epel/10/Everything/x86_64","also":["https://mirrors.fedoraproject.org/metalink?repo=epel-10&","https://mirrors.fedoraproject.org/mirrorlist?repo=epel-10&","https://mirrors.fedoraproject.org/metalink?repo=epel-z-10."],"key_url":"https://dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-10","fingerprint":"7D8D15CBFC4E62688591FB2633D98517E37ED158","gpgcheck":true,"repo_gpgcheck":false},
"elrepo-8":{"kind":"rpm","url":"https://elrepo.org/linux/elrepo/el8/x86_64","key_url":"https://www.elrepo.org/RPM-GPG-KEY-v2-elrepo.org","fingerprint":"B8A755874DA240C9DAC4E71551600989EAA31D4A","gpgcheck":true,"repo_gpgcheck":false},
"elrepo-9":{"kind":"rpm","url":"https://elrepo.org/linux/elrepo/el9/x86_64","key_url":"https://www.elrepo.org/RPM-GPG-KEY-v2-elrepo.org","fingerprint":"B8A755874DA240C9DAC4E71551600989EAA31D4A","gpgcheck":true,"repo_gpgcheck":false},
"elrepo-10":{"kind":"rpm","url":"https://elrepo.org/linux/elrepo/el10/x86_64","key_url":"https://www.elrepo.org/RPM-GPG-KEY-v2-elrepo.org","fingerprint":"B8A755874DA240C9DAC4E71551600989EAA31D4A","gpgcheck":true,"repo_gpgcheck":false},
"container-toolkit":{"url":"https://nvidia.github.io/libnvidia-container/stable/deb/amd64","suites":"/","components":"","key_url":"https://nvidia.github.io/libnvidia-container/gpgkey","fingerprint":"C95B321B61E88C1809C4F759DDCAE044F796ECB0"},
"container-toolkit-rpm":{"kind":"rpm","url":"https://nvidia.github.io/libnvidia-container/stable/rpm/x86_64","key_url":"https://nvidia.github.io/libnvidia-container/gpgkey","fingerprint":"C95B321B61E88C1809C4F759DDCAE044F796ECB0","gpgcheck":false,"repo_gpgcheck":true},
"docker-ce-debian12":{"url":"https://download.docker.com/linux/debian","suites":"bookworm","components":"stable","key_url":"https://download.docker.com/linux/debian/gpg","fingerprint":"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
"docker-ce-debian13":{"url":"https://download.docker.com/linux/debian","suites":"trixie","components":"stable","key_url":"https://download.docker.com/linux/debian/gpg","fingerprint":"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
"docker-ce-ubuntu2004":{"url":"https://download.docker.com/linux/ubuntu","suites":"focal","components":"stable","key_url":"https://download.docker.com/linux/ubuntu/gpg","fingerprint":"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
"docker-ce-ubuntu2204":{"url":"https://download.docker.com/linux/ubuntu","suites":"jammy","components":"stable","key_url":"https://download.docker.com/linux/ubuntu/gpg","fingerprint":"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
"docker-ce-ubuntu2404":{"url":"https://download.docker.com/linux/ubuntu","suites":"noble","components":"stable","key_url":"https://download.docker.com/linux/ubuntu/gpg","fingerprint":"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
"docker-ce-ubuntu2604":{"url":"https://download.docker.com/linux/ubuntu","suites":"resolute","components":"stable","key_url":"https://download.docker.com/linux/ubuntu/gpg","fingerprint":"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
"docker-ce-el7":{"kind":"rpm","url":"https://download.docker.com/linux/centos/7/x86_64/stable","key_url":"https://download.docker.com/linux/centos/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-el8":{"kind":"rpm","url":"https://download.docker.com/linux/rhel/8/x86_64/stable","key_url":"https://download.docker.com/linux/rhel/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-el9":{"kind":"rpm","url":"https://download.docker.com/linux/centos/9/x86_64/stable","key_url":"https://download.docker.com/linux/centos/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-el10":{"kind":"rpm","url":"https://download.docker.com/linux/centos/10/x86_64/stable","key_url":"https://download.docker.com/linux/centos/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-fedora42":{"kind":"rpm","url":"https://download.docker.com/linux/fedora/42/x86_64/stable","key_url":"https://download.docker.com/linux/fedora/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-fedora43":{"kind":"rpm","url":"https://download.docker.com/linux/fedora/43/x86_64/stable","key_url":"https://download.docker.com/linux/fedora/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-fedora44":{"kind":"rpm","url":"https://download.docker.com/linux/fedora/44/x86_64/stable","key_url":"https://download.docker.com/linux/fedora/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos7-os":{"kind":"rpm","url":"https://vault.centos.org/7.9.2009/os/x86_64","key_url":"https://vault.centos.org/RPM-GPG-KEY-CentOS-7","fingerprint":"6341AB2753D78A78A7C27BB124C6A8A7F4A80EB5","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos7-updates":{"kind":"rpm","url":"https://vault.centos.org/7.9.2009/updates/x86_64","key_url":"https://vault.centos.org/RPM-GPG-KEY-CentOS-7","fingerprint":"6341AB2753D78A78A7C27BB124C6A8A7F4A80EB5","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos7-extras":{"kind":"rpm","url":"https://vault.centos.org/7.9.2009/extras/x86_64","key_url":"https://vault.centos.org/RPM-GPG-KEY-CentOS-7","fingerprint":"6341AB2753D78A78A7C27BB124C6A8A7F4A80EB5","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos8":{"kind":"rpm","url":"https://vault.centos.org/8.5.2111/BaseOS/x86_64/os","key_url":"https://www.centos.org/keys/RPM-GPG-KEY-CentOS-Official","fingerprint":"99DB70FAE1D7CE227FB6488205B555B38483C65D","gpgcheck":true,"repo_gpgcheck":false}},
"NVSWITCHES":{
"1ac1":"V100 NVSwitch",
"1ac2":"V100 NVSwitch",
"1af1":"A100 NVSwitch",
"22a3":"H100 NVSwitch"},
"FIRST_OF_TURING":"1e02"}''')


def _by_number(table: Dict[str, Any]) -> Dict[int, Any]:
    return {int(number): entry for number, entry in table.items()}


_DATA["BRANCHES"] = _by_number(_DATA["BRANCHES"])
_DATA["CUDNN_PACKAGES"] = _by_number(_DATA["CUDNN_PACKAGES"])
for _distro in _DATA["DISTROS"].values():
    for _source in _distro["driver_sources"].values():
        if isinstance(_source.get("branches"), dict):
            _source["branches"] = _by_number(_source["branches"])

DATE: str = _DATA['DATE']
DEFAULT_BRANCH: int = _DATA['DEFAULT_BRANCH']
NEWEST_BRANCH: int = _DATA['NEWEST_BRANCH']
BRANCHES: Dict[Any, Any] = _DATA['BRANCHES']
TOOLKITS: Dict[Any, Any] = _DATA['TOOLKITS']
CUDA_INSTALLER: Dict[Any, Any] = _DATA['CUDA_INSTALLER']
CUDA_INSTALLERS: Dict[Any, Any] = _DATA['CUDA_INSTALLERS']
CUDNN_PATH: str = _DATA['CUDNN_PATH']
CUDNNS: Dict[Any, Any] = _DATA['CUDNNS']
CUDNN_PACKAGES: Dict[Any, Any] = _DATA['CUDNN_PACKAGES']
DISTROS: Dict[Any, Any] = _DATA['DISTROS']
FAMILIES: Dict[Any, Any] = _DATA['FAMILIES']
DRIVER_PACKAGES: Dict[Any, Any] = _DATA['DRIVER_PACKAGES']
MANAGED_HOSTS: Dict[Any, Any] = _DATA['MANAGED_HOSTS']
MONITOR: str = _DATA['MONITOR']
DCGM: Dict[Any, Any] = _DATA['DCGM']
REPOSITORIES: Dict[Any, Any] = _DATA['REPOSITORIES']
NVSWITCHES: Dict[Any, Any] = _DATA['NVSWITCHES']
FIRST_OF_TURING: str = _DATA['FIRST_OF_TURING']
GPUS = r'''
=older||71|proprietary||
20
8
1
3
1
73
60
1
2
4d
1
1
1
=older||96|proprietary||
110
1
1
1
5d
1
1
1
1
1
1
1
1
1
1
2
1
4
1
1
2
3
2
1
1
14
50
10
1
1
1
4d
1
2
5
1
2
25
1
1
4
2
1
3
=older||173|proprietary||
fa
1
1
1
1
203
1
6
1
8
1
2
6
1
1
4
1
1
1
1
1
1
1
1
2
1
1
1
3
1
1
1
1
4
7
2
1
1
1
3
1
4
2
=older||304|proprietary||
40
1
1
1
1
1
1
1
1
6
42
1
1
1
2
3
1
4
23
1
1
1
5
1
3
1
1
23
1
1
1
1
1
2
1
47
1
1
1
1
1
1
1
1
1
1
2
1
1
1
11
1
1
1
1
1
1
1
1
1
1
66
1
1
1
3
1
1
2
1
1
1
1
1
32
1
3
3
9
1
1e
1
1
2
1
2
49
1
1
1
1
1
2
1
1
1
1
1
1
1
1
41
1
1
1
1
a7
5
1
1
1
1
1
2
1
1
3
2
32
1
1
3
1
15b
2
7
1
3
2a2
1
1
1
2
=tesla||340|proprietary||
191 GeForce 8800 GTX
2 GeForce 8800 GTS
1 GeForce 8800 Ultra
3 Tesla C870
6 Quadro FX 5600
1 Quadro FX 4600
262 GeForce 8600 GTS
1 GeForce 8600 GT
1 GeForce 8600 GT
1 GeForce 8600 GS
1 GeForce 8400 GS
1 GeForce 9500M GS
1 GeForce 8300 GS
1 GeForce 8600M GT
1 GeForce 9650M GS
1 GeForce 8700M GT
1 Quadro FX 370
1 Quadro NVS 320M
1 Quadro FX 570M
1 Quadro FX 1600M
1 Quadro FX 570
1 Quadro FX 1700
1 GeForce GT 330
10 GeForce 8400 SE
1 GeForce 8500 GT
1 GeForce 8400 GS
1 GeForce 8300 GS
1 GeForce 8400 GS
1 GeForce 8600M GS
1 GeForce 8400M GT
1 GeForce 8400M GS
1 GeForce 8400M G
1 Quadro NVS 140M
1 Quadro NVS 130M
1 Quadro NVS 135M
1 GeForce 9400 GT
1 Quadro FX 360M
1 GeForce 9300M G
1 Quadro NVS 290
1b1 GeForce GTX 295
1 GeForce GTX 280
1 GeForce GTX 260
1 GeForce GTX 285
3 GeForce GTX 275
1 Tesla C1060
3 GeForce GTX 260
1 GeForce GTX 295
2 Quadroplex 2200 D2
b Quadroplex 2200 S4
1 Quadro CX
4 Quadro FX 5800
1 Quadro FX 4800
1 Quadro FX 3800
1 GeForce 8800 GTS 512
1 GeForce 9800 GT
1 GeForce 8800 GT
1 GeForce GT 230
1 GeForce 9800 GX2
1 GeForce 9800 GT
1 GeForce 8800 GS
1 GeForce GTS 240
1 GeForce 9800M GTX
1 GeForce 8800M GTS
1 GeForce GTX 280M
1 GeForce 9800M GT
1 GeForce 8800M GTX
1 GeForce 8800 GS
2 GeForce GTX 285M
1 GeForce 9600 GSO
1 GeForce 8800 GT
1 GeForce 9800 GTX/9800 GTX+
1 GeForce 9800 GTX+
1 GeForce 9800 GT
1 GeForce GTS 250
2 GeForce 9800M GTX
1 GeForce GTX 260M
1 Quadro FX 4700 X2
1 Quadro FX 3700
1 Quadro VX 200
1 Quadro FX 3600M
1 Quadro FX 2800M
1 Quadro FX 3700M
1 Quadro FX 3800M
2 GeForce GT 230
1 GeForce 9600 GT
1 GeForce 9600 GS
2 GeForce 9600 GSO 512
1 GeForce GT 130
1 GeForce GT 140
1 GeForce 9800M GTS
2 GeForce 9700M GTS
1 GeForce 9800M GS
1 GeForce 9800M GTS
1 GeForce 9600 GT
1 GeForce 9600 GT
2 GeForce 9700 S
1 GeForce GTS 160M
1 GeForce GTS 150M
3 GeForce 9600 GSO
2 GeForce 9600 GT
1 Quadro FX 1800
2 Quadro FX 2700M
6 GeForce 9500 GT
1 GeForce 9400 GT
2 GeForce 9500 GT
1 GeForce 9500 GS
1 GeForce 9500 GS
1 GeForce GT 120
1 GeForce 9600M GT
1 GeForce 9600M GS
1 GeForce 9600M GT
1 GeForce 9700M GT
1 GeForce 9500M G
1 GeForce 9650M GT
5 GeForce G 110M
1 GeForce GT 130M
1 GeForce GT 120M
1 GeForce GT 220M
1 GeForce GT 120
1 GeForce GT 120
2 Quadro FX 380
1 Quadro FX 580
1 Quadro FX 1700M
1 GeForce 9400 GT
1 Quadro FX 770M
84 GeForce 9300 GE
1 GeForce 9300 GS
1 GeForce 8400
1 GeForce 8400 SE
1 GeForce 8400 GS
1 GeForce 9300M GS
1 GeForce G100
1 GeForce 9300 SE
1 GeForce 9200M GS
1 GeForce 9300M GS
1 Quadro NVS 150M
1 Quadro NVS 160M
1 GeForce G 105M
3 GeForce G 103M
2 GeForce G105M
7 Quadro NVS 420
1 Quadro FX 370 LP
1 Quadro NVS 450
1 Quadro FX 370M
2 Quadro NVS 295
2 HICx16 + Graphics
141 GeForce 8200M
4 GeForce 9100M G
1 GeForce 8200M G
1 GeForce 9200
1 GeForce 9100
1 GeForce 8300
1 GeForce 8200
1 nForce 730a
1 GeForce 9200
1 nForce 980a/780a SLI
1 nForce 750a SLI
2 GeForce 8100 / nForce 720a
11 GeForce 9400
1 GeForce 9400
1 GeForce 9400M G
1 GeForce 9400M
1 GeForce 9300
1 ION
1 GeForce 9400M G
1 GeForce 9400
1 nForce 760i SLI
1 GeForce 9400
1 GeForce 9400
2 GeForce 9300 / nForce 730i
1 GeForce 9200
1 GeForce 9100M G
1 GeForce 8200M G
1 GeForce 9400M
1 GeForce 9200
1 GeForce G102M
1 GeForce G102M
1 ION
2 ION
4 GeForce 9400
3 ION
1 ION LE
1 ION LE
21 GeForce 320M
2 GeForce 320M
1 GeForce 320M
1 GeForce 320M
1 GeForce 320M
17b GeForce GT 220
2 GeForce 315
1 GeForce 210
3 GeForce 405
1 GeForce 405
1 GeForce GT 230M
1 GeForce GT 330M
1 GeForce GT 230M
1 GeForce GT 330M
1 NVS 5100M
1 GeForce GT 320M
5 GeForce GT 415
2 GeForce GT 240M
1 GeForce GT 325M
3 Quadro 400
4 Quadro FX 880M
24 GeForce G210
2 GeForce 205
1 GeForce 310
1 Second Generation ION
1 GeForce 210
1 GeForce 310
1 GeForce 315
1 GeForce G105M
1 GeForce G105M
1 NVS 2100M
2 NVS 3100M
2 GeForce 305M
1 Second Generation ION
1 GeForce 310M
1 GeForce 305M
1 GeForce 310M
1 GeForce 305M
1 GeForce G210M
1 GeForce 310M
1 Second Generation ION
2 Quadro FX 380 LP
2 GeForce 315M
2 Quadro FX 380M
224 GeForce GT 330
2 GeForce GT 320
1 GeForce GT 240
1 GeForce GT 340
1 GeForce GT 220
2 GeForce GT 330
1 GeForce GTS 260M
1 GeForce GTS 250M
3 GeForce GT 220
3 GeForce GT 335M
1 GeForce GTS 350M
1 GeForce GTS 360M
b Quadro FX 1800M
404 GeForce 9300 GS
3 GeForce 8400GS
2 GeForce 405
13 NVS 300
=fermi||390|proprietary||
6c0 GeForce GTX 480
4 GeForce GTX 465
6 GeForce GTX 480M
3 GeForce GTX 470
4 Tesla C2050 / C2070
1 Tesla M2070
6 Quadro 6000
1 Quadro 5000
1 Quadro 5000M
2 Quadro 6000
1 Quadro 4000
1 Tesla T20 Processor
1 Tesla M2070-Q
6e1 GeForce GT 440
4 GeForce GTS 450
1 GeForce GTS 450
1 GeForce GTS 450
7 GeForce GT 555M
1 GeForce GT 555M
3 GeForce GTX 460M
1 GeForce GT 445M
1 GeForce GT 435M
3 GeForce GT 550M
2 Quadro 2000
2 Quadro 2000M
6 GeForce GT 440
1 GeForce GT 430
1 GeForce GT 420
1 GeForce GT 635M
1 GeForce GT 520
1 GeForce GT 530
2 GeForce GT 610
1 GeForce GT 620M
1 GeForce GT 630M
1 GeForce 610M
1 GeForce GT 555M
1 GeForce GT 525M
1 GeForce GT 520M
1 GeForce GT 415M
1 NVS 5400M
1 GeForce GT 425M
1 GeForce GT 420M
1 GeForce GT 435M
1 GeForce GT 420M
1 GeForce GT 540M
1 GeForce GT 525M
1 GeForce GT 550M
1 GeForce GT 520M
1 Quadro 600
1 Quadro 500M
1 Quadro 1000M
2 NVS 5200M
26 GeForce GTX 460
1 GeForce GTX 460 SE
1 GeForce GTX 460
c GeForce GTX 470M
1 GeForce GTX 485M
9 Quadro 3000M
1 Quadro 4000M
c5 GeForce GT 630
1 GeForce GT 620
1 GeForce GT 730
1 GeForce GT 610
13d GeForce GT 520
2 GeForce 510
6 GeForce 605
1 GeForce GT 620
1 GeForce GT 610
1 GeForce GT 625 (OEM)
1 GeForce GT 705
4 GeForce GT 520M
1 GeForce GT 520MX
1 GeForce GT 520M
2 GeForce 410M
1 GeForce 410M
1 NVS 4200M
1 NVS 4200M
1 GeForce 610M
1 GeForce 610M
1 GeForce 610M
1 GeForce 705M
21 NVS 315
1 NVS 310
3 GeForce GTX 580
1 GeForce GTX 570
1 GeForce GTX 560 Ti
2 GeForce GTX 560
2 GeForce GTX 570
1 GeForce GTX 560 Ti
1 GeForce GTX 590
1 GeForce GTX 580
2 GeForce GTX 580
6 Tesla M2090
3 Tesla M2075
2 Tesla C2075
4 Quadro 5010M
1 Quadro 7000
a5 GeForce 820M
c0 GeForce GTX 560 Ti
1 GeForce GTX 560
2 GeForce GTX 460 SE v2
2 GeForce GTX 460 v2
1 GeForce GTX 555
1 GeForce GT 645
1 GeForce GTX 560 SE
8 GeForce GTX 570M
1 GeForce GTX 580M
1 GeForce GTX 675M
1 GeForce GTX 670M
2e GeForce GT 545
2 GeForce GT 545
1 GeForce GTX 550 Ti
1 GeForce GTS 450
1 GeForce GT 550M
1 GeForce GT 555M
1 GeForce GT 555M
1 GeForce GTS 450
2 GeForce GT 640
2 GeForce GT 555M
4 GeForce GTX 560M
=fermi||390|proprietary||unverified
104d GeForce GT 710
41 Tesla C2090
174 GeForce GTX 560 Ti OEM
=kepler||367|proprietary|3.0|
fef GRID K340
3 GRID K1
1cd GRID K2
=kepler||367|proprietary|3.0|unverified
fe5 GeForce K340 USM
1 GRID K1 NVS USM
1 GRID K100 vGPU
e GRID K1 Tesla USM
2 GRID K140Q vGPU
194 GRID K2 GeForce USM
1 GRID K2 NVS USM
1 GRID K200 vGPU
22 GRID IceCube
1 GRID K240Q / K260Q vGPU
1 GRID K2 Tesla USM
=kepler||470|proprietary|3.0|
fc0 GeForce GT 640 OEM
1 GeForce GT 640
1 GeForce GT 630 OEM
4 GeForce GTX 650
2 GeForce GT 740
1 GeForce GT 730
4 GeForce GT 755M
1 GeForce GT 640M LE
3 GeForce GT 650M
1 GeForce GT 640M
1 GeForce GT 640M LE
1 GeForce GTX 660M
1 GeForce GT 650M
3 GeForce GT 640M
1 GeForce GT 645M
6 GeForce GT 740M
1 GeForce GTX 660M
1 GeForce GT 730M
1 GeForce GT 745M
1 GeForce GT 745M
1 GeForce GT 750M
5 GeForce GT 750M
1 GeForce GT 755M
2 GeForce 710A
1 GeForce 820M
1 GeForce 810M
5 Quadro K420
3 Quadro K1100M
2 Quadro K500M
1 Quadro K2000D
1 Quadro K600
1 Quadro K2000M
1 Quadro K1000M
1 NVS 510
1 Quadro K2000
1 Quadro 410
181 GeForce GTX 680
3 GeForce GTX 660 Ti
1 GeForce GTX 770
1 GeForce GTX 660
2 GeForce GTX 760
1 GeForce GTX 690
1 GeForce GTX 670
1 GRID K520
4 GeForce GTX 760 (192-bit)
1 Tesla K10
4 GeForce GTX 760 Ti OEM
1 Tesla K8
1 GeForce GTX 660
3 GeForce GTX 880M
1 GeForce GTX 870M
1 GeForce GTX 860M
3 GeForce GTX 775M
1 GeForce GTX 780M
1 GeForce GTX 780M
1 GeForce GTX 680M
1 GeForce GTX 670MX
1 GeForce GTX 675MX
1 GeForce GTX 680MX
4 GeForce GTX 675MX
d Quadro K4200
2 Quadro K3100M
1 Quadro K4100M
1 Quadro K5100M
2 Quadro K5000
2 Quadro K5000M
1 Quadro K4000M
1 Quadro K3000M
2 GeForce GTX 660
2 GeForce GTX 650 Ti BOOST
1 GeForce GTX 650 Ti
1 GeForce GTX 645
1 GeForce GT 740
1 GeForce GTX 650 Ti
2 GeForce GTX 650
3 GeForce GT 740
15 GeForce GTX 770M
1 GeForce GTX 765M
1 GeForce GTX 765M
1 GeForce GTX 760M
17 Quadro K4000
2 Quadro K2100M
=kepler||470|proprietary|3.0|unverified
fc5 GeForce GT 1030
7 GeForce GT 720
25 NVS 1000
191 GeForce GTX 760 Ti
4 GeForce GTX 660 Ti
b GeForce GTX 760 Rev. 2
17 Quadro K5100M
1 GeForce GTX 870M
12 Quadro 4100
c GeForce GTX 750 Ti
=kepler||470|proprietary|3.5|
1001 GeForce GTX TITAN Z
3 GeForce GTX 780
1 GeForce GTX TITAN
2 GeForce GTX 780
1 GeForce GTX 780 Ti
2 GeForce GTX 780 Ti
2 GeForce GTX TITAN Black
15 Tesla K20Xm
1 Tesla K20c
1 Tesla K40m
1 Tesla K40c
2 Tesla K20s
1 Tesla K40st
1 Tesla K20m
1 Tesla K40s
1 Tesla K40t
10 Quadro K6000
2 Quadro K5200
244 GeForce GT 635
1 GeForce GT 710
1 GeForce GT 640
2 GeForce GT 630
2 GeForce GT 720
1 GeForce GT 730
1 GeForce GT 720
1 GeForce GT 710
2 GeForce GT 710
5 GeForce GT 730M
1 GeForce GT 735M
1 GeForce GT 740M
1 GeForce GT 730M
2 GeForce 710M
1 GeForce 825M
2 GeForce GT 720M
1 GeForce 920M
1 GeForce 910M
1f Quadro K610M
1 Quadro K510M
=kepler||470|proprietary|3.5|unverified
1003 GeForce GTX Titan LE
1b Tesla K20X
1 Tesla K20
1 Tesla K20X
e Tesla K40d
1 Tesla Stella Solo
10 Tesla Stella SXM
255 GeForce GT 740M
=kepler||470|proprietary|3.7|
102d Tesla K80
=maxwell||580|proprietary|5.0|
1340 GeForce 830M
1 GeForce 840M
3 GeForce 845M
2 GeForce 930M
1 GeForce 940M
1 GeForce 945M
1 GeForce 930M
2 GeForce 940MX
2 GeForce 940MX
1 GeForce 930MX
1 GeForce 920MX
2b N15M-Q3
1 Quadro M520
2 GeForce 940A
3 GeForce GTX 750 Ti
1 GeForce GTX 750
1 GeForce GTX 745
e GeForce 845M
1 GeForce GTX 850M
1 GeForce GTX 860M
1 GeForce 840M
5 GeForce 845M
1 GeForce 945M
1 GeForce GTX 950M
1 GeForce GTX 960M
1 GeForce 940M
1 GeForce GTX 750 Ti
13 Quadro M2000M
1 Quadro M1000M
1 Quadro M600M
1 Quadro K2200M
1 Quadro M620
2 Quadro M1200
3 NVS 810
1 Quadro K2200
1 Quadro K620
1 Quadro K1200
391 GeForce MX130
1 GeForce MX110
4e GeForce 940MX
=maxwell||580|proprietary|5.0|
13bd Tesla M10
=maxwell||580|proprietary|5.0|unverified
1389 GRID M30
400 GRID M3-3020
=maxwell||580|proprietary|5.2|
13c0 GeForce GTX 980
2 GeForce GTX 970
15 GeForce GTX 980M
1 GeForce GTX 970M
1 GeForce GTX 965M
1 GeForce GTX 980
16 Quadro M5000
1 Quadro M4000
1 Tesla M60
1 Tesla M6
5 Quadro M5000M
1 Quadro M4000M
1 Quadro M3000M
1 Quadro M5500
6 GeForce GTX 960
1 GeForce GTX 950
4 GeForce GTX 960
1 GeForce GTX 750
20 GeForce GTX 965M
9 Quadro M2000
1 Tesla M4
5 Quadro M2200
1e1 GeForce GTX 980M
1 GeForce GTX 970M
1 GeForce GTX 965M
1 GeForce GTX 980
4d GeForce GTX 965M
15b GeForce GTX TITAN X
6 GeForce GTX 980 Ti
28 Quadro M6000
1 Quadro M6000 24GB
c Tesla M40
=maxwell||580|proprietary|5.2|unverified
1613 GRID M60 Service Provider
63 Quadro M2200 Mobile
=pascal|367|580|proprietary|6.0|
15f0 Quadro GP100
7 Tesla P100-PCIE-12GB
1 Tesla P100-PCIE-16GB
1 Tesla P100-SXM2-16GB
=pascal|367|580|proprietary|6.0|unverified
15c2 CMP 100-100
38 PH402 SKU 200
2 Tesla P100-DGXS-16GB
=pascal|367|580|proprietary|6.1|
1b00 TITAN X (Pascal)
2 TITAN Xp
4 GeForce GTX 1080 Ti
2a Quadro P6000
8 Tesla P40
48 GeForce GTX 1080
1 GeForce GTX 1070
1 GeForce GTX 1070 Ti
1 GeForce GTX 1060 6GB
1 GeForce GTX 1060 3GB
3 P104-100
19 GeForce GTX 1080
1 GeForce GTX 1070
1 GeForce GTX 1070
e Quadro P5000
1 Quadro P4000
2 Tesla P4
1 Tesla P6
1 Quadro P5200
1 Quadro P5000
1 Quadro P4000
1 Quadro P3000
1 Quadro P4200
2 Quadro P3200
c P104-101 (GP104)
19 GeForce GTX 1080
1 GeForce GTX 1070
21 GeForce GTX 1060 3GB
1 GeForce GTX 1060 6GB
1 GeForce GTX 1060 5GB
2 GeForce GTX 1060 6GB
1 P106-100
2 P106-090
17 GeForce GTX 1060
1 GeForce GTX 1050 Ti
1 GeForce GTX 1050
1 GeForce GTX 1060
d Quadro P2000
1 Quadro P2200
2f GeForce GTX 1060
1 GeForce GTX 1050 Ti
1 GeForce GTX 1050
1f GeForce GTX 1050
1 GeForce GTX 1050 Ti
1 GeForce GTX 1050
9 GeForce GTX 1050 Ti
1 GeForce GTX 1050
2 GeForce GTX 1050 Ti
1 GeForce MX150
1 GeForce GTX 1050
1 GeForce GTX 1050
2 GeForce MX350
2 GeForce MX350
1b Quadro P1000
1 Quadro P600
1 Quadro P400
3 Quadro P620
4 Quadro P2000
1 Quadro P1000
1 Quadro P600
1 Quadro P620
3d Quadro P2000
1 Quadro P1000
6 GeForce GT 1030
1 GeForce GT 1010
e GeForce MX150
1 GeForce MX230
1 GeForce MX150
1 GeForce MX250
3 GeForce MX330
1d Quadro P500
1 Quadro P520
1e GeForce MX250
=pascal|367|580|proprietary|6.1|unverified
1b01 GeForce GTX 1080 Ti 10GB
6 P102-100
32 Tesla P10
fc Quadro P2000 Mobile
1 P106M
96 GeForce GTX 1050 Ti Mobile
1 GeForce GTX 1050 Mobile
89 GeForce MX330
=volta|384|580|proprietary|7.0|
1d81 TITAN V
30 Tesla V100-SXM2-16GB
2 Tesla V100-FHHL-16GB
1 Tesla V100-PCIE-16GB
1 Tesla V100-SXM2-32GB
1 Tesla V100-PCIE-32GB
1 Tesla V100-DGXS-32GB
1 Tesla V100-SXM3-32GB
2 Quadro GV100
36 Tesla PG500-216
2 Tesla PG503-216
3 Tesla V100-SXM2-16GB
1 Tesla V100S-PCIE-32GB
=volta|384|580|proprietary|7.0|unverified
1d83 CMP 100-200
1 CMP 100-210
2c Tesla GV100 SXM2-16GB SKU 890
2 Tesla V100 DGXS 16GB
b Tesla GV100 DGX1-V
4 CMP 100-200
33 CMP 100-210
=turing|410||open,proprietary|7.5|
1e02 TITAN RTX
2 GeForce RTX 2080 Ti
3 GeForce RTX 2080 Ti
2 CMP 50HX
27 Quadro RTX 6000
6 Quadro RTX 6000
1 Tesla T10 16GB / GRID RTX T10-2/T10-4/T10-8
41 Quadro RTX 8000
9 GeForce RTX 2080 SUPER
1 GeForce RTX 2080
2 GeForce RTX 2070 SUPER
3 GeForce RTX 2080
2 GeForce RTX 2060
7 GeForce RTX 2080
1 GeForce RTX 2070 Super
2 GeForce RTX 2080 Super
1d Quadro RTX 5000
1 Quadro RTX 4000
3 T4G
1 Quadro RTX 5000
1 Quadro RTX 4000
2 Tesla T4
a GeForce RTX 2070 SUPER
5 GeForce RTX 2070 SUPER
9 GeForce RTX 2080
1 GeForce RTX 2070 Super
2 GeForce RTX 2080 Super
22 Quadro RTX 5000
d GeForce RTX 2070
1 GeForce RTX 2060
3 GeForce RTX 2060 SUPER
1 GeForce RTX 2070
1 GeForce RTX 2060
1 GeForce GTX 1660 SUPER
1 GeForce GTX 1650
1 CMP 40HX
5 GeForce RTX 2070
1 GeForce RTX 2060
1 GeForce RTX 2060
2 GeForce RTX 2070
1 GeForce RTX 2060
21 Quadro RTX 3000
c GeForce RTX 2060 SUPER
5 GeForce RTX 2060 SUPER
9 GeForce RTX 2070
1 GeForce RTX 2060
3 GeForce RTX 2070
1 GeForce RTX 2060
21 Quadro RTX 3000
c GeForce GTX 1650
1 GeForce GTX 1630
e GeForce GTX 1650
4 GeForce GTX 1650 Ti
1 GeForce GTX 1650
1 GeForce MX450
1 GeForce MX450
1 GeForce GTX 1650
3 GeForce MX450
1 GeForce GTX 1650
2 GeForce MX550
1 GeForce MX550
10 T1000
1 T600
1 T400
4 T600 Laptop GPU
1 T550 Laptop GPU
1 Quadro T2000
1 Quadro T1000
1 T600 Laptop GPU
1 T500
1 T1200 Laptop GPU
21 GeForce GTX 1650
13 T1000 8GB
2 T400 4GB
7 Quadro T1000
189 GeForce GTX 1660 Ti
2 GeForce GTX 1660
3 GeForce GTX 1650 SUPER
1 GeForce GTX 1650
1 CMP 30HX
8 GeForce GTX 1660 Ti
1 GeForce GTX 1650 Ti
32 GeForce GTX 1660 SUPER
d GeForce GTX 1660 Ti
=turing|410||open,proprietary|7.5|unverified
1e03 GeForce RTX 2080 Ti 12GB
32 Tesla T10
3 Tesla T40 24GB
15a GeForce GTX 1650 Mobile
2 GeForce GTX 1650 Mobile
45 GeForce GTX 1650 Mobile Refresh
=ampere|450||open,proprietary|8.0|
20b0 A100-SXM4-40GB
1 A100 PCIe 40GB
1 A100-SXM4-80GB
1 A100-SXM-64GB
2 A100 80GB PCIe
1 PG506-232
1 A30
6 A800-SXM4-40GB
33 A100-PG506-207
1 A100-PCIE-40GB
1 A100-PG506-217
1 A800-SXM4-80GB
2 A800 80GB PCIe
1 A800 40GB Active
7 AX800
=ampere|450||open,proprietary|8.0|
20b8 A100X
1 A30X
=ampere|450||open,proprietary|8.0|unverified
2082 CMP 170HX
39 DRIVE A100 PROD
3 GRID A100A
1 GRID A100B
3 CMP 170HX
=ampere|450||open,proprietary|8.6|
2203 GeForce RTX 3090 Ti
1 GeForce RTX 3090
2 GeForce RTX 3080
1 GeForce RTX 3070 Ti
1 GeForce RTX 3080 Ti
2 GeForce RTX 3080
3 CMP 90HX
9 GeForce RTX 3080
1a RTX A6000
1 RTX A5000
1 RTX A4500
1 RTX A5500
2 A40
1 A10
1 A10G
1 A10M
1dc GeForce RTX 3060 Ti
c GeForce RTX 3080 Ti Laptop GPU
18 RTX A5500 Laptop GPU
28 GeForce RTX 3080 Ti Laptop GPU
22 GeForce RTX 3070 Ti
2 GeForce RTX 3070
2 GeForce RTX 3060 Ti
1 GeForce RTX 3060
1 GeForce RTX 3070
1 GeForce RTX 3060 Ti
1 CMP 70HX
12 GeForce RTX 3080 Laptop GPU
1 GeForce RTX 3070 Laptop GPU
3 GeForce RTX 3070 Ti Laptop GPU
10 RTX A4000
1 RTX A4000H
5 RTX A5000 Laptop GPU
1 RTX A4000 Laptop GPU
1 RTX A3000 Laptop GPU
1 RTX A3000 12GB Laptop GPU
1 RTX A4500 Laptop GPU
1 RTX A3000 12GB Laptop GPU
c GeForce RTX 3060
2 GeForce RTX 3060 Ti
13 GeForce RTX 3080 Laptop GPU
1 GeForce RTX 3070 Laptop GPU
3 GeForce RTX 3070 Ti Laptop GPU
1a RTX A4500 Embedded GPU
9 GeForce RTX 3060
1 GeForce RTX 3060
3 GeForce RTX 3050
1 GeForce RTX 3050 OEM
18 GeForce RTX 3060 Laptop GPU
1 GeForce RTX 3060 Laptop GPU
2 GeForce RTX 3050 Ti Laptop GPU
e RTX A2000
13 GeForce RTX 3060
1c GeForce RTX 3060 Laptop GPU
3 GeForce RTX 3050 Ti Laptop GPU
e RTX A2000 12GB
11 GeForce RTX 3050
2 GeForce RTX 3050
1c GeForce RTX 3050 Ti Laptop GPU
2 GeForce RTX 3050 Laptop GPU
3 GeForce RTX 3050 Laptop GPU
1 GeForce MX570
1 GeForce RTX 2050
2 GeForce RTX 2050
1 GeForce MX570 A
1 GeForce RTX 3050 4GB Laptop GPU
1 GeForce RTX 3050 6GB Laptop GPU
1 GeForce RTX 2050
3 RTX A1000
2 RTX A400
4 A16
2 RTX A2000 Laptop GPU
1 RTX A1000 Laptop GPU
1 RTX A2000 8GB Laptop GPU
1 RTX A500 Laptop GPU
1 RTX A1000 6GB Laptop GPU
1 RTX A500 Laptop GPU
23 GeForce RTX 3050 Ti Laptop GPU
2 GeForce RTX 3050 Laptop GPU
3 GeForce RTX 3050 Laptop GPU
7 GeForce RTX 3050 6GB Laptop GPU
1 GeForce RTX 2050
c RTX A1000 Embedded GPU
1 RTX A2000 Embedded GPU
1 RTX A500 Embedded GPU
=ampere|450||open,proprietary|8.6|unverified
2205 GeForce RTX 3080 Ti 20GB
287 GeForce RTX 3070 Ti
1 GeForce RTX 3070
1 GeForce RTX 3060 Ti
3a GeForce RTX 3070 GDDR6X
39 GeForce RTX 3060
8 GeForce RTX 3060 12GB Rev. 2
58 GeForce RTX 3060 Laptop GPU
22 GeForce RTX 3050 4GB
32 RTX A4 Mobile
=ada|520||open,proprietary|8.9|
2684 GeForce RTX 4090
1 GeForce RTX 4090 D
4 GeForce RTX 4070 Ti SUPER
28 RTX 6000 Ada Generation
1 RTX 5000 Ada Generation
1 RTX 5880 Ada Generation
2 L40
3 L40G
1 L40S
1 L20
48 GeForce RTX 4080 SUPER
2 GeForce RTX 4080
1 GeForce RTX 4070 Ti SUPER
4 GeForce RTX 4070
e GeForce RTX 4090 Laptop GPU
19 RTX 5000 Ada Generation Laptop GPU
27 GeForce RTX 4090 Laptop GPU
19 RTX 5000 Ada Generation Embedded GPU
12 GeForce RTX 4070 Ti
1 GeForce RTX 4070 SUPER
3 GeForce RTX 4070
2 GeForce RTX 4060 Ti
18 GeForce RTX 4080 Laptop GPU
10 RTX 4000 SFF Ada Generation
1 RTX 4500 Ada Generation
1 RTX 4000 Ada Generation
4 L2
2 L4
2 RTX 4000 Ada Generation Laptop GPU
1 RTX 3500 Ada Generation Laptop GPU
25 GeForce RTX 4080 Laptop GPU
1b RTX 3500 Ada Generation Embedded GPU
8 GeForce RTX 4060 Ti
2 GeForce RTX 4060 Ti
3 GeForce RTX 4060
18 GeForce RTX 4070 Laptop GPU
2 GeForce RTX 3050 A Laptop GPU
16 RTX 3000 Ada Generation Laptop GPU
28 GeForce RTX 4070 Laptop GPU
22 GeForce RTX 4060
1e GeForce RTX 4060 Laptop GPU
1 GeForce RTX 4050 Laptop GPU
2 GeForce RTX 3050 A Laptop GPU
d RTX 2000 Ada Generation
8 RTX 2000 Ada Generation Laptop GPU
1 RTX 1000 Ada Generation Laptop GPU
1 RTX 500 Ada Generation Laptop GPU
1 RTX 500 Ada Generation Laptop GPU
25 GeForce RTX 4060 Laptop GPU
1 GeForce RTX 4050 Laptop GPU
2 GeForce RTX 3050 A Laptop GPU
15 RTX 2000 Ada Generation Embedded GPU
=ada|520||open,proprietary|8.9|unverified
2681 RTX TITAN Ada
36 L20
4 L30
3a L40 CNX
e GeForce RTX 4080 SUPER
b4 L16
43 RTX 4000 Ada Generation Embedded GPU
7e RTX 3000 Ada Generation Embedded GPU
=hopper|520||open,proprietary|9.0|
230e H20 NVL16
13 H100 NVL
1 H800 PCIe
2 H800
5 H20
3 H20-3e
4 H100 80GB HBM3
1 H100 PCIe
4 H200
2 H100 SXM5 64GB
2 H100
1 H800 NVL
1 H200 NVL
=hopper|520||open,proprietary|9.0|unverified
230c H20 NVL16
7 H100 CNX
15 H20B
e H100
2 H100 SXM5 96GB
5 H100 96GB
=grace_hopper|535||open|9.0|
2342 GH200 120GB
6 GH200 144G HBM3e
=grace_hopper|535||open|9.0|unverified
237e H100 GH3
=blackwell|570||open|10.0|
2901 B200
8 B200
38 GB200
7a DRIVE P2021
=blackwell|570||open|10.0|unverified
290a B200
16 TS4 / B100
4 GB100
1 GB100
18 GB100
41 GB100
3e B100
=blackwell|570||open|12.0|
2b85 GeForce RTX 5090
2 GeForce RTX 5090 D
5 GeForce RTX 5090 D v2
25 RTX PRO 6000 Blackwell Workstation Edition
2 RTX PRO 5000 Blackwell
1 RTX PRO 6000 Blackwell Max-Q Workstation Edition
1 RTX PRO 6000 Blackwell Server Edition
4 RTX 6000D
49 GeForce RTX 5080
3 GeForce RTX 5070 Ti
13 GeForce RTX 5090 Laptop GPU
1 GeForce RTX 5080 Laptop GPU
18 RTX PRO 4500 Blackwell
2 RTX PRO 4000 Blackwell SFF Edition
1 RTX PRO 4000 Blackwell
4 RTX PRO 5000 Blackwell Generation Laptop GPU
1 RTX PRO 4000 Blackwell Generation Laptop GPU
1 RTX PRO 4500 Blackwell Server Edition
1e GeForce RTX 5090 Laptop GPU
1 GeForce RTX 5080 Laptop GPU
1e RTX PRO 5000 Blackwell Embedded GPU
2 RTX PRO 4000 Blackwell Embedded GPU
8b GeForce RTX 5060 Ti
1 GeForce RTX 5060
13 GeForce RTX 5070 Laptop GPU
1 GeForce RTX 5060 Laptop GPU
17 RTX PRO 2000 Blackwell
9 RTX PRO 2000 Blackwell Generation Laptop GPU
1f GeForce RTX 5070 Laptop GPU
1 GeForce RTX 5060 Laptop GPU
20 RTX PRO 2000 Blackwell Embedded GPU
a GeForce RTX 5050
15 GeForce RTX 5050 Laptop GPU
20 RTX PRO 1000 Blackwell Generation Laptop GPU
1 RTX PRO 500 Blackwell Generation Laptop GPU
1f GeForce RTX 5050 Laptop GPU
21 RTX PRO 500 Blackwell Embedded GPU
10b GeForce RTX 5070
2 GeForce RTX 5060
12 GeForce RTX 5070 Ti Laptop GPU
20 RTX PRO 3000 Blackwell Generation Laptop GPU
20 GeForce RTX 5070 Ti Laptop GPU
=blackwell|570||open|12.0|unverified
2bb2 RTX PRO 6000D Blackwell Workstation Edition
a RTX PRO 6000D Blackwell Max-Q Workstation Edition
4d GeForce RTX 5070
=blackwell|580||open|10.3|
3182 B300 SXM6 AC
40 GB300
1 GB300
=blackwell|580||open|10.3|unverified
31a1 GB300 MaxQ
=blackwell|580||open|12.1|
2e12 GB10
=blackwell|580||open|12.1|unverified
2e03 RTX Spark N1X (6144-core Blackwell RTX GPU)
3 RTX Spark N1X (5120-core Blackwell RTX GPU)
d RTX Spark N1X (6144-core Blackwell RTX GPU)
'''
