# A pod with a GPU: containers in containerd with the labels and annotations of kubelet and CRI; there is no kubelet
# Labels: https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/types/labels.go and, of the kind,
# https://github.com/containerd/containerd/blob/main/internal/cri/labels/labels.go
# Annotations: https://github.com/containerd/containerd/blob/main/internal/cri/annotations/annotations.go
need_driver
command -v ctr >/dev/null || fail "containerd is not installed: start from a state of lab/states.yml"
uid=3f9c1c1e-0d4b-4d6c-9a63-9a6f0e6f5c11
id_of() { printf '%s' "$1" | sha256sum | cut -d ' ' -f 1; }
sandbox=$(id_of sandbox)
# run NAME KIND OPTIONS... -- FILES: a container whose id has the form of those of CRI
run() {
    name=$(id_of "$1")
    kind=$2
    shift 2
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    if ctr -n k8s.io tasks ls -q | grep -q "^$name\$"; then ctr -n k8s.io tasks rm --force "$name"; fi
    if ctr -n k8s.io containers ls -q | grep -q "^$name\$"; then ctr -n k8s.io containers rm "$name"; fi
    # shellcheck disable=SC2086 # options are words without blanks
    ctr -n k8s.io run --detach --rootfs --cgroup "/kubepods/burstable/pod$uid/$name" \
        --label io.cri-containerd.kind="$kind" --label io.kubernetes.pod.name=train-0 \
        --label io.kubernetes.pod.namespace=ml --label io.kubernetes.pod.uid=$uid \
        --annotation io.kubernetes.cri.container-type="$kind" --annotation io.kubernetes.cri.sandbox-id=$sandbox \
        --annotation io.kubernetes.cri.sandbox-name=train-0 --annotation io.kubernetes.cri.sandbox-namespace=ml \
        --annotation io.kubernetes.cri.sandbox-uid=$uid \
        $options $ROOT "$name" /hold "$@"
}
run sandbox sandbox --
run main container --label io.kubernetes.container.name=main --annotation io.kubernetes.cri.container-name=main \
    --device /dev/nvidia0 --device /dev/nvidiactl -- /dev/nvidia0
refresh
