"""Objects of Kubernetes that tests apply to the lab's cluster."""

POD = """
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "namespace": "default"}, "spec": {"runtimeClassName": "nvidia",
 "terminationGracePeriodSeconds": 0, "nodeSelector": {"nvidia.com/gpu.product": "%s"},
 "containers": [{"name": "c", "image": "docker.io/gpu-ready-lab/verify:1", "command": ["sh", "-c", "nvidia-smi -L; exec sleep 3600"],
 "resources": {"limits": {"nvidia.com/gpu": "%s"}}}]}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: train, namespace: default}
spec:
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      runtimeClassName: nvidia
      terminationGracePeriodSeconds: 0
      nodeSelector: {kubernetes.io/hostname: kube-2}
      containers:
        - name: c
          image: docker.io/gpu-ready-lab/verify:1
          command: [sleep, "3600"]
          resources: {limits: {nvidia.com/gpu: "1"}}
"""
BUDGET = """
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: train, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: train}}}
"""
EXPORTER = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: exporter, namespace: default}
spec:
  selector: {matchLabels: {app: exporter}}
  template:
    metadata: {labels: {app: exporter}}
    spec:
      runtimeClassName: nvidia
      terminationGracePeriodSeconds: 0
      containers:
        - name: c
          image: docker.io/gpu-ready-lab/verify:1
          command: [/work/hold, /dev/nvidia0, /dev/nvidiactl]
          env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]
          volumeMounts: [{name: work, mountPath: /work}]
      volumes: [{name: work, hostPath: {path: /usr/lib/gpu-ready-lab/work}}]
"""
