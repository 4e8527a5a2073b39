# What the scripts of running work share. ROOT is the file system of their containers: the program /hold and nothing else.
ROOT=/usr/lib/gpu-ready-lab/work

fail() {
    echo "$*" >&2
    exit 1
}

wait_until() {
    for attempt in $(seq 300); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 1
    done
    fail "waited 300 s in vain for: $*"
}

# A host that was just started still loads the modules of its GPUs.
need_driver() {
    for attempt in $(seq 300); do
        if [ -e /dev/nvidia0 ] && [ -e /dev/nvidiactl ]; then return; fi
        sleep 1
    done
    fail "no driver is loaded: use a host with GPUs that starts from a state of lab/states.yml"
}

# start_container NAME OPTIONS... -- FILES: a container of docker that keeps FILES open
start_container() {
    command -v docker >/dev/null || fail "docker is not installed: add it to preinstalled, or start from a state of lab/states.yml"
    name=$1
    shift
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    if [ -z "$(docker images --quiet gpu-ready-lab/work)" ]; then
        tar -C $ROOT -c . | docker import - gpu-ready-lab/work >/dev/null
    fi
    if docker inspect "$name" >/dev/null 2>&1; then docker rm --force "$name" >/dev/null; fi
    # shellcheck disable=SC2086 # options are words without blanks
    docker run --detach --name "$name" --network none --stop-timeout 1 $options gpu-ready-lab/work /hold "$@" >/dev/null
    refresh
}

# The simulated kernel counts open device nodes only when asked to.
refresh() {
    /usr/lib/gpu-ready-lab/kernel refresh
}
