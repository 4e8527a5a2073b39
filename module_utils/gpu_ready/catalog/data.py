"""Data of catalog/*.yml, compiled by `make catalog`; do not edit."""

import json
from typing import Any, Dict

# fmt: off
# ruff: noqa: E501
_DATA = json.loads(r'''{"DATE":"2026-11-21",
"DEFAULT_BRANCH":580,
"NEWEST_BRANCH":615,
"BRANCHES":{
"340":{"newest":"340.108","kind":"legacy","eol":"2019-12","cuda":"6.5","min_kernel":"2.6.9","flavours":["proprietary"]},
"390":{"newest":"390.157","kind":"legacy","eol":"2022-12","cuda":"9.1","min_kernel":"2.6.32","flavours":["proprietary"]},
"470":{"newest":"470.256.02","kind":"legacy","eol":"2024-07","cuda":"11.4","min_kernel":"2.6.32","flavours":["proprietary"]},
"535":{"newest":"535.309.01","kind":"lts","eol":"2026-06","cuda":"12.2","min_kernel":"3.10","flavours":["open","proprietary"]},
"550":{"newest":"550.163.01","kind":"production","eol":"2025-06","cuda":"12.4","min_kernel":"3.10","flavours":["open","proprietary"]},
"570":{"newest":"570.211.01","kind":"production","eol":"2026-02","cuda":"12.8","min_kernel":"4.15","flavours":["open","proprietary"]},
"575":{"newest":"575.64.05","kind":"new_feature","eol":"2025-08","cuda":"12.9","min_kernel":"4.15","flavours":["open","proprietary"]},
"580":{"newest":"580.178.04","kind":"lts","eol":"2028-06","cuda":"13.0","min_kernel":"4.15","flavours":["open","proprietary"]},
"590":{"newest":"590.48.01","kind":"new_feature","eol":"2026-03","cuda":"13.1","min_kernel":"4.15","flavours":["open","proprietary"]},
"595":{"newest":"595.91.07","kind":"production","eol":"2027-03","cuda":"13.2","min_kernel":"4.15","flavours":["open","proprietary"]},
"610":{"newest":"610.57.04","kind":"new_feature","eol":"2026-08","cuda":"13.3","min_kernel":"4.15","flavours":["open","proprietary"]},
"615":{"newest":"615.71.09","kind":"production","eol":null,"cuda":"13.4","min_kernel":"4.15","flavours":["open","proprietary"]},
"620":{"newest":"620","kind":"new_feature","eol":null,"cuda":"13.5","min_kernel":"4.15","flavours":["open"]}},
"TOOLKITS":{
"11.0":{"min_driver":"450.80.02","native_driver":"450.51.06","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.1":{"min_driver":"450.80.02","native_driver":"455.23","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.2":{"min_driver":"450.80.02","native_driver":"460.27.03","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.3":{"min_driver":"450.80.02","native_driver":"465.19.01","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.4":{"min_driver":"450.80.02","native_driver":"470.42.01","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.5":{"min_driver":"450.80.02","native_driver":"495.29.05","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.6":{"min_driver":"450.80.02","native_driver":"510.39.01","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.7":{"min_driver":"450.80.02","native_driver":"515.43.04","architectures":["kepler","maxwell","pascal","volta","turing","ampere"]},
"11.8":{"min_driver":"450.80.02","native_driver":"520.61.05","architectures":["kepler","maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.0":{"min_driver":"525.60.13","native_driver":"525.60.13","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.1":{"min_driver":"525.60.13","native_driver":"530.30.02","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.2":{"min_driver":"525.60.13","native_driver":"535.54.03","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.3":{"min_driver":"525.60.13","native_driver":"545.23.06","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.4":{"min_driver":"525.60.13","native_driver":"550.54.14","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.5":{"min_driver":"525.60.13","native_driver":"555.42.02","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.6":{"min_driver":"525.60.13","native_driver":"560.28.03","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"12.8":{"min_driver":"525.60.13","native_driver":"570.26","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"12.9":{"min_driver":"525.60.13","native_driver":"575.51.03","architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"13.0":{"min_driver":"580.65.06","native_driver":"580.65.06","architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"13.1":{"min_driver":"580.65.06","native_driver":"590.44.01","architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"13.2":{"min_driver":"580.65.06","native_driver":"595.45.04","architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"13.3":{"min_driver":"580.65.06","native_driver":"610.43.02","architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"13.4":{"min_driver":"580.65.06","native_driver":"615.71.09","architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"]}},
"CUDA_INSTALLER":{
"root":"https://developer.download.nvidia.com/compute/cuda",
"file":"{root}/{release}/local_installers/cuda_{release}_{driver}_linux.run",
"file_without_driver":"{root}/{release}/local_installers/cuda_{release}_linux.run",
"md5":"{root}/{release}/docs/sidebar/md5sum.txt",
"needs":["libxml2"]},
"CUDA_INSTALLERS":{
"11.0.2":{"driver":"450.51.05","sha256":"48247ada0e3f106051029ae8f70fbd0c238040f58b0880e55026374a959a69c1"},
"11.0.3":{"driver":"450.51.06","sha256":"b079c4e408adf88c3f1ffb8418a97dc4227c37935676b4bf4ca0beec6c328cc0"},
"11.1.0":{"driver":"455.23.05","sha256":"858cbab091fde94556a249b9580fadff55a46eafbcb4d4a741d2dcd358ab94a5"},
"11.1.1":{"driver":"455.32.00","sha256":"3eae6727086024925ebbcef3e9a45ad379d8490768fd00f9c2d8b6fd9cd8dd8f"},
"11.2.0":{"driver":"460.27.04","sha256":"9c50283241ac325d3085289ed9b9c170531369de41165ce271352d4a898cbdce"},
"11.2.1":{"driver":"460.32.03","sha256":"1da98cb897cc5f58a7445a4a66ca4f6926867706cb3af58a669cdcd8dc3d17c8"},
"11.2.2":{"driver":"460.32.03","sha256":"0a2e477224af7f6003b49edfd2bfee07667a8148fe3627cfd2765f6ad72fa19d"},
"11.3.0":{"driver":"465.19.01","sha256":"262da7f77db177b153a6b70b5812210f3f72f00eb608ab9cf2a4582328c4bf5c"},
"11.3.1":{"driver":"465.19.01","sha256":"ad93ea98efced35855c58d3a0fc326377c60917cb3e8c017d3e6d88819bf2934"},
"11.4.0":{"driver":"470.42.01","sha256":"d219db30f7415a115a4ea22bdbb5984b0a18f7f891cad6074c5da45d223aaa4b"},
"11.4.1":{"driver":"470.57.02","sha256":"dd6c339a719989d2518f5d54eeac1ed707d0673f8664ba0c4d4b2af7c3ba0005"},
"11.4.2":{"driver":"470.57.02","sha256":"bbd87ca0e913f837454a796367473513cddef555082e4d86ed9a38659cc81f0a"},
"11.4.3":{"driver":"470.82.01","sha256":"749183821ffc051e123f12ebdeb171b263d55b86f0dd7c8f23611db1802d6c37"},
"11.4.4":{"driver":"470.82.01","sha256":"44545a7abb4b66dfc201dcad787b5e8352e5b7ddf3e3cc5b2e9177af419c25c8"},
"11.5.0":{"driver":"495.29.05","sha256":"ae0a1693d9497cf3d81e6948943e3794636900db71c98d58eefdacaf7f1a1e4c"},
"11.5.1":{"driver":"495.29.05","sha256":"60bea2fc0fac95574015f865355afbf599422ec2c85554f5f052b292711a4bca"},
"11.5.2":{"driver":"495.29.05","sha256":"74959abf02bcba526f0a3aae322c7641b25da040ccd6236d07038f81997b73a6"},
"11.6.0":{"driver":"510.39.01","sha256":"1783da6d63970786040980b57fa3cb6420142159fc7d0e66f8f05c4905d98c83"},
"11.6.1":{"driver":"510.47.03","sha256":"ab219afce00b74200113269866fbff75ead037bcfc23551a8338c2684c984d7e"},
"11.6.2":{"driver":"510.47.03","sha256":"99b7a73dcc52a52cef4c1fceb4a60c3015ac9b6404082c1677d9efdaba1d4593"},
"11.7.0":{"driver":"515.43.04","sha256":"087fdfcbba1f79543b1f78e43a8dfdac5f6db242d042dde820e16dc185892f26"},
"11.7.1":{"driver":"515.65.01","sha256":"52286a29706549b7d0feeb0e7e3eca1b15287c436a69fa880ad385b1be3e04db"},
"11.8.0":{"driver":"520.61.05","sha256":"9223c4af3aebe4a7bbed9abd9b163b03a1b34b855fbc2b4a0d1b706ac09a5a16"},
"12.0.0":{"driver":"525.60.13","sha256":"905e9b9516900839fb76064719db752439f38b8cb730b49335d8bd53ddfad392"},
"12.0.1":{"driver":"525.85.12","sha256":"1b205a06272f1463f477276fdab903f3f666917c068e520738001e69c7a1875b"},
"12.1.0":{"driver":"530.30.02","sha256":"68699036c12d71adb9ad2799dce2ff070270fab4488b90920b9756ab3f52c41c"},
"12.1.1":{"driver":"530.30.02","sha256":"d74022d41d80105319dfa21beea39b77a5b9919539c0487a05caaf2446d6a70e"},
"12.2.0":{"driver":"535.54.03","sha256":"ecf3d2afadcbac029f0f4505785810d52d006e4b87ba79ff3f984336a2bbf518"},
"12.2.1":{"driver":"535.86.10","sha256":"c51e814eaa756160a73289b1f35880cc38c18e1ddedc87f46f7ff0d1696bdb95"},
"12.2.2":{"driver":"535.104.05","sha256":"2b39aae3e7618d9f59a3c8fa1f1bc61f29c0b0e0df75fb05076badb352952ef2"},
"12.3.0":{"driver":"545.23.06","sha256":"7c13face3af64d6e1648d6e3101d31c8111e747143acb0077d973c1690820422"},
"12.3.1":{"driver":"545.23.08","sha256":"b73d18ccd5ff85bbae32b425dfb82729612ede65b07a37cd5e2b574190614038"},
"12.3.2":{"driver":"545.23.08","sha256":"24b2afc9f770d8cf43d6fa7adc2ebfd47c4084db01bdda1ce3ce0a4d493ba65b"},
"12.4.0":{"driver":"550.54.14","sha256":"e6a842f4eca9490575cdb68b6b1bb78d47b95a897de48dee292c431892e57d17"},
"12.4.1":{"driver":"550.54.15","sha256":"367d2299b3a4588ab487a6d27276ca5d9ead6e394904f18bccb9e12433b9c4fb"},
"12.5.0":{"driver":"555.42.02","sha256":"90fcc7df48226434065ff12a4372136b40b9a4cbf0c8602bb763b745f22b7a99"},
"12.5.1":{"driver":"555.42.06","sha256":"b5e0a779e089c86610051141c4cf498beef431858ec63398107391727ecbdb04"},
"12.6.0":{"driver":"560.28.03","sha256":"31ab04394e69b14dd8656e2b44c2877db1a0e898dff8a7546a4c628438101b94"},
"12.6.1":{"driver":"560.35.03","sha256":"73acce7243519625f259509f5dcff6dc8fbd23dca53b852aa9ce382009e92e9d"},
"12.6.2":{"driver":"560.35.03","sha256":"3729a89cb58f7ca6a46719cff110d6292aec7577585a8d71340f0dbac54fb237"},
"12.6.3":{"driver":"560.35.05","sha256":"81d60e48044796d7883aa8a049afe6501b843f2c45639b3703b2378de30d55d3"},
"12.8.0":{"driver":"570.86.10","sha256":"610867dcd6d94c4e36c4924f1d01b9db28ec08164e8af6c764f21b84200695f8"},
"12.8.1":{"driver":"570.124.06","sha256":"228f6bcaf5b7618d032939f431914fc92d0e5ed39ebe37098a24502f26a19797"},
"12.8.2":{"driver":"570.211.01"},
"12.9.0":{"driver":"575.51.03","sha256":"bbce2b760fe2096ca1c86f729e03bf377c1519add7b2755ecc4e9b0a9e07ee43"},
"12.9.1":{"driver":"575.57.08","sha256":"0f6d806ddd87230d2adbe8a6006a9d20144fdbda9de2d6acc677daa5d036417a"},
"12.9.2":{"driver":"575.57.08"},
"13.0.0":{"driver":"580.65.06","sha256":"c64969f35ad99bf3f9e8acb8e3d22355150c6ca07acc16a853778600a9b65ba6"},
"13.0.1":{"driver":"580.82.07","sha256":"4c7ac59d1f41d67be27d140a4622801738ad71088570a0facfd6ec878a4c4100"},
"13.0.2":{"driver":"580.95.05","sha256":"81a5d0d0870ba2022efb0a531dcc60adbdc2bbff7b3ef19d6fd6d8105406c775"},
"13.0.3":{"driver":"580.126.20"},
"13.1.0":{"driver":"590.44.01","sha256":"6b4fdf2694b3d7afbc526f26412b4cf4f050b202324455053307310f53b323a7"},
"13.1.1":{"driver":"590.48.01","sha256":"24ff323723722781436804b392a48f691cb40de9808095d3e2192d0db6dfb8e4"},
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
"8.9.7.29":{"cuda":["11","12"],"architectures":["kepler","maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper"]},
"9.10.2.21":{"cuda":["11","12"],"architectures":["maxwell","pascal","volta","turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"9.17.0.29":{"cuda":["12","13"],"architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"]},
"9.26.0.51":{"cuda":["12","13"],"architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"],"sha256":{"13":"e62c9b4af62ea130765ea5b13244c05c9452edf1690072373d193d19766d9850"}},
"9.28.0.42":{"cuda":["12","13"],"architectures":["turing","ampere","ada","hopper","grace_hopper","blackwell"]}},
"CUDNN_PACKAGES":{
"8":{"side_by_side":false,"deb":{"names":["libcudnn8","libcudnn8-dev"],"version":"{version}-1+cuda{cuda}.*"},"rpm":{"names":["libcudnn8","libcudnn8-devel"],"version":"{version}-1.cuda{cuda}.*"}},
"9":{"side_by_side":false,"deb":{"names":["libcudnn9-cuda-{cuda}","libcudnn9-dev-cuda-{cuda}","libcudnn9-headers-cuda-{cuda}"],"version":"{version}-*","any":"9.*"},"rpm":{"names":["libcudnn9-cuda-{cuda}","libcudnn9-devel-cuda-{cuda}","libcudnn9-headers-cuda-{cuda}"],"version":"{version}-*","any":"9.*"}}},
"DISTROS":{
"amzn2023":{"family":"amazon","ids":["amzn"],"versions":["2023"],"pretty":"Amazon Linux 2023","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"^6\\.12\\.":["kernel6.12-devel-{kernel}"],"^6\\.18\\.":["kernel6.18-devel-{kernel}"]},"build_tools":["dkms","gcc","make"],"build_repositories":["cuda-amzn2023"],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-amzn2023","module_name":"nvidia","streams":{"open":"{branch}-open","proprietary":"{branch}-dkms"},"fabricmanager":{"<=575":"nvidia-fabric-manager",">=580":"nvidia-fabricmanager"},"imex":{">=550":"nvidia-imex"},"persistenced":"nvidia-persistenced","branches":[570,575,580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker"],"engine":["docker"]}},"container_toolkit":"container-toolkit-rpm"},
"centos7":{"family":"rhel","ids":["centos","rhel","ol","scientific"],"versions":["7"],"pretty":"CentOS 7","package_manager":"yum","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\.":["kernel-uek-devel-{kernel}"],"\\.rt\\d":["kernel-rt-devel-{kernel}"],"\\.centos\\.plus\\.":["kernel-plus-devel-{kernel}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-7"],"vault":["vault-centos7-os","vault-centos7-updates","vault-centos7-extras"],"hold_tools":["yum-plugin-versionlock"],"max_branch":550,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel7","module_name":"nvidia","fabricmanager":"nvidia-fabric-manager","branches":[470,535,550],"absent":{"open":"no package of the open module is known for EL 7"},"packages":{"compute":{"proprietary":["nvidia-driver-latest-dkms-cuda","kmod-nvidia-latest-dkms"]},"full":{"proprietary":["nvidia-driver-latest-dkms","nvidia-driver-latest-dkms-cuda","kmod-nvidia-latest-dkms"]}},"precompiled":{"signed_by":"nvidia","ids":["rhel","centos"],"branches":[470,535,550],"absent":{"open":"NVIDIA publishes no precompiled open modules for RHEL"},"packages":{"compute":{"proprietary":["nvidia-driver-branch-{branch}-cuda","kmod-nvidia-branch-{branch}"]},"full":{"proprietary":["nvidia-driver-branch-{branch}","nvidia-driver-branch-{branch}-cuda","kmod-nvidia-branch-{branch}"]}}},"toolkits":["11.0","11.1","11.2","11.3","11.4","11.5","11.6","11.7","11.8","12.0","12.1","12.2","12.3","12.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550]}},"docker":{"docker_ce":{"repository":"docker-ce-el7","packages":[{"name":"docker-ce","version":"26.1.4-1.el7"},{"name":"docker-ce-cli","version":"26.1.4-1.el7"},{"name":"containerd.io","version":"1.6.33-3.1.el7"}],"engine":["docker-ce","docker-ce-cli"],"version":"26.1.4","conflicts":["docker","docker-client","docker-client-latest","docker-common","docker-latest","docker-latest-logrotate","docker-logrotate","docker-engine"]}},"container_toolkit":"container-toolkit-rpm"},
"debian12":{"family":"debian","ids":["debian"],"versions":["12"],"pretty":"Debian 12 (bookworm)","codename":"bookworm","package_manager":"apt","headers":["linux-headers-{kernel}"],"headers_by_kernel":{"-pve$":["proxmox-headers-{kernel}"]},"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["contrib","non-free","non-free-firmware"],"module_name":"nvidia-current","fabricmanager":null,"absent":{"open":"Debian 12's open module is older than the firmware and libraries that its security archive has"},"branches":{"535":{"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-smi","libcuda1","libnvidia-ml1","libnvidia-ptxjitcompiler1","nvidia-modprobe","firmware-nvidia-gsp"]},"full":{"proprietary":["nvidia-kernel-dkms","nvidia-driver","nvidia-smi","libcuda1","firmware-nvidia-gsp"]}}}}},"cuda_repo":{"repository":"cuda-debian12","module_name":"nvidia","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590,595,610,615],"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-driver-cuda"],"open":["nvidia-kernel-open-dkms","nvidia-driver-cuda"]},"full":{"proprietary":["cuda-drivers"],"open":["nvidia-open"]}},"toolkits":["12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"20.10.24"},"docker_ce":{"repository":"docker-ce-debian12","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit"},
"debian13":{"family":"debian","ids":["debian"],"versions":["13"],"pretty":"Debian 13 (trixie)","codename":"trixie","package_manager":"apt","headers":["linux-headers-{kernel}"],"headers_by_kernel":{"-pve$":["proxmox-headers-{kernel}"]},"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["contrib","non-free","non-free-firmware"],"module_name":"nvidia-current","fabricmanager":null,"absent":{"open":"nvidia-open-kernel-dkms 550.163.01-2 does not compile for the release's kernel"},"branches":{"550":{"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-smi","libcuda1","libnvidia-ml1","libnvidia-ptxjitcompiler1","nvidia-modprobe","firmware-nvidia-gsp"]},"full":{"proprietary":["nvidia-kernel-dkms","nvidia-driver","nvidia-smi","libcuda1","firmware-nvidia-gsp"]}}}}},"cuda_repo":{"repository":"cuda-debian13","module_name":"nvidia","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590,595,610,615],"packages":{"compute":{"proprietary":["nvidia-kernel-dkms","nvidia-driver-cuda"],"open":["nvidia-kernel-open-dkms","nvidia-driver-cuda"]},"full":{"proprietary":["cuda-drivers"],"open":["nvidia-open"]}},"toolkits":["13.0","13.1","13.2","13.3","13.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io","docker-cli"],"engine":["docker.io","docker-cli"],"version":"26.1.5"},"docker_ce":{"repository":"docker-ce-debian13","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-cli","docker-compose","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit"},
"el10":{"family":"rhel","ids":["rhel","centos","rocky","almalinux","ol"],"versions":["10"],"relatives":{"eurolinux":["10"]},"pretty":"Enterprise Linux 10","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\..*\\+debug$":["kernel-uek-debug-devel-{release}"],"uek\\.":["kernel-uek-devel-{kernel}"],"\\+rt-debug$|\\.rt\\d.*\\+debug$":["kernel-rt-debug-devel-{release}"],"\\+rt$|\\.rt\\d":["kernel-rt-devel-{release}"],"\\+debug$":["kernel-debug-devel-{release}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-10"],"build_enable":[["crb","codeready-builder-for-rhel-10-x86_64-rpms","codeready-builder-for-rhel-10-rhui-rpms","codeready-builder-for-rhel-10-x86_64-rhui-rpms","rhui-codeready-builder-for-rhel-10-x86_64-rhui-rpms","ol10_codeready_builder"]],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel10","module_name":"nvidia","fabricmanager":{"<=575":"nvidia-fabric-manager",">=580":"nvidia-fabricmanager"},"imex":{">=550":"nvidia-imex"},"persistenced":"nvidia-persistenced","branches":[580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["12.9","13.0","13.1","13.2","13.3","13.4"]},"elrepo":{"only_when_asked":true,"kernel_modules":"precompiled","signed_by":"elrepo","repository":"elrepo-10","with_repositories":["epel-10"],"module_name":"nvidia","fabricmanager":null,"detect":"nvidia-detect","absent":{"open":"ELRepo has the open module of its newest branch only"},"branches":{"580":{"packages":{"compute":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]},"full":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]}}},"595":{"packages":{"compute":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]},"full":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]}}}}},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[550,570,575,580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-el10","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"kernel_packages":["kernel-modules-extra-{kernel}"],"conflicts":["docker","docker-client","docker-common","docker-engine","podman-docker","runc"]}},"container_toolkit":"container-toolkit-rpm"},
"el8":{"family":"rhel","ids":["rhel","centos","rocky","almalinux","ol"],"versions":["8"],"relatives":{"eurolinux":["8"],"miraclelinux":["8"],"springdale":["8"],"circle":["8"],"navylinux":["8"],"anolis":["8"],"alinux":["3"]},"pretty":"Enterprise Linux 8","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\..*\\+debug$":["kernel-uek-debug-devel-{release}"],"uek\\.":["kernel-uek-devel-{kernel}"],"\\+rt-debug$|\\.rt\\d.*\\+debug$":["kernel-rt-debug-devel-{release}"],"\\+rt$|\\.rt\\d":["kernel-rt-devel-{release}"],"\\+debug$":["kernel-debug-devel-{release}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-8"],"build_enable":[["powertools","codeready-builder-for-rhel-8-x86_64-rpms","codeready-builder-for-rhel-8-rhui-rpms","codeready-builder-for-rhel-8-x86_64-rhui-rpms","rhui-codeready-builder-for-rhel-8-x86_64-rhui-rpms","ol8_codeready_builder"]],"vault":["vault-centos8"],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel8","module_name":"nvidia","streams":{"open":"{branch}-open","proprietary":"{branch}-dkms"},"fabricmanager":{"<=575":"nvidia-fabric-manager",">=580":"nvidia-fabricmanager"},"imex":{">=550":"nvidia-imex"},"persistenced":"nvidia-persistenced","branches":[470,535,550,570,575,580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"precompiled":{"signed_by":"nvidia","ids":["rhel"],"streams":{"proprietary":"{branch}"},"branches":[535,550,570,575,580,590,595],"absent":{"open":"NVIDIA publishes no precompiled open modules for RHEL"},"packages":{"compute":{"proprietary":["nvidia-driver-cuda"]},"full":{"proprietary":["nvidia-driver","nvidia-driver-cuda"]}}},"toolkits":["11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"elrepo":{"only_when_asked":true,"kernel_modules":"precompiled","signed_by":"elrepo","repository":"elrepo-8","with_repositories":["epel-8"],"module_name":"nvidia","fabricmanager":null,"detect":"nvidia-detect","absent":{"open":"ELRepo has the open module of its newest branch only"},"branches":{"470":{"packages":{"compute":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]},"full":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]}}},"580":{"packages":{"compute":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]},"full":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]}}},"595":{"packages":{"compute":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]},"full":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]}}}}},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-el8","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","podman-docker","runc"]}},"container_toolkit":"container-toolkit-rpm"},
"el9":{"family":"rhel","ids":["rhel","centos","rocky","almalinux","ol"],"versions":["9"],"relatives":{"eurolinux":["9"],"miraclelinux":["9"],"springdale":["9"],"circle":["9"]},"pretty":"Enterprise Linux 9","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"uek\\..*\\+debug$":["kernel-uek-debug-devel-{release}"],"uek\\.":["kernel-uek-devel-{kernel}"],"\\+rt-debug$|\\.rt\\d.*\\+debug$":["kernel-rt-debug-devel-{release}"],"\\+rt$|\\.rt\\d":["kernel-rt-devel-{release}"],"\\+debug$":["kernel-debug-devel-{release}"],"\\.elrepo\\.":{"kernel-lt":["kernel-lt-devel-{kernel}"],"kernel-ml":["kernel-ml-devel-{kernel}"]}},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"build_repositories":["epel-9"],"build_enable":[["crb","codeready-builder-for-rhel-9-x86_64-rpms","codeready-builder-for-rhel-9-rhui-rpms","codeready-builder-for-rhel-9-x86_64-rhui-rpms","rhui-codeready-builder-for-rhel-9-x86_64-rhui-rpms","ol9_codeready_builder"]],"hold_tools":["python3-dnf-plugin-versionlock"],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-rhel9","module_name":"nvidia","streams":{"open":"{branch}-open","proprietary":"{branch}-dkms"},"fabricmanager":{"<=575":"nvidia-fabric-manager",">=580":"nvidia-fabricmanager"},"imex":{">=550":"nvidia-imex"},"persistenced":"nvidia-persistenced","branches":[535,550,570,575,580,590,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"precompiled":{"signed_by":"nvidia","ids":["rhel"],"streams":{"proprietary":"{branch}"},"branches":[535,550,570,575,580,590,595],"absent":{"open":"NVIDIA publishes no precompiled open modules for RHEL"},"packages":{"compute":{"proprietary":["nvidia-driver-cuda"]},"full":{"proprietary":["nvidia-driver","nvidia-driver-cuda"]}}},"toolkits":["11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"elrepo":{"only_when_asked":true,"kernel_modules":"precompiled","signed_by":"elrepo","repository":"elrepo-9","with_repositories":["epel-9"],"module_name":"nvidia","fabricmanager":null,"detect":"nvidia-detect","absent":{"open":"ELRepo has the open module of its newest branch only"},"branches":{"470":{"packages":{"compute":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]},"full":{"proprietary":["kmod-nvidia-470xx","nvidia-x11-drv-470xx","nvidia-x11-drv-470xx-libs"]}}},"580":{"packages":{"compute":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]},"full":{"proprietary":["kmod-nvidia-580xx","nvidia-x11-drv-580xx","nvidia-x11-drv-580xx-libs"]}}},"595":{"packages":{"compute":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]},"full":{"open":["kmod-nvidia-open","nvidia-x11-drv","nvidia-x11-drv-libs"],"proprietary":["kmod-nvidia","nvidia-x11-drv","nvidia-x11-drv-libs"]}}}}},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-el9","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","podman-docker","runc"]}},"container_toolkit":"container-toolkit-rpm"},
"fedora42":{"family":"fedora","ids":["fedora"],"versions":["42"],"pretty":"Fedora 42","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"\\+debug$":["kernel-debug-devel-{release}"]},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"hold_tools":[],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-fedora42","module_name":"nvidia","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["13.0","13.1"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-fedora42","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","docker-engine-selinux","docker-selinux","moby-engine","podman-docker"]},"distro":{"packages":["moby-engine"],"engine":["moby-engine"],"version":"27.5.1"}},"container_toolkit":"container-toolkit-rpm"},
"fedora43":{"family":"fedora","ids":["fedora"],"versions":["43"],"pretty":"Fedora 43","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"\\+debug$":["kernel-debug-devel-{release}"]},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"hold_tools":[],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-fedora43","module_name":"nvidia","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,590,595],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["13.1","13.2"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-fedora43","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","docker-engine-selinux","docker-selinux","moby-engine","podman-docker"]},"distro":{"packages":["moby-engine"],"engine":["moby-engine"],"version":"28.3.0"}},"container_toolkit":"container-toolkit-rpm"},
"fedora44":{"family":"fedora","ids":["fedora"],"versions":["44"],"pretty":"Fedora 44","package_manager":"dnf","headers":["kernel-devel-{kernel}"],"headers_by_kernel":{"\\+debug$":["kernel-debug-devel-{release}"]},"matched":{"kernel-core":"kernel-devel-matched-{version}.x86_64","kernel-debug-core":"kernel-debug-devel-matched-{version}.x86_64"},"build_tools":["dkms","gcc","make"],"hold_tools":[],"max_branch":null,"initramfs":["dracut","--force","--regenerate-all"],"driver_sources":{"cuda_repo":{"repository":"cuda-fedora44","module_name":"nvidia","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","persistenced":"nvidia-persistenced","branches":[580,595,610,615],"packages":{"compute":{"open":["nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver-cuda","kmod-nvidia-latest-dkms"]},"full":{"open":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-open-dkms"],"proprietary":["nvidia-driver","nvidia-driver-cuda","kmod-nvidia-latest-dkms"]}},"toolkits":["13.3","13.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,590,595,610,615]}},"docker":{"docker_ce":{"repository":"docker-ce-fedora44","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker","docker-client","docker-common","docker-engine","docker-engine-selinux","docker-selinux","moby-engine","podman-docker"]},"distro":{"packages":["moby-engine"],"engine":["moby-engine"]}},"container_toolkit":"container-toolkit-rpm"},
"ubuntu2004":{"family":"debian","ids":["ubuntu"],"versions":["20.04"],"pretty":"Ubuntu 20.04 (focal)","codename":"focal","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted"],"module_name":"nvidia","fabricmanager":"nvidia-fabricmanager-{branch}","branches":[470,535],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[470,535],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}}},"cuda_repo":{"repository":"cuda-ubuntu2004","module_name":"nvidia","fabricmanager":"nvidia-fabricmanager-{branch}","imex":{">=550":"nvidia-imex-{branch}"},"branches":[470,535,550,570,575],"packages":{"compute":{"open":["libnvidia-compute-{branch}","nvidia-utils-{branch}","nvidia-dkms-{branch}-open"],"proprietary":["libnvidia-compute-{branch}","nvidia-utils-{branch}","nvidia-dkms-{branch}"]},"full":{"open":["nvidia-driver-{branch}-open"],"proprietary":["nvidia-driver-{branch}"]}},"toolkits":["11.0","11.1","11.2","11.3","11.4","11.5","11.6","11.7","11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"19.03.8"},"docker_ce":{"repository":"docker-ce-ubuntu2004","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit"},
"ubuntu2204":{"family":"debian","ids":["ubuntu"],"versions":["22.04"],"pretty":"Ubuntu 22.04 (jammy)","codename":"jammy","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted","multiverse"],"module_name":"nvidia","fabricmanager":"nvidia-fabricmanager-{branch}","branches":[470,535,570,580,590,595,615],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[470,535,570,580,590,595,615],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}}},"cuda_repo":{"repository":"cuda-ubuntu2204","module_name":"nvidia","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","branches":{"580":{"packages":{"compute":{"open":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580-open"],"proprietary":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580"]},"full":{"open":["nvidia-driver-580-open"],"proprietary":["nvidia-driver-580"]}}},"590":{},"595":{},"610":{},"615":{}},"packages":{"compute":{"open":["libnvidia-compute","nvidia-dkms-open"],"proprietary":["libnvidia-compute","nvidia-dkms"]},"full":{"open":["nvidia-open"],"proprietary":["cuda-drivers"]}},"toolkits":["11.7","11.8","12.0","12.1","12.2","12.3","12.4","12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[470,535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"29.1.3"},"docker_ce":{"repository":"docker-ce-ubuntu2204","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit"},
"ubuntu2404":{"family":"debian","ids":["ubuntu"],"versions":["24.04"],"pretty":"Ubuntu 24.04 (noble)","codename":"noble","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted","multiverse"],"module_name":"nvidia","fabricmanager":"nvidia-fabricmanager-{branch}","branches":[470,535,570,580,590,595,615],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[470,535,570,580,590,595,615],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}}},"cuda_repo":{"repository":"cuda-ubuntu2404","module_name":"nvidia","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","branches":{"580":{"packages":{"compute":{"open":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580-open"],"proprietary":["libnvidia-compute-580","nvidia-utils-580","nvidia-dkms-580"]},"full":{"open":["nvidia-driver-580-open"],"proprietary":["nvidia-driver-580"]}}},"590":{},"595":{},"610":{},"615":{}},"packages":{"compute":{"open":["libnvidia-compute","nvidia-dkms-open"],"proprietary":["libnvidia-compute","nvidia-dkms"]},"full":{"open":["nvidia-open"],"proprietary":["cuda-drivers"]}},"toolkits":["12.5","12.6","12.8","12.9","13.0","13.1","13.2","13.3","13.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[535,550,570,575,580,590,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"29.1.3"},"docker_ce":{"repository":"docker-ce-ubuntu2404","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit"},
"ubuntu2604":{"family":"debian","ids":["ubuntu"],"versions":["26.04"],"pretty":"Ubuntu 26.04 (resolute)","codename":"resolute","package_manager":"apt","headers":["linux-headers-{kernel}"],"build_tools":["dkms","gcc","make"],"max_branch":null,"initramfs":["update-initramfs","-u","-k","all"],"driver_sources":{"distro":{"components":["restricted","multiverse"],"module_name":"nvidia","fabricmanager":"nvidia-fabricmanager-{branch}","branches":[570,580,595,615],"packages":{"compute":{"open":["nvidia-dkms-{branch}-server-open","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["nvidia-dkms-{branch}-server-open","nvidia-driver-{branch}-server-open"],"proprietary":["nvidia-dkms-{branch}-server","nvidia-driver-{branch}-server"]}},"precompiled":{"signed_by":"distribution","branches":[570,580,595,615],"packages":{"compute":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-headless-no-dkms-{branch}-server-open","nvidia-utils-{branch}-server"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-headless-no-dkms-{branch}-server","nvidia-utils-{branch}-server"]},"full":{"open":["linux-modules-nvidia-{branch}-server-open-{kernel}","nvidia-driver-{branch}-server-open"],"proprietary":["linux-modules-nvidia-{branch}-server-{kernel}","nvidia-driver-{branch}-server"]}}}},"cuda_repo":{"repository":"cuda-ubuntu2604","module_name":"nvidia","pinning":"nvidia-driver-pinning-{branch}","fabricmanager":"nvidia-fabricmanager","imex":"nvidia-imex","branches":{"595":{},"610":{},"615":{}},"packages":{"compute":{"open":["libnvidia-compute","nvidia-dkms-open"],"proprietary":["libnvidia-compute","nvidia-dkms"]},"full":{"open":["nvidia-open"],"proprietary":["cuda-drivers"]}},"toolkits":["13.3","13.4"]},"runfile":{"only_when_asked":true,"module_name":"nvidia","fabricmanager":null,"url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run","sha256_url":"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run.sha256sum","data_centre_url":"https://us.download.nvidia.com/tesla/{version}/NVIDIA-Linux-x86_64-{version}.run","branches":[580,595,610,615]}},"docker":{"distro":{"packages":["docker.io"],"engine":["docker.io"],"version":"29.1.3"},"docker_ce":{"repository":"docker-ce-ubuntu2604","packages":["docker-ce","docker-ce-cli","containerd.io"],"engine":["docker-ce","docker-ce-cli"],"conflicts":["docker.io","docker-compose","docker-compose-v2","docker-doc","podman-docker","containerd","runc"]}},"container_toolkit":"container-toolkit"}},
"FAMILIES":{
"families":{"amazon":{"ids":["amzn"],"like":["amzn"]},"rhel":{"ids":["rhel","centos","rocky","almalinux","ol","virtuozzo","eurolinux","scientific","cloudlinux","miraclelinux","asianux","circle","springdale","rhcos","navylinux","oracle","redhat","rhv","xenenterprise","msvsphere","vzlinux","clearos","xcp-ng"],"like":["rhel","centos"],"platform":"el","not_from":20,"else":"fedora"},"fedora":{"ids":["fedora","nobara","bazzite","ultramarine","fedora-asahi-remix","fedora-coreos","bluefin","aurora","qubes","risios"],"like":["fedora"],"platform":"f"},"debian":{"ids":["debian","ubuntu","raspbian","linuxmint","pop","kali","devuan","deepin","zorin","elementary","neon","parrot","mx","pureos","lmde","proxmox","tails","ubuntu-core","uos","knoppix","siduction","bunsenlabs","antix","sparky","trisquel","endless","astra","openkylin","gnoppix","q4os","vyos","armbian","pika","peppermint","bodhi","tuxedo","linspire","ubuntukylin"],"like":["debian","ubuntu"],"keys":["DEBIAN_CODENAME","UBUNTU_CODENAME"]},"suse":{"ids":["sles","sled","sles_sap","sle_hpc","sle-hpc","sle-micro","sle-micro-rancher","sl-micro","suse","opensuse","opensuse-leap","opensuse-tumbleweed","opensuse-microos","opensuse-leap-micro","opensuse-slowroll","opensuse-aeon","caasp"],"like":["suse","opensuse","sles"]}},
"blocked":["mandriva","mageia","arch","gentoo","slackware"],
"blocked_platforms":["platform:uel"],
"bases":{"buster":"debian 10 (buster)","bullseye":"debian 11 (bullseye)","bookworm":"debian 12 (bookworm)","trixie":"debian 13 (trixie)","chimaera":"debian 11 (bullseye)","daedalus":"debian 12 (bookworm)","excalibur":"debian 13 (trixie)","bionic":"ubuntu 18.04 (bionic)","focal":"ubuntu 20.04 (focal)","jammy":"ubuntu 22.04 (jammy)","noble":"ubuntu 24.04 (noble)","resolute":"ubuntu 26.04 (resolute)"},
"followers":["linuxmint","lmde","pop","elementary","zorin","neon","tuxedo","ubuntukylin","linuxlite","bodhi","peppermint"],
"image_variants":["silverblue","kinoite","sericea","onyx","sway-atomic","budgie-atomic","cosmic-atomic","coreos","iot"],
"archive":{"suites":["stable","oldstable"],"keyrings":["debian-archive","ubuntu-archive"],"path":"/(debian[^/]*|ubuntu(-ports)?)/?$","not":"//[^/]*(ppa\\.launchpad|private-ppa\\.|esm\\.ubuntu\\.com)"}},
"DRIVER_PACKAGES":{
"packages":{"ubuntu":{"libraries":["libnvidia-compute(-\\d{3}(-server)?)?"],"modules":["(nvidia-dkms|nvidia-kernel-source)(-\\d{3}(-server)?)?(-open)?","linux-(modules|objects)-nvidia-\\d{3}(-server)?(-open)?-.+"],"parts":["nvidia-(driver|headless|headless-no-dkms|driver-lrm)-\\d{3}(-server)?(-open)?","nvidia-driver(-open)?","(nvidia-open|cuda-drivers)(-\\d{3})?","nvidia-(kernel-common|compute-utils|utils)(-\\d{3}(-server)?)?","nvidia-firmware(-\\d{3}(-server)?)?(-\\d{3}\\..+)?","libnvidia-(cfg1|common|decode|encode|extra|fbc1|gl|gpucomp)(-\\d{3}(-server)?)?","xserver-xorg-video-nvidia(-\\d{3}(-server)?)?","linux-signatures-nvidia-.+"]},"debian":{"libraries":["libcuda1","libnvidia-ml1","libnvidia-(tesla|legacy)-[\\w.]+-(cuda1|ml1)"],"modules":["nvidia-(kernel|open-kernel|kernel-open|tesla-\\d+-kernel|legacy-\\w+-kernel)-(dkms|source)"],"parts":["nvidia-driver(-bin|-cuda|-full|-libs)?","nvidia-(alternative|legacy-check|smi|kernel-support|open-kernel-support|persistenced)","nvidia-(egl|opencl|vulkan)-(common|icd)|nvidia-vdpau-driver|nvidia-cuda-mps","libcudadebugger1|libnvcuvid1|libnvoptix1","libnvidia-(allocator1|api1|cfg1|compiler|eglcore|encode1|fbc1|glcore|glvkspirv|gpucomp|ngx1|nvvm4|nvvm70)","libnvidia-(opencl1|opticalflow1|pkcs11-openssl3|present|ptxjitcompiler1|rtcore|sandboxutils|vksc-core)","(libegl-nvidia0|libglx-nvidia0|libgles-nvidia[12]|libgl1-nvidia-glvnd-glx|libnvidia-egl-\\w+-driver)","firmware-nvidia(-[\\d.]+)?-gsp|nvidia-firmware","nvidia-(tesla|legacy)-[\\w.]+-(driver|alternative|smi|legacy-check|kernel-support)"]},"nvidia_rpm":{"libraries":["nvidia-driver-((branch-\\d+|latest-dkms)-)?(cuda-libs|NVML)","libnvidia-ml"],"modules":["kmod-nvidia-(open|latest)-dkms","kmod-nvidia-(branch-)?\\d.*","kmod-nvidia-latest","(akmod|dkms)-nvidia(-open)?","nvidia-kmod-open-dkms"],"parts":["nvidia-driver(-branch-\\d+|-latest-dkms|-latest)?(-cuda|-devel|-libs|-NvFBCOpenGL)?","(nvidia-open|cuda-drivers)(-\\d{3})?","nvidia-(kmod-common|kmod-headers|persistenced|xconfig|libXNVCtrl)(-(branch-\\d+|latest-dkms))?","nvidia-(persistenced|xconfig|libXNVCtrl)(-(branch-\\d+|latest-dkms))?","libnvidia-(cfg|fbc|gpucomp)|xorg-x11-nvidia|nvidia-driver-common"]},"rpmfusion":{"libraries":["xorg-x11-drv-nvidia(-\\d+xx)?-cuda-libs"],"modules":["(akmod|kmod)-nvidia-\\d+xx(-.+)?","kmod-nvidia-open","akmod-nvidia-open"],"parts":["xorg-x11-drv-nvidia(-\\d+xx)?(-(cuda|libs|power|xorg-libs|kmodsrc|devel))?"]},"elrepo":{"libraries":["nvidia-x11-drv(-\\d+xx)?-libs"],"modules":["kmod-nvidia(-open)?(-\\d+xx)?"],"parts":["nvidia-x11-drv(-\\d+xx)?(-(32bit|compute-libs|devel))?"]}},
"publishers":{"lambda":{"name":"Lambda","urls":["//archive\\.lambda(labs)?\\.(com|ai)/"],"revisions":{"ubuntu":"-0lambda"}},"graphics_ppa":{"name":"the graphics-drivers PPA","urls":["//ppa\\.launchpad(content)?\\.net/graphics-drivers/"],"revisions":{"ubuntu":"~gpu"}},"pop":{"name":"Pop!_OS","urls":["//apt[\\w.-]*\\.pop-os\\.org/(proprietary|release)","/system76-dev/"],"revisions":{"ubuntu":"pop\\d"}},"dgx":{"name":"DGX OS","urls":["//repo\\.download\\.nvidia\\.com/baseos/"]},"cuda_local":{"name":"a local repository of NVIDIA's","source":"cuda_repo","urls":["^file:/+var/(cuda-repo|nvidia-driver-local-repo)-"],"sections":"^(cuda-\\w+-[\\d-]+-local|nvidia-driver-local)"},"cuda_repo":{"name":"NVIDIA's CUDA repository","source":"cuda_repo","urls":["/compute/cuda/repos/"],"sections":"^(gpu-ready-)?cuda(-|$)|^nvidia-cuda$","revisions":{"ubuntu":"-(1|1ubuntu1|0ubuntu1)$"},"beside":{"debian":"nvidia-driver-cuda|nvidia-kernel-open-dkms"},"vendors":"^NVIDIA","names":"kmod-nvidia-(open|latest)-dkms|kmod-nvidia-(branch-)?\\d{3}[.\\d]*(-\\d.*)?|nvidia-driver-(branch-\\d+|latest-dkms).*"},"amazon":{"name":"Amazon's NVIDIA repository","sections":"^(amazonlinux|amzn2)-nvidia","vendors":"^Amazon"},"rpmfusion":{"name":"RPM Fusion","urls":["rpmfusion"],"sections":"^rpmfusion-","vendors":"RPM Fusion","names":"xorg-x11-drv-nvidia.*"},"negativo17":{"name":"negativo17","urls":["//negativo17\\.org/"],"sections":"^(fedora|epel)-(nvidia|multimedia)","vendors":"negativo17|Simone Caronni","names":"(akmod|dkms)-nvidia|nvidia-kmod-open-dkms"},"elrepo":{"name":"ELRepo","source":"elrepo","urls":["/elrepo/"],"sections":"^elrepo","vendors":"elrepo","names":"nvidia-x11-drv.*"},"almalinux":{"name":"AlmaLinux","sections":"^almalinux-nvidia","vendors":"^AlmaLinux"},"distro_desktop":{"name":"the desktop series of Ubuntu's archive","archive":true,"revisions":{"ubuntu":"-0ubuntu\\d"},"only":{"ubuntu":"(?!.*-\\d{3}-server).*"}},"distro":{"name":"the distribution's archive","source":"distro","archive":true,"revisions":{"ubuntu":"-0ubuntu\\d","debian":"~deb\\d+u\\d+$|~bpo"},"beside":{"debian":"nvidia-alternative|nvidia-kernel-support"}}}},
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
"lambda":{"paths":["/etc/apt/preferences.d/lambda"],"refuse":"change","may_replace":true,"message":"Lambda's archive outranks every other one on this host (/etc/apt/preferences.d/lambda)","remedy":"upgrade the driver from Lambda's archive, or set nvidia_driver_replace_foreign to true after removing that pin"}},
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
"docker-ce-el8":{"kind":"rpm","url":"https://download.docker.com/linux/centos/8/x86_64/stable","key_url":"https://download.docker.com/linux/centos/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-el9":{"kind":"rpm","url":"https://download.docker.com/linux/centos/9/x86_64/stable","key_url":"https://download.docker.com/linux/centos/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-el10":{"kind":"rpm","url":"https://download.docker.com/linux/centos/10/x86_64/stable","key_url":"https://download.docker.com/linux/centos/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-fedora42":{"kind":"rpm","url":"https://download.docker.com/linux/fedora/42/x86_64/stable","key_url":"https://download.docker.com/linux/fedora/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-fedora43":{"kind":"rpm","url":"https://download.docker.com/linux/fedora/43/x86_64/stable","key_url":"https://download.docker.com/linux/fedora/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"docker-ce-fedora44":{"kind":"rpm","url":"https://download.docker.com/linux/fedora/44/x86_64/stable","key_url":"https://download.docker.com/linux/fedora/gpg","fingerprint":"060A61C51B558A7F742B77AAC52FEB6B621E9F35","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos7-os":{"kind":"rpm","url":"https://vault.centos.org/7.9.2009/os/x86_64","key_url":"https://vault.centos.org/RPM-GPG-KEY-CentOS-7","fingerprint":"6341AB2753D78A78A7C27BB124C6A8A7F4A80EB5","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos7-updates":{"kind":"rpm","url":"https://vault.centos.org/7.9.2009/updates/x86_64","key_url":"https://vault.centos.org/RPM-GPG-KEY-CentOS-7","fingerprint":"6341AB2753D78A78A7C27BB124C6A8A7F4A80EB5","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos7-extras":{"kind":"rpm","url":"https://vault.centos.org/7.9.2009/extras/x86_64","key_url":"https://vault.centos.org/RPM-GPG-KEY-CentOS-7","fingerprint":"6341AB2753D78A78A7C27BB124C6A8A7F4A80EB5","gpgcheck":true,"repo_gpgcheck":false},
"vault-centos8":{"kind":"rpm","url":"https://vault.centos.org/8.5.2111/BaseOS/x86_64/os","key_url":"https://vault.centos.org/RPM-GPG-KEY-CentOS-Official","fingerprint":"99DB70FAE1D7CE227FB6488205B555B38483C65D","gpgcheck":true,"repo_gpgcheck":false}},
"NVSWITCHES":{
"1ac1":"V100 NVSwitch",
"1ac2":"V100 NVSwitch",
"1af1":"A100 NVSwitch",
"22a3":"H100 NVSwitch"}}''')


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
REPOSITORIES: Dict[Any, Any] = _DATA['REPOSITORIES']
NVSWITCHES: Dict[Any, Any] = _DATA['NVSWITCHES']
GPUS = "=older||71|proprietary|\n\
0020 RIVA TNT\n\
0028 RIVA TNT2/TNT2 Pro\n\
0029 RIVA TNT2 Ultra\n\
002c Vanta/Vanta LT\n\
002d RIVA TNT2 Model 64/Model 64 Pro\n\
00a0 Aladdin TNT2\n\
0100 GeForce 256\n\
0101 GeForce DDR\n\
0103 Quadro\n\
0150 GeForce2 GTS/GeForce2 Pro\n\
0151 GeForce2 Ti\n\
0152 GeForce2 Ultra\n\
0153 Quadro2 Pro\n\
=older||96|proprietary|\n\
0110 GeForce2 MX/MX 400\n\
0111 GeForce2 MX 100/200\n\
0112 GeForce2 Go\n\
0113 Quadro2 MXR/EX/Go\n\
0170 GeForce4 MX 460\n\
0171 GeForce4 MX 440\n\
0172 GeForce4 MX 420\n\
0173 GeForce4 MX 440-SE\n\
0174 GeForce4 440 Go\n\
0175 GeForce4 420 Go\n\
0176 GeForce4 420 Go 32M\n\
0177 GeForce4 460 Go\n\
0178 Quadro4 550 XGL\n\
0179 GeForce4 440 Go 64M\n\
017a Quadro NVS 400\n\
017c Quadro4 500 GoGL\n\
017d GeForce4 410 Go 16M\n\
0181 GeForce4 MX 440 with AGP8X\n\
0182 GeForce4 MX 440SE with AGP8X\n\
0183 GeForce4 MX 420 with AGP8X\n\
0185 GeForce4 MX 4000\n\
0188 Quadro4 580 XGL\n\
018a Quadro NVS 280 SD\n\
018b Quadro4 380 XGL\n\
018c Quadro NVS 50 PCI\n\
01a0 GeForce2 Integrated GPU\n\
01f0 GeForce4 MX Integrated GPU\n\
0200 GeForce3\n\
0201 GeForce3 Ti 200\n\
0202 GeForce3 Ti 500\n\
0203 Quadro DCC\n\
0250 GeForce4 Ti 4600\n\
0251 GeForce4 Ti 4400\n\
0253 GeForce4 Ti 4200\n\
0258 Quadro4 900 XGL\n\
0259 Quadro4 750 XGL\n\
025b Quadro4 700 XGL\n\
0280 GeForce4 Ti 4800\n\
0281 GeForce4 Ti 4200 with AGP8X\n\
0282 GeForce4 Ti 4800 SE\n\
0286 GeForce4 4200 Go\n\
0288 Quadro4 980 XGL\n\
0289 Quadro4 780 XGL\n\
028c Quadro4 700 GoGL\n\
=older||173|proprietary|\n\
00fa GeForce PCX 5750\n\
00fb GeForce PCX 5900\n\
00fc Quadro FX 330\n\
00fd Quadro FX 330\n\
00fe Quadro FX 1300\n\
0301 GeForce FX 5800 Ultra\n\
0302 GeForce FX 5800\n\
0308 Quadro FX 2000\n\
0309 Quadro FX 1000\n\
0311 GeForce FX 5600 Ultra\n\
0312 GeForce FX 5600\n\
0314 GeForce FX 5600XT\n\
031a GeForce FX Go5600\n\
031b GeForce FX Go5650\n\
031c Quadro FX Go700\n\
0320 GeForce FX 5200\n\
0321 GeForce FX 5200 Ultra\n\
0322 GeForce FX 5200\n\
0323 GeForce FX 5200LE\n\
0324 GeForce FX Go5200\n\
0325 GeForce FX Go5250\n\
0326 GeForce FX 5500\n\
0327 GeForce FX 5100\n\
0328 GeForce FX Go5200 32M/64M\n\
032a Quadro NVS 55/280 PCI\n\
032b Quadro FX 500/FX 600\n\
032c GeForce FX Go53xx\n\
032d GeForce FX Go5100\n\
0330 GeForce FX 5900 Ultra\n\
0331 GeForce FX 5900\n\
0332 GeForce FX 5900XT\n\
0333 GeForce FX 5950 Ultra\n\
0334 GeForce FX 5900ZT\n\
0338 Quadro FX 3000\n\
033f Quadro FX 700\n\
0341 GeForce FX 5700 Ultra\n\
0342 GeForce FX 5700\n\
0343 GeForce FX 5700LE\n\
0344 GeForce FX 5700VE\n\
0347 GeForce FX Go5700\n\
0348 GeForce FX Go5700\n\
034c Quadro FX Go1000\n\
034e Quadro FX 1100\n\
=older||304|proprietary|\n\
0040 GeForce 6800 Ultra\n\
0041 GeForce 6800\n\
0042 GeForce 6800 LE\n\
0043 GeForce 6800 XE\n\
0044 GeForce 6800 XT\n\
0045 GeForce 6800 GT\n\
0046 GeForce 6800 GT\n\
0047 GeForce 6800 GS\n\
0048 GeForce 6800 XT\n\
004e Quadro FX 4000\n\
0090 GeForce 7800 GTX\n\
0091 GeForce 7800 GTX\n\
0092 GeForce 7800 GT\n\
0093 GeForce 7800 GS\n\
0095 GeForce 7800 SLI\n\
0098 GeForce Go 7800\n\
0099 GeForce Go 7800 GTX\n\
009d Quadro FX 4500\n\
00c0 GeForce 6800 GS\n\
00c1 GeForce 6800\n\
00c2 GeForce 6800 LE\n\
00c3 GeForce 6800 XT\n\
00c8 GeForce Go 6800\n\
00c9 GeForce Go 6800 Ultra\n\
00cc Quadro FX Go1400\n\
00cd Quadro FX 3450/4000 SDI\n\
00ce Quadro FX 1400\n\
00f1 GeForce 6600 GT\n\
00f2 GeForce 6600\n\
00f3 GeForce 6200\n\
00f4 GeForce 6600 LE\n\
00f5 GeForce 7800 GS\n\
00f6 GeForce 6800 GS\n\
00f8 Quadro FX 3400\n\
00f9 GeForce 6800 Ultra\n\
0140 GeForce 6600 GT\n\
0141 GeForce 6600\n\
0142 GeForce 6600 LE\n\
0143 GeForce 6600 VE\n\
0144 GeForce Go 6600\n\
0145 GeForce 6610 XL\n\
0146 GeForce Go 6600 TE/6200 TE\n\
0147 GeForce 6700 XL\n\
0148 GeForce Go 6600\n\
0149 GeForce Go 6600 GT\n\
014a Quadro NVS 440\n\
014c Quadro FX 540M\n\
014d Quadro FX 550\n\
014e Quadro FX 540\n\
014f GeForce 6200\n\
0160 GeForce 6500\n\
0161 GeForce 6200 TurboCache(TM)\n\
0162 GeForce 6200SE TurboCache(TM)\n\
0163 GeForce 6200 LE\n\
0164 GeForce Go 6200\n\
0165 Quadro NVS 285\n\
0166 GeForce Go 6400\n\
0167 GeForce Go 6200\n\
0168 GeForce Go 6400\n\
0169 GeForce 6250\n\
016a GeForce 7100 GS\n\
01d0 GeForce 7350 LE\n\
01d1 GeForce 7300 LE\n\
01d2 GeForce 7550 LE\n\
01d3 GeForce 7300 SE/7200 GS\n\
01d6 GeForce Go 7200\n\
01d7 GeForce Go 7300\n\
01d8 GeForce Go 7400\n\
01da Quadro NVS 110M\n\
01db Quadro NVS 120M\n\
01dc Quadro FX 350M\n\
01dd GeForce 7500 LE\n\
01de Quadro FX 350\n\
01df GeForce 7300 GS\n\
0211 GeForce 6800\n\
0212 GeForce 6800 LE\n\
0215 GeForce 6800 GT\n\
0218 GeForce 6800 XT\n\
0221 GeForce 6200\n\
0222 GeForce 6200 A-LE\n\
0240 GeForce 6150\n\
0241 GeForce 6150 LE\n\
0242 GeForce 6100\n\
0244 GeForce Go 6150\n\
0245 Quadro NVS 210S / GeForce 6150LE\n\
0247 GeForce Go 6100\n\
0290 GeForce 7900 GTX\n\
0291 GeForce 7900 GT/GTO\n\
0292 GeForce 7900 GS\n\
0293 GeForce 7950 GX2\n\
0294 GeForce 7950 GX2\n\
0295 GeForce 7950 GT\n\
0297 GeForce Go 7950 GTX\n\
0298 GeForce Go 7900 GS\n\
0299 Quadro NVS 510M\n\
029a Quadro FX 2500M\n\
029b Quadro FX 1500M\n\
029c Quadro FX 5500\n\
029d Quadro FX 3500\n\
029e Quadro FX 1500\n\
029f Quadro FX 4500 X2\n\
02e0 GeForce 7600 GT\n\
02e1 GeForce 7600 GS\n\
02e2 GeForce 7300 GT\n\
02e3 GeForce 7900 GS\n\
02e4 GeForce 7950 GT\n\
038b GeForce 7650 GS\n\
0390 GeForce 7650 GS\n\
0391 GeForce 7600 GT\n\
0392 GeForce 7600 GS\n\
0393 GeForce 7300 GT\n\
0394 GeForce 7600 LE\n\
0395 GeForce 7300 GT\n\
0397 GeForce Go 7700\n\
0398 GeForce Go 7600\n\
0399 GeForce Go 7600 GT\n\
039c Quadro FX 560M\n\
039e Quadro FX 560\n\
03d0 GeForce 6150SE nForce 430\n\
03d1 GeForce 6100 nForce 405\n\
03d2 GeForce 6100 nForce 400\n\
03d5 GeForce 6100 nForce 420\n\
03d6 GeForce 7025 / nForce 630a\n\
0531 GeForce 7150M / nForce 630M\n\
0533 GeForce 7000M / nForce 610M\n\
053a GeForce 7050 PV / nForce 630a\n\
053b GeForce 7050 PV / nForce 630a\n\
053e GeForce 7025 / nForce 630a\n\
07e0 GeForce 7150 / nForce 630i\n\
07e1 GeForce 7100 / nForce 630i\n\
07e2 GeForce 7050 / nForce 630i\n\
07e3 GeForce 7050 / nForce 610i\n\
07e5 GeForce 7050 / nForce 620i\n\
=tesla||340|proprietary|\n\
0191 GeForce 8800 GTX\n\
0193 GeForce 8800 GTS\n\
0194 GeForce 8800 Ultra\n\
0197 Tesla C870\n\
019d Quadro FX 5600\n\
019e Quadro FX 4600\n\
0400 GeForce 8600 GTS\n\
0401 GeForce 8600 GT\n\
0402 GeForce 8600 GT\n\
0403 GeForce 8600 GS\n\
0404 GeForce 8400 GS\n\
0405 GeForce 9500M GS\n\
0406 GeForce 8300 GS\n\
0407 GeForce 8600M GT\n\
0408 GeForce 9650M GS\n\
0409 GeForce 8700M GT\n\
040a Quadro FX 370\n\
040b Quadro NVS 320M\n\
040c Quadro FX 570M\n\
040d Quadro FX 1600M\n\
040e Quadro FX 570\n\
040f Quadro FX 1700\n\
0410 GeForce GT 330\n\
0420 GeForce 8400 SE\n\
0421 GeForce 8500 GT\n\
0422 GeForce 8400 GS\n\
0423 GeForce 8300 GS\n\
0424 GeForce 8400 GS\n\
0425 GeForce 8600M GS\n\
0426 GeForce 8400M GT\n\
0427 GeForce 8400M GS\n\
0428 GeForce 8400M G\n\
0429 Quadro NVS 140M\n\
042a Quadro NVS 130M\n\
042b Quadro NVS 135M\n\
042c GeForce 9400 GT\n\
042d Quadro FX 360M\n\
042e GeForce 9300M G\n\
042f Quadro NVS 290\n\
05e0 GeForce GTX 295\n\
05e1 GeForce GTX 280\n\
05e2 GeForce GTX 260\n\
05e3 GeForce GTX 285\n\
05e6 GeForce GTX 275\n\
05e7 Tesla C1060\n\
05ea GeForce GTX 260\n\
05eb GeForce GTX 295\n\
05ed Quadroplex 2200 D2\n\
05f8 Quadroplex 2200 S4\n\
05f9 Quadro CX\n\
05fd Quadro FX 5800\n\
05fe Quadro FX 4800\n\
05ff Quadro FX 3800\n\
0600 GeForce 8800 GTS 512\n\
0601 GeForce 9800 GT\n\
0602 GeForce 8800 GT\n\
0603 GeForce GT 230\n\
0604 GeForce 9800 GX2\n\
0605 GeForce 9800 GT\n\
0606 GeForce 8800 GS\n\
0607 GeForce GTS 240\n\
0608 GeForce 9800M GTX\n\
0609 GeForce 8800M GTS\n\
060a GeForce GTX 280M\n\
060b GeForce 9800M GT\n\
060c GeForce 8800M GTX\n\
060d GeForce 8800 GS\n\
060f GeForce GTX 285M\n\
0610 GeForce 9600 GSO\n\
0611 GeForce 8800 GT\n\
0612 GeForce 9800 GTX/9800 GTX+\n\
0613 GeForce 9800 GTX+\n\
0614 GeForce 9800 GT\n\
0615 GeForce GTS 250\n\
0617 GeForce 9800M GTX\n\
0618 GeForce GTX 260M\n\
0619 Quadro FX 4700 X2\n\
061a Quadro FX 3700\n\
061b Quadro VX 200\n\
061c Quadro FX 3600M\n\
061d Quadro FX 2800M\n\
061e Quadro FX 3700M\n\
061f Quadro FX 3800M\n\
0621 GeForce GT 230\n\
0622 GeForce 9600 GT\n\
0623 GeForce 9600 GS\n\
0625 GeForce 9600 GSO 512\n\
0626 GeForce GT 130\n\
0627 GeForce GT 140\n\
0628 GeForce 9800M GTS\n\
062a GeForce 9700M GTS\n\
062b GeForce 9800M GS\n\
062c GeForce 9800M GTS\n\
062d GeForce 9600 GT\n\
062e GeForce 9600 GT\n\
0630 GeForce 9700 S\n\
0631 GeForce GTS 160M\n\
0632 GeForce GTS 150M\n\
0635 GeForce 9600 GSO\n\
0637 GeForce 9600 GT\n\
0638 Quadro FX 1800\n\
063a Quadro FX 2700M\n\
0640 GeForce 9500 GT\n\
0641 GeForce 9400 GT\n\
0643 GeForce 9500 GT\n\
0644 GeForce 9500 GS\n\
0645 GeForce 9500 GS\n\
0646 GeForce GT 120\n\
0647 GeForce 9600M GT\n\
0648 GeForce 9600M GS\n\
0649 GeForce 9600M GT\n\
064a GeForce 9700M GT\n\
064b GeForce 9500M G\n\
064c GeForce 9650M GT\n\
0651 GeForce G 110M\n\
0652 GeForce GT 130M\n\
0653 GeForce GT 120M\n\
0654 GeForce GT 220M\n\
0655 GeForce GT 120\n\
0656 GeForce GT 120\n\
0658 Quadro FX 380\n\
0659 Quadro FX 580\n\
065a Quadro FX 1700M\n\
065b GeForce 9400 GT\n\
065c Quadro FX 770M\n\
06e0 GeForce 9300 GE\n\
06e1 GeForce 9300 GS\n\
06e2 GeForce 8400\n\
06e3 GeForce 8400 SE\n\
06e4 GeForce 8400 GS\n\
06e5 GeForce 9300M GS\n\
06e6 GeForce G100\n\
06e7 GeForce 9300 SE\n\
06e8 GeForce 9200M GS\n\
06e9 GeForce 9300M GS\n\
06ea Quadro NVS 150M\n\
06eb Quadro NVS 160M\n\
06ec GeForce G 105M\n\
06ef GeForce G 103M\n\
06f1 GeForce G105M\n\
06f8 Quadro NVS 420\n\
06f9 Quadro FX 370 LP\n\
06fa Quadro NVS 450\n\
06fb Quadro FX 370M\n\
06fd Quadro NVS 295\n\
06ff HICx16 + Graphics\n\
0840 GeForce 8200M\n\
0844 GeForce 9100M G\n\
0845 GeForce 8200M G\n\
0846 GeForce 9200\n\
0847 GeForce 9100\n\
0848 GeForce 8300\n\
0849 GeForce 8200\n\
084a nForce 730a\n\
084b GeForce 9200\n\
084c nForce 980a/780a SLI\n\
084d nForce 750a SLI\n\
084f GeForce 8100 / nForce 720a\n\
0860 GeForce 9400\n\
0861 GeForce 9400\n\
0862 GeForce 9400M G\n\
0863 GeForce 9400M\n\
0864 GeForce 9300\n\
0865 ION\n\
0866 GeForce 9400M G\n\
0867 GeForce 9400\n\
0868 nForce 760i SLI\n\
0869 GeForce 9400\n\
086a GeForce 9400\n\
086c GeForce 9300 / nForce 730i\n\
086d GeForce 9200\n\
086e GeForce 9100M G\n\
086f GeForce 8200M G\n\
0870 GeForce 9400M\n\
0871 GeForce 9200\n\
0872 GeForce G102M\n\
0873 GeForce G102M\n\
0874 ION\n\
0876 ION\n\
087a GeForce 9400\n\
087d ION\n\
087e ION LE\n\
087f ION LE\n\
08a0 GeForce 320M\n\
08a2 GeForce 320M\n\
08a3 GeForce 320M\n\
08a4 GeForce 320M\n\
08a5 GeForce 320M\n\
0a20 GeForce GT 220\n\
0a22 GeForce 315\n\
0a23 GeForce 210\n\
0a26 GeForce 405\n\
0a27 GeForce 405\n\
0a28 GeForce GT 230M\n\
0a29 GeForce GT 330M\n\
0a2a GeForce GT 230M\n\
0a2b GeForce GT 330M\n\
0a2c NVS 5100M\n\
0a2d GeForce GT 320M\n\
0a32 GeForce GT 415\n\
0a34 GeForce GT 240M\n\
0a35 GeForce GT 325M\n\
0a38 Quadro 400\n\
0a3c Quadro FX 880M\n\
0a60 GeForce G210\n\
0a62 GeForce 205\n\
0a63 GeForce 310\n\
0a64 Second Generation ION\n\
0a65 GeForce 210\n\
0a66 GeForce 310\n\
0a67 GeForce 315\n\
0a68 GeForce G105M\n\
0a69 GeForce G105M\n\
0a6a NVS 2100M\n\
0a6c NVS 3100M\n\
0a6e GeForce 305M\n\
0a6f Second Generation ION\n\
0a70 GeForce 310M\n\
0a71 GeForce 305M\n\
0a72 GeForce 310M\n\
0a73 GeForce 305M\n\
0a74 GeForce G210M\n\
0a75 GeForce 310M\n\
0a76 Second Generation ION\n\
0a78 Quadro FX 380 LP\n\
0a7a GeForce 315M\n\
0a7c Quadro FX 380M\n\
0ca0 GeForce GT 330\n\
0ca2 GeForce GT 320\n\
0ca3 GeForce GT 240\n\
0ca4 GeForce GT 340\n\
0ca5 GeForce GT 220\n\
0ca7 GeForce GT 330\n\
0ca8 GeForce GTS 260M\n\
0ca9 GeForce GTS 250M\n\
0cac GeForce GT 220\n\
0caf GeForce GT 335M\n\
0cb0 GeForce GTS 350M\n\
0cb1 GeForce GTS 360M\n\
0cbc Quadro FX 1800M\n\
10c0 GeForce 9300 GS\n\
10c3 GeForce 8400GS\n\
10c5 GeForce 405\n\
10d8 NVS 300\n\
=fermi||390|proprietary|\n\
06c0 GeForce GTX 480\n\
06c4 GeForce GTX 465\n\
06ca GeForce GTX 480M\n\
06cd GeForce GTX 470\n\
06d1 Tesla C2050 / C2070\n\
06d2 Tesla M2070\n\
06d8 Quadro 6000\n\
06d9 Quadro 5000\n\
06da Quadro 5000M\n\
06dc Quadro 6000\n\
06dd Quadro 4000\n\
06de Tesla T20 Processor\n\
06df Tesla M2070-Q\n\
0dc0 GeForce GT 440\n\
0dc4 GeForce GTS 450\n\
0dc5 GeForce GTS 450\n\
0dc6 GeForce GTS 450\n\
0dcd GeForce GT 555M\n\
0dce GeForce GT 555M\n\
0dd1 GeForce GTX 460M\n\
0dd2 GeForce GT 445M\n\
0dd3 GeForce GT 435M\n\
0dd6 GeForce GT 550M\n\
0dd8 Quadro 2000\n\
0dda Quadro 2000M\n\
0de0 GeForce GT 440\n\
0de1 GeForce GT 430\n\
0de2 GeForce GT 420\n\
0de3 GeForce GT 635M\n\
0de4 GeForce GT 520\n\
0de5 GeForce GT 530\n\
0de7 GeForce GT 610\n\
0de8 GeForce GT 620M\n\
0de9 GeForce GT 630M\n\
0dea GeForce 610M\n\
0deb GeForce GT 555M\n\
0dec GeForce GT 525M\n\
0ded GeForce GT 520M\n\
0dee GeForce GT 415M\n\
0def NVS 5400M\n\
0df0 GeForce GT 425M\n\
0df1 GeForce GT 420M\n\
0df2 GeForce GT 435M\n\
0df3 GeForce GT 420M\n\
0df4 GeForce GT 540M\n\
0df5 GeForce GT 525M\n\
0df6 GeForce GT 550M\n\
0df7 GeForce GT 520M\n\
0df8 Quadro 600\n\
0df9 Quadro 500M\n\
0dfa Quadro 1000M\n\
0dfc NVS 5200M\n\
0e22 GeForce GTX 460\n\
0e23 GeForce GTX 460 SE\n\
0e24 GeForce GTX 460\n\
0e30 GeForce GTX 470M\n\
0e31 GeForce GTX 485M\n\
0e3a Quadro 3000M\n\
0e3b Quadro 4000M\n\
0f00 GeForce GT 630\n\
0f01 GeForce GT 620\n\
0f02 GeForce GT 730\n\
0f03 GeForce GT 610\n\
1040 GeForce GT 520\n\
1042 GeForce 510\n\
1048 GeForce 605\n\
1049 GeForce GT 620\n\
104a GeForce GT 610\n\
104b GeForce GT 625 (OEM)\n\
104c GeForce GT 705\n\
1050 GeForce GT 520M\n\
1051 GeForce GT 520MX\n\
1052 GeForce GT 520M\n\
1054 GeForce 410M\n\
1055 GeForce 410M\n\
1056 NVS 4200M\n\
1057 NVS 4200M\n\
1058 GeForce 610M\n\
1059 GeForce 610M\n\
105a GeForce 610M\n\
105b GeForce 705M\n\
107c NVS 315\n\
107d NVS 310\n\
1080 GeForce GTX 580\n\
1081 GeForce GTX 570\n\
1082 GeForce GTX 560 Ti\n\
1084 GeForce GTX 560\n\
1086 GeForce GTX 570\n\
1087 GeForce GTX 560 Ti\n\
1088 GeForce GTX 590\n\
1089 GeForce GTX 580\n\
108b GeForce GTX 580\n\
1091 Tesla M2090\n\
1094 Tesla M2075\n\
1096 Tesla C2075\n\
109a Quadro 5010M\n\
109b Quadro 7000\n\
1140 GeForce 820M\n\
1200 GeForce GTX 560 Ti\n\
1201 GeForce GTX 560\n\
1203 GeForce GTX 460 SE v2\n\
1205 GeForce GTX 460 v2\n\
1206 GeForce GTX 555\n\
1207 GeForce GT 645\n\
1208 GeForce GTX 560 SE\n\
1210 GeForce GTX 570M\n\
1211 GeForce GTX 580M\n\
1212 GeForce GTX 675M\n\
1213 GeForce GTX 670M\n\
1241 GeForce GT 545\n\
1243 GeForce GT 545\n\
1244 GeForce GTX 550 Ti\n\
1245 GeForce GTS 450\n\
1246 GeForce GT 550M\n\
1247 GeForce GT 555M\n\
1248 GeForce GT 555M\n\
1249 GeForce GTS 450\n\
124b GeForce GT 640\n\
124d GeForce GT 555M\n\
1251 GeForce GTX 560M\n\
=kepler||367|proprietary|3.0\n\
0fef GRID K340\n\
0ff2 GRID K1\n\
11bf GRID K2\n\
=kepler||470|proprietary|3.0\n\
0fc0 GeForce GT 640 OEM\n\
0fc1 GeForce GT 640\n\
0fc2 GeForce GT 630 OEM\n\
0fc6 GeForce GTX 650\n\
0fc8 GeForce GT 740\n\
0fc9 GeForce GT 730\n\
0fcd GeForce GT 755M\n\
0fce GeForce GT 640M LE\n\
0fd1 GeForce GT 650M\n\
0fd2 GeForce GT 640M\n\
0fd3 GeForce GT 640M LE\n\
0fd4 GeForce GTX 660M\n\
0fd5 GeForce GT 650M\n\
0fd8 GeForce GT 640M\n\
0fd9 GeForce GT 645M\n\
0fdf GeForce GT 740M\n\
0fe0 GeForce GTX 660M\n\
0fe1 GeForce GT 730M\n\
0fe2 GeForce GT 745M\n\
0fe3 GeForce GT 745M\n\
0fe4 GeForce GT 750M\n\
0fe9 GeForce GT 750M\n\
0fea GeForce GT 755M\n\
0fec GeForce 710A\n\
0fed GeForce 820M\n\
0fee GeForce 810M\n\
0ff3 Quadro K420\n\
0ff6 Quadro K1100M\n\
0ff8 Quadro K500M\n\
0ff9 Quadro K2000D\n\
0ffa Quadro K600\n\
0ffb Quadro K2000M\n\
0ffc Quadro K1000M\n\
0ffd NVS 510\n\
0ffe Quadro K2000\n\
0fff Quadro 410\n\
1180 GeForce GTX 680\n\
1183 GeForce GTX 660 Ti\n\
1184 GeForce GTX 770\n\
1185 GeForce GTX 660\n\
1187 GeForce GTX 760\n\
1188 GeForce GTX 690\n\
1189 GeForce GTX 670\n\
118a GRID K520\n\
118e GeForce GTX 760 (192-bit)\n\
118f Tesla K10\n\
1193 GeForce GTX 760 Ti OEM\n\
1194 Tesla K8\n\
1195 GeForce GTX 660\n\
1198 GeForce GTX 880M\n\
1199 GeForce GTX 870M\n\
119a GeForce GTX 860M\n\
119d GeForce GTX 775M\n\
119e GeForce GTX 780M\n\
119f GeForce GTX 780M\n\
11a0 GeForce GTX 680M\n\
11a1 GeForce GTX 670MX\n\
11a2 GeForce GTX 675MX\n\
11a3 GeForce GTX 680MX\n\
11a7 GeForce GTX 675MX\n\
11b4 Quadro K4200\n\
11b6 Quadro K3100M\n\
11b7 Quadro K4100M\n\
11b8 Quadro K5100M\n\
11ba Quadro K5000\n\
11bc Quadro K5000M\n\
11bd Quadro K4000M\n\
11be Quadro K3000M\n\
11c0 GeForce GTX 660\n\
11c2 GeForce GTX 650 Ti BOOST\n\
11c3 GeForce GTX 650 Ti\n\
11c4 GeForce GTX 645\n\
11c5 GeForce GT 740\n\
11c6 GeForce GTX 650 Ti\n\
11c8 GeForce GTX 650\n\
11cb GeForce GT 740\n\
11e0 GeForce GTX 770M\n\
11e1 GeForce GTX 765M\n\
11e2 GeForce GTX 765M\n\
11e3 GeForce GTX 760M\n\
11fa Quadro K4000\n\
11fc Quadro K2100M\n\
=kepler||470|proprietary|3.5\n\
1001 GeForce GTX TITAN Z\n\
1004 GeForce GTX 780\n\
1005 GeForce GTX TITAN\n\
1007 GeForce GTX 780\n\
1008 GeForce GTX 780 Ti\n\
100a GeForce GTX 780 Ti\n\
100c GeForce GTX TITAN Black\n\
1021 Tesla K20Xm\n\
1022 Tesla K20c\n\
1023 Tesla K40m\n\
1024 Tesla K40c\n\
1026 Tesla K20s\n\
1027 Tesla K40st\n\
1028 Tesla K20m\n\
1029 Tesla K40s\n\
102a Tesla K40t\n\
103a Quadro K6000\n\
103c Quadro K5200\n\
1280 GeForce GT 635\n\
1281 GeForce GT 710\n\
1282 GeForce GT 640\n\
1284 GeForce GT 630\n\
1286 GeForce GT 720\n\
1287 GeForce GT 730\n\
1288 GeForce GT 720\n\
1289 GeForce GT 710\n\
128b GeForce GT 710\n\
1290 GeForce GT 730M\n\
1291 GeForce GT 735M\n\
1292 GeForce GT 740M\n\
1293 GeForce GT 730M\n\
1295 GeForce 710M\n\
1296 GeForce 825M\n\
1298 GeForce GT 720M\n\
1299 GeForce 920M\n\
129a GeForce 910M\n\
12b9 Quadro K610M\n\
12ba Quadro K510M\n\
=kepler||470|proprietary|3.7\n\
102d Tesla K80\n\
=maxwell||580|proprietary|5.0\n\
1340 GeForce 830M\n\
1341 GeForce 840M\n\
1344 GeForce 845M\n\
1346 GeForce 930M\n\
1347 GeForce 940M\n\
1348 GeForce 945M\n\
1349 GeForce 930M\n\
134b GeForce 940MX\n\
134d GeForce 940MX\n\
134e GeForce 930MX\n\
134f GeForce 920MX\n\
137a N15M-Q3\n\
137b Quadro M520\n\
137d GeForce 940A\n\
1380 GeForce GTX 750 Ti\n\
1381 GeForce GTX 750\n\
1382 GeForce GTX 745\n\
1390 GeForce 845M\n\
1391 GeForce GTX 850M\n\
1392 GeForce GTX 860M\n\
1393 GeForce 840M\n\
1398 GeForce 845M\n\
1399 GeForce 945M\n\
139a GeForce GTX 950M\n\
139b GeForce GTX 960M\n\
139c GeForce 940M\n\
139d GeForce GTX 750 Ti\n\
13b0 Quadro M2000M\n\
13b1 Quadro M1000M\n\
13b2 Quadro M600M\n\
13b3 Quadro K2200M\n\
13b4 Quadro M620\n\
13b6 Quadro M1200\n\
13b9 NVS 810\n\
13ba Quadro K2200\n\
13bb Quadro K620\n\
13bc Quadro K1200\n\
174d GeForce MX130\n\
174e GeForce MX110\n\
179c GeForce 940MX\n\
=maxwell||580|proprietary|5.2\n\
13c0 GeForce GTX 980\n\
13c2 GeForce GTX 970\n\
13d7 GeForce GTX 980M\n\
13d8 GeForce GTX 970M\n\
13d9 GeForce GTX 965M\n\
13da GeForce GTX 980\n\
13f0 Quadro M5000\n\
13f1 Quadro M4000\n\
13f2 Tesla M60\n\
13f3 Tesla M6\n\
13f8 Quadro M5000M\n\
13f9 Quadro M4000M\n\
13fa Quadro M3000M\n\
13fb Quadro M5500\n\
1401 GeForce GTX 960\n\
1402 GeForce GTX 950\n\
1406 GeForce GTX 960\n\
1407 GeForce GTX 750\n\
1427 GeForce GTX 965M\n\
1430 Quadro M2000\n\
1431 Tesla M4\n\
1436 Quadro M2200\n\
1617 GeForce GTX 980M\n\
1618 GeForce GTX 970M\n\
1619 GeForce GTX 965M\n\
161a GeForce GTX 980\n\
1667 GeForce GTX 965M\n\
17c2 GeForce GTX TITAN X\n\
17c8 GeForce GTX 980 Ti\n\
17f0 Quadro M6000\n\
17f1 Quadro M6000 24GB\n\
17fd Tesla M40\n\
=pascal|367|580|proprietary|6.0\n\
15f0 Quadro GP100\n\
15f7 Tesla P100-PCIE-12GB\n\
15f8 Tesla P100-PCIE-16GB\n\
15f9 Tesla P100-SXM2-16GB\n\
=pascal|367|580|proprietary|6.1\n\
1b00 TITAN X (Pascal)\n\
1b02 TITAN Xp\n\
1b06 GeForce GTX 1080 Ti\n\
1b30 Quadro P6000\n\
1b38 Tesla P40\n\
1b80 GeForce GTX 1080\n\
1b81 GeForce GTX 1070\n\
1b82 GeForce GTX 1070 Ti\n\
1b83 GeForce GTX 1060 6GB\n\
1b84 GeForce GTX 1060 3GB\n\
1b87 P104-100\n\
1ba0 GeForce GTX 1080\n\
1ba1 GeForce GTX 1070\n\
1ba2 GeForce GTX 1070\n\
1bb0 Quadro P5000\n\
1bb1 Quadro P4000\n\
1bb3 Tesla P4\n\
1bb4 Tesla P6\n\
1bb5 Quadro P5200\n\
1bb6 Quadro P5000\n\
1bb7 Quadro P4000\n\
1bb8 Quadro P3000\n\
1bb9 Quadro P4200\n\
1bbb Quadro P3200\n\
1bc7 P104-101 (GP104)\n\
1be0 GeForce GTX 1080\n\
1be1 GeForce GTX 1070\n\
1c02 GeForce GTX 1060 3GB\n\
1c03 GeForce GTX 1060 6GB\n\
1c04 GeForce GTX 1060 5GB\n\
1c06 GeForce GTX 1060 6GB\n\
1c07 P106-100\n\
1c09 P106-090\n\
1c20 GeForce GTX 1060\n\
1c21 GeForce GTX 1050 Ti\n\
1c22 GeForce GTX 1050\n\
1c23 GeForce GTX 1060\n\
1c30 Quadro P2000\n\
1c31 Quadro P2200\n\
1c60 GeForce GTX 1060\n\
1c61 GeForce GTX 1050 Ti\n\
1c62 GeForce GTX 1050\n\
1c81 GeForce GTX 1050\n\
1c82 GeForce GTX 1050 Ti\n\
1c83 GeForce GTX 1050\n\
1c8c GeForce GTX 1050 Ti\n\
1c8d GeForce GTX 1050\n\
1c8f GeForce GTX 1050 Ti\n\
1c90 GeForce MX150\n\
1c91 GeForce GTX 1050\n\
1c92 GeForce GTX 1050\n\
1c94 GeForce MX350\n\
1c96 GeForce MX350\n\
1cb1 Quadro P1000\n\
1cb2 Quadro P600\n\
1cb3 Quadro P400\n\
1cb6 Quadro P620\n\
1cba Quadro P2000\n\
1cbb Quadro P1000\n\
1cbc Quadro P600\n\
1cbd Quadro P620\n\
1cfa Quadro P2000\n\
1cfb Quadro P1000\n\
1d01 GeForce GT 1030\n\
1d02 GeForce GT 1010\n\
1d10 GeForce MX150\n\
1d11 GeForce MX230\n\
1d12 GeForce MX150\n\
1d13 GeForce MX250\n\
1d16 GeForce MX330\n\
1d33 Quadro P500\n\
1d34 Quadro P520\n\
1d52 GeForce MX250\n\
=volta|384|580|proprietary|7.0\n\
1d81 TITAN V\n\
1db1 Tesla V100-SXM2-16GB\n\
1db3 Tesla V100-FHHL-16GB\n\
1db4 Tesla V100-PCIE-16GB\n\
1db5 Tesla V100-SXM2-32GB\n\
1db6 Tesla V100-PCIE-32GB\n\
1db7 Tesla V100-DGXS-32GB\n\
1db8 Tesla V100-SXM3-32GB\n\
1dba Quadro GV100\n\
1df0 Tesla PG500-216\n\
1df2 Tesla PG503-216\n\
1df5 Tesla V100-SXM2-16GB\n\
1df6 Tesla V100S-PCIE-32GB\n\
=turing|410||open,proprietary|7.5\n\
1e02 TITAN RTX\n\
1e04 GeForce RTX 2080 Ti\n\
1e07 GeForce RTX 2080 Ti\n\
1e09 CMP 50HX\n\
1e30 Quadro RTX 6000\n\
1e36 Quadro RTX 6000\n\
1e37 Tesla T10 16GB / GRID RTX T10-2/T10-4/T10-8\n\
1e78 Quadro RTX 8000\n\
1e81 GeForce RTX 2080 SUPER\n\
1e82 GeForce RTX 2080\n\
1e84 GeForce RTX 2070 SUPER\n\
1e87 GeForce RTX 2080\n\
1e89 GeForce RTX 2060\n\
1e90 GeForce RTX 2080\n\
1e91 GeForce RTX 2070 Super\n\
1e93 GeForce RTX 2080 Super\n\
1eb0 Quadro RTX 5000\n\
1eb1 Quadro RTX 4000\n\
1eb4 T4G\n\
1eb5 Quadro RTX 5000\n\
1eb6 Quadro RTX 4000\n\
1eb8 Tesla T4\n\
1ec2 GeForce RTX 2070 SUPER\n\
1ec7 GeForce RTX 2070 SUPER\n\
1ed0 GeForce RTX 2080\n\
1ed1 GeForce RTX 2070 Super\n\
1ed3 GeForce RTX 2080 Super\n\
1ef5 Quadro RTX 5000\n\
1f02 GeForce RTX 2070\n\
1f03 GeForce RTX 2060\n\
1f06 GeForce RTX 2060 SUPER\n\
1f07 GeForce RTX 2070\n\
1f08 GeForce RTX 2060\n\
1f09 GeForce GTX 1660 SUPER\n\
1f0a GeForce GTX 1650\n\
1f0b CMP 40HX\n\
1f10 GeForce RTX 2070\n\
1f11 GeForce RTX 2060\n\
1f12 GeForce RTX 2060\n\
1f14 GeForce RTX 2070\n\
1f15 GeForce RTX 2060\n\
1f36 Quadro RTX 3000\n\
1f42 GeForce RTX 2060 SUPER\n\
1f47 GeForce RTX 2060 SUPER\n\
1f50 GeForce RTX 2070\n\
1f51 GeForce RTX 2060\n\
1f54 GeForce RTX 2070\n\
1f55 GeForce RTX 2060\n\
1f76 Quadro RTX 3000\n\
1f82 GeForce GTX 1650\n\
1f83 GeForce GTX 1630\n\
1f91 GeForce GTX 1650\n\
1f95 GeForce GTX 1650 Ti\n\
1f96 GeForce GTX 1650\n\
1f97 GeForce MX450\n\
1f98 GeForce MX450\n\
1f99 GeForce GTX 1650\n\
1f9c GeForce MX450\n\
1f9d GeForce GTX 1650\n\
1f9f GeForce MX550\n\
1fa0 GeForce MX550\n\
1fb0 T1000\n\
1fb1 T600\n\
1fb2 T400\n\
1fb6 T600 Laptop GPU\n\
1fb7 T550 Laptop GPU\n\
1fb8 Quadro T2000\n\
1fb9 Quadro T1000\n\
1fba T600 Laptop GPU\n\
1fbb T500\n\
1fbc T1200 Laptop GPU\n\
1fdd GeForce GTX 1650\n\
1ff0 T1000 8GB\n\
1ff2 T400 4GB\n\
1ff9 Quadro T1000\n\
2182 GeForce GTX 1660 Ti\n\
2184 GeForce GTX 1660\n\
2187 GeForce GTX 1650 SUPER\n\
2188 GeForce GTX 1650\n\
2189 CMP 30HX\n\
2191 GeForce GTX 1660 Ti\n\
2192 GeForce GTX 1650 Ti\n\
21c4 GeForce GTX 1660 SUPER\n\
21d1 GeForce GTX 1660 Ti\n\
=ampere|450||open,proprietary|8.0\n\
20b0 A100-SXM4-40GB\n\
20b1 A100 PCIe 40GB\n\
20b2 A100-SXM4-80GB\n\
20b3 A100-SXM-64GB\n\
20b5 A100 80GB PCIe\n\
20b6 PG506-232\n\
20b7 A30\n\
20bd A800-SXM4-40GB\n\
20f0 A100-PG506-207\n\
20f1 A100-PCIE-40GB\n\
20f2 A100-PG506-217\n\
20f3 A800-SXM4-80GB\n\
20f5 A800 80GB PCIe\n\
20f6 A800 40GB Active\n\
20fd AX800\n\
=ampere|450||open,proprietary|8.6\n\
2203 GeForce RTX 3090 Ti\n\
2204 GeForce RTX 3090\n\
2206 GeForce RTX 3080\n\
2207 GeForce RTX 3070 Ti\n\
2208 GeForce RTX 3080 Ti\n\
220a GeForce RTX 3080\n\
220d CMP 90HX\n\
2216 GeForce RTX 3080\n\
2230 RTX A6000\n\
2231 RTX A5000\n\
2232 RTX A4500\n\
2233 RTX A5500\n\
2235 A40\n\
2236 A10\n\
2237 A10G\n\
2238 A10M\n\
2414 GeForce RTX 3060 Ti\n\
2420 GeForce RTX 3080 Ti Laptop GPU\n\
2438 RTX A5500 Laptop GPU\n\
2460 GeForce RTX 3080 Ti Laptop GPU\n\
2482 GeForce RTX 3070 Ti\n\
2484 GeForce RTX 3070\n\
2486 GeForce RTX 3060 Ti\n\
2487 GeForce RTX 3060\n\
2488 GeForce RTX 3070\n\
2489 GeForce RTX 3060 Ti\n\
248a CMP 70HX\n\
249c GeForce RTX 3080 Laptop GPU\n\
249d GeForce RTX 3070 Laptop GPU\n\
24a0 GeForce RTX 3070 Ti Laptop GPU\n\
24b0 RTX A4000\n\
24b1 RTX A4000H\n\
24b6 RTX A5000 Laptop GPU\n\
24b7 RTX A4000 Laptop GPU\n\
24b8 RTX A3000 Laptop GPU\n\
24b9 RTX A3000 12GB Laptop GPU\n\
24ba RTX A4500 Laptop GPU\n\
24bb RTX A3000 12GB Laptop GPU\n\
24c7 GeForce RTX 3060\n\
24c9 GeForce RTX 3060 Ti\n\
24dc GeForce RTX 3080 Laptop GPU\n\
24dd GeForce RTX 3070 Laptop GPU\n\
24e0 GeForce RTX 3070 Ti Laptop GPU\n\
24fa RTX A4500 Embedded GPU\n\
2503 GeForce RTX 3060\n\
2504 GeForce RTX 3060\n\
2507 GeForce RTX 3050\n\
2508 GeForce RTX 3050 OEM\n\
2520 GeForce RTX 3060 Laptop GPU\n\
2521 GeForce RTX 3060 Laptop GPU\n\
2523 GeForce RTX 3050 Ti Laptop GPU\n\
2531 RTX A2000\n\
2544 GeForce RTX 3060\n\
2560 GeForce RTX 3060 Laptop GPU\n\
2563 GeForce RTX 3050 Ti Laptop GPU\n\
2571 RTX A2000 12GB\n\
2582 GeForce RTX 3050\n\
2584 GeForce RTX 3050\n\
25a0 GeForce RTX 3050 Ti Laptop GPU\n\
25a2 GeForce RTX 3050 Laptop GPU\n\
25a5 GeForce RTX 3050 Laptop GPU\n\
25a6 GeForce MX570\n\
25a7 GeForce RTX 2050\n\
25a9 GeForce RTX 2050\n\
25aa GeForce MX570 A\n\
25ab GeForce RTX 3050 4GB Laptop GPU\n\
25ac GeForce RTX 3050 6GB Laptop GPU\n\
25ad GeForce RTX 2050\n\
25b0 RTX A1000\n\
25b2 RTX A400\n\
25b6 A16\n\
25b8 RTX A2000 Laptop GPU\n\
25b9 RTX A1000 Laptop GPU\n\
25ba RTX A2000 8GB Laptop GPU\n\
25bb RTX A500 Laptop GPU\n\
25bc RTX A1000 6GB Laptop GPU\n\
25bd RTX A500 Laptop GPU\n\
25e0 GeForce RTX 3050 Ti Laptop GPU\n\
25e2 GeForce RTX 3050 Laptop GPU\n\
25e5 GeForce RTX 3050 Laptop GPU\n\
25ec GeForce RTX 3050 6GB Laptop GPU\n\
25ed GeForce RTX 2050\n\
25f9 RTX A1000 Embedded GPU\n\
25fa RTX A2000 Embedded GPU\n\
25fb RTX A500 Embedded GPU\n\
=ada|520||open,proprietary|8.9\n\
2684 GeForce RTX 4090\n\
2685 GeForce RTX 4090 D\n\
2689 GeForce RTX 4070 Ti SUPER\n\
26b1 RTX 6000 Ada Generation\n\
26b2 RTX 5000 Ada Generation\n\
26b3 RTX 5880 Ada Generation\n\
26b5 L40\n\
26b8 L40G\n\
26b9 L40S\n\
26ba L20\n\
2702 GeForce RTX 4080 SUPER\n\
2704 GeForce RTX 4080\n\
2705 GeForce RTX 4070 Ti SUPER\n\
2709 GeForce RTX 4070\n\
2717 GeForce RTX 4090 Laptop GPU\n\
2730 RTX 5000 Ada Generation Laptop GPU\n\
2757 GeForce RTX 4090 Laptop GPU\n\
2770 RTX 5000 Ada Generation Embedded GPU\n\
2782 GeForce RTX 4070 Ti\n\
2783 GeForce RTX 4070 SUPER\n\
2786 GeForce RTX 4070\n\
2788 GeForce RTX 4060 Ti\n\
27a0 GeForce RTX 4080 Laptop GPU\n\
27b0 RTX 4000 SFF Ada Generation\n\
27b1 RTX 4500 Ada Generation\n\
27b2 RTX 4000 Ada Generation\n\
27b6 L2\n\
27b8 L4\n\
27ba RTX 4000 Ada Generation Laptop GPU\n\
27bb RTX 3500 Ada Generation Laptop GPU\n\
27e0 GeForce RTX 4080 Laptop GPU\n\
27fb RTX 3500 Ada Generation Embedded GPU\n\
2803 GeForce RTX 4060 Ti\n\
2805 GeForce RTX 4060 Ti\n\
2808 GeForce RTX 4060\n\
2820 GeForce RTX 4070 Laptop GPU\n\
2822 GeForce RTX 3050 A Laptop GPU\n\
2838 RTX 3000 Ada Generation Laptop GPU\n\
2860 GeForce RTX 4070 Laptop GPU\n\
2882 GeForce RTX 4060\n\
28a0 GeForce RTX 4060 Laptop GPU\n\
28a1 GeForce RTX 4050 Laptop GPU\n\
28a3 GeForce RTX 3050 A Laptop GPU\n\
28b0 RTX 2000 Ada Generation\n\
28b8 RTX 2000 Ada Generation Laptop GPU\n\
28b9 RTX 1000 Ada Generation Laptop GPU\n\
28ba RTX 500 Ada Generation Laptop GPU\n\
28bb RTX 500 Ada Generation Laptop GPU\n\
28e0 GeForce RTX 4060 Laptop GPU\n\
28e1 GeForce RTX 4050 Laptop GPU\n\
28e3 GeForce RTX 3050 A Laptop GPU\n\
28f8 RTX 2000 Ada Generation Embedded GPU\n\
=hopper|520||open,proprietary|9.0\n\
230e H20 NVL16\n\
2321 H100 NVL\n\
2322 H800 PCIe\n\
2324 H800\n\
2329 H20\n\
232c H20-3e\n\
2330 H100 80GB HBM3\n\
2331 H100 PCIe\n\
2335 H200\n\
2337 H100 SXM5 64GB\n\
2339 H100\n\
233a H800 NVL\n\
233b H200 NVL\n\
=grace_hopper|535||open|9.0\n\
2342 GH200 120GB\n\
2348 GH200 144G HBM3e\n\
=blackwell|570||open|10.0\n\
2901 B200\n\
2909 B200\n\
2941 GB200\n\
=blackwell|570||open|12.0\n\
29bb DRIVE P2021\n\
2b85 GeForce RTX 5090\n\
2b87 GeForce RTX 5090 D\n\
2b8c GeForce RTX 5090 D v2\n\
2bb1 RTX PRO 6000 Blackwell Workstation Edition\n\
2bb3 RTX PRO 5000 Blackwell\n\
2bb4 RTX PRO 6000 Blackwell Max-Q Workstation Edition\n\
2bb5 RTX PRO 6000 Blackwell Server Edition\n\
2bb9 RTX 6000D\n\
2c02 GeForce RTX 5080\n\
2c05 GeForce RTX 5070 Ti\n\
2c18 GeForce RTX 5090 Laptop GPU\n\
2c19 GeForce RTX 5080 Laptop GPU\n\
2c31 RTX PRO 4500 Blackwell\n\
2c33 RTX PRO 4000 Blackwell SFF Edition\n\
2c34 RTX PRO 4000 Blackwell\n\
2c38 RTX PRO 5000 Blackwell Generation Laptop GPU\n\
2c39 RTX PRO 4000 Blackwell Generation Laptop GPU\n\
2c3a RTX PRO 4500 Blackwell Server Edition\n\
2c58 GeForce RTX 5090 Laptop GPU\n\
2c59 GeForce RTX 5080 Laptop GPU\n\
2c77 RTX PRO 5000 Blackwell Embedded GPU\n\
2c79 RTX PRO 4000 Blackwell Embedded GPU\n\
2d04 GeForce RTX 5060 Ti\n\
2d05 GeForce RTX 5060\n\
2d18 GeForce RTX 5070 Laptop GPU\n\
2d19 GeForce RTX 5060 Laptop GPU\n\
2d30 RTX PRO 2000 Blackwell\n\
2d39 RTX PRO 2000 Blackwell Generation Laptop GPU\n\
2d58 GeForce RTX 5070 Laptop GPU\n\
2d59 GeForce RTX 5060 Laptop GPU\n\
2d79 RTX PRO 2000 Blackwell Embedded GPU\n\
2d83 GeForce RTX 5050\n\
2d98 GeForce RTX 5050 Laptop GPU\n\
2db8 RTX PRO 1000 Blackwell Generation Laptop GPU\n\
2db9 RTX PRO 500 Blackwell Generation Laptop GPU\n\
2dd8 GeForce RTX 5050 Laptop GPU\n\
2df9 RTX PRO 500 Blackwell Embedded GPU\n\
2f04 GeForce RTX 5070\n\
2f06 GeForce RTX 5060\n\
2f18 GeForce RTX 5070 Ti Laptop GPU\n\
2f38 RTX PRO 3000 Blackwell Generation Laptop GPU\n\
2f58 GeForce RTX 5070 Ti Laptop GPU\n\
=blackwell|580||open|10.3\n\
3182 B300 SXM6 AC\n\
31c2 GB300\n\
31c3 GB300\n\
=blackwell|580||open|12.1\n\
2e12 GB10\n\
"
