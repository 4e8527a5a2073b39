"""Calls of kubectl with the operator's credentials."""

import json
import os
import re
import reprlib
import tempfile
from typing import Any, Dict, List, NamedTuple

from ..base.errors import GpuReadyError
from ..base.host import MISSING, PATH_DIRECTORIES, TIMED_OUT, Host, OutputTooLong, Result
from ..base.json_file import parse_json

Value = Dict[str, Any]
LIMIT = 60.0
"""Seconds for one answer of the API server."""
LIMIT_PER_OBJECT = 10.0
"""Seconds more for each object: kubectl sends one request after the other."""
TRIES = 5
"""How often an object is read and written that something else changes, too."""
LONGEST_REASON = 400
LONGEST_ERROR = 1 << 16
"""Characters of an error in which the reason is searched for."""
ACCESS_SPEC = {
    "kubectl": {"type": "str", "default": "kubectl"},
    "kubeconfig": {"type": "path", "default": ""},
    "context": {"type": "str", "default": ""},
}
"""The options of a module that calls kubectl: the fields of KubectlAccess."""
NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)?\Z")
"""Names that the API server accepts of the kinds used here, and "" for an object without namespace
(kubernetes.io/docs/concepts/overview/working-with-objects/names)."""
KIND = re.compile(r"[A-Za-z0-9]{0,63}\Z")
VALUES: Value = {}
OBJECTS: List[Value] = [{}]
FORM: Value = {
    "metadata": {"labels": VALUES, "annotations": VALUES, "managedFields": OBJECTS},
    "spec": {
        "taints": OBJECTS,
        "containers": [{"resources": {"limits": VALUES}}],
        "selector": {"matchLabels": VALUES},
        "template": {"spec": {"containers": OBJECTS}},
    },
    "status": {
        "conditions": OBJECTS,
        "allocatable": VALUES,
        "containerStatuses": [{"state": {"waiting": VALUES, "terminated": VALUES}}],
    },
    "serverVersion": VALUES,
}
"""What is a mapping and what a list of mappings, as far as it is read. Lists and mappings of values may be null."""
MOST_VALUES = 10_000_000
"""Values in an answer: an answer of empty objects would take 25 times its size. A node has about 600."""
FORBIDDEN = re.compile(r" is forbidden: User ")
"""The server's message about a missing right (forbiddenMessage in responsewriters/errors.go of k8s.io/apiserver), which
is all that kubectl drain prints of a refused eviction. Evictions in a namespace that ends are forbidden, too."""
CONFLICT = re.compile(r"\bConflict\b|object has been modified")
"""The server's answer to a write of another version than the present one (409 in
kubernetes.io/docs/reference/using-api/api-concepts)."""
UNREACHABLE = re.compile(
    r"^(?!.*Internal error occurred).*(?:was refused - did you specify|connection refused|connection reset"
    r"|no route to host|handshake timeout|i/o timeout|\bEOF\b|\(ServiceUnavailable\)|\(Timeout\)"
    r"|an error on the server \(\"\"\))",
    re.M,
)
"""An API server that is away or restarts, or a proxy without one: StandardErrorMessage in helpers.go of kubectl, errors
of Go's net and net/http, and the empty answer that request.go of k8s.io/client-go/rest makes of a closed connection.
"Internal error occurred" comes from a server that answers: a webhook may be away."""


class NoAnswer(GpuReadyError):
    """kubectl did not end in time."""


class KubectlAccess(NamedTuple):
    """``kubectl``: name or path. ``kubeconfig`` and ``context``: "" for kubectl's defaults."""

    kubectl: str = "kubectl"
    kubeconfig: str = ""
    context: str = ""


class Kubectl:
    """kubectl on this host. ``variables``: those that say where it is."""

    def __init__(self, host: Host, access: KubectlAccess, variables: str = "gpu_kubernetes_kubectl") -> None:
        self.host = host
        self.access = access
        self.variables = variables

    @classmethod
    def from_params(cls, host: Host, params: Dict[str, Any], *variables: str) -> "Kubectl":
        """Return kubectl for the parameters of a module with ACCESS_SPEC."""
        return cls(host, KubectlAccess(*[params[name] for name in KubectlAccess._fields]), *variables)

    def run(self, words: List[str], limit: float = LIMIT) -> Result:
        """Return the answer of kubectl; GpuReadyError if it is missing, NoAnswer if it does not end."""
        argv = [self.access.kubectl]
        argv += ["--kubeconfig=" + self.access.kubeconfig] if self.access.kubeconfig else []
        argv += ["--context=" + self.access.context] if self.access.context else []
        # The user's own PATH: a kubeconfig names login helpers (aws, kubelogin) that are found there.
        path = ":".join([os.environ.get("PATH", "")] + list(PATH_DIRECTORIES)).lstrip(":")
        try:
            answer = self.host.run(argv + words, limit, {"PATH": path})
        except OutputTooLong as error:
            raise GpuReadyError(
                "%s This was `kubectl %s`: check that gpu_kubernetes_kubeconfig and gpu_kubernetes_context name your "
                "cluster." % (error, " ".join(words[:2]))
            ) from None
        if answer.rc == MISSING:
            raise GpuReadyError(
                "%s: it is not on the host where it has to run. Install it there, or set %s."
                % (self.access.kubectl, self.variables)
            )
        if answer.rc == TIMED_OUT:
            raise NoAnswer(
                "kubectl %s: it did not end within %d s. Check that this host reaches the API server."
                % (" ".join(words[:2]), limit)
            )
        return answer

    def read(self, words: List[str], limit: float = LIMIT) -> Value:
        """Return the JSON that kubectl prints, {} where it prints nothing."""
        answer = self.run(words, limit)
        if answer.rc != 0:
            raise failure(words, answer)
        try:
            if answer.out.count(",") > MOST_VALUES:
                raise ValueError("more than %d values" % MOST_VALUES)
            value = parse_json(answer.out) if answer.out.strip() else {}
        except ValueError:
            raise GpuReadyError(
                "kubectl %s: its output is no JSON, or too large. Check this kubectl." % " ".join(words[:2])
            ) from None
        return check_objects(words, value) if isinstance(value, dict) else {}

    def get(self, *words: str) -> List[Value]:
        """Return objects that `kubectl get` returns, without those that do not exist."""
        answer = self.read(["get"] + list(words) + ["--ignore-not-found", "--output=json", "--request-timeout=30s"])
        found = objects_of(answer)
        if [one for one in found if not one.get("metadata", {}).get("name")]:
            raise impossible(list(words), "an object without a name")
        return found

    def with_objects(self, words: List[str], objects: List[Value], more: List[str]) -> Value:
        """Return what kubectl prints as JSON for objects that it reads from a file."""
        # kubectl runs as the operator, who chooses the place by TMPDIR; the file is readable to nobody else.
        directory = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="gpu-ready-", dir=directory) as handle:
            json.dump({"apiVersion": "v1", "kind": "List", "items": objects}, handle)
            handle.flush()
            limit = LIMIT + LIMIT_PER_OBJECT * len(objects)
            return self.read(words + ["--filename=" + handle.name, "--output=json"] + more, limit)


def objects_of(answer: Value) -> List[Value]:
    """Return the objects in an answer of kubectl: a list, one object, or nothing."""
    if "items" in answer and str(answer.get("kind", "")).endswith("List"):
        return list(answer["items"] or [])
    return [answer] if answer else []


def check_objects(words: List[str], answer: Value) -> Value:
    """Return an answer whose objects can exist. kubectl does not check them: a name could be one of its options."""
    items = answer.get("items") or []
    for one in [answer] + (items if isinstance(items, list) else [items]):
        if not has_form(one, FORM):
            raise impossible(words, reprlib.repr(one))
        metadata = one.get("metadata", {})
        shown = [str(text) for text in (one.get("kind", ""), metadata.get("name", ""), metadata.get("namespace", ""))]
        if not (KIND.match(shown[0]) and NAME.match(shown[1]) and NAME.match(shown[2])):
            raise impossible(words, repr(shown))
    return answer


def has_form(value: Any, form: Any) -> bool:
    """Return whether mappings and lists are where ``form`` has them."""
    if isinstance(form, list):
        return isinstance(value, list) and all(has_form(one, form[0]) for one in value)
    return isinstance(value, dict) and all(
        has_form(value[key], part)
        for key, part in form.items()
        if key in value and (value[key] is not None or part not in (VALUES, OBJECTS))
    )


def impossible(words: List[str], shown: str) -> GpuReadyError:
    """Return the error for an answer that no API server gives."""
    return GpuReadyError(
        "kubectl %s: the API server names an object that cannot exist (%s). Check that gpu_kubernetes_kubeconfig "
        "and gpu_kubernetes_context name your cluster." % (" ".join(words[:2]), shown[:LONGEST_REASON])
    )


def failure(words: List[str], answer: Result) -> GpuReadyError:
    """Return the error for a call that the API server or kubectl refused."""
    reason = first_reason(answer.err or answer.out)
    remedy = "Check gpu_kubernetes_kubeconfig, gpu_kubernetes_context and the API server."
    if FORBIDDEN.search(reason):
        remedy = "Give that user the permission (docs/kubernetes.md has all that are needed), then run again."
    return GpuReadyError("kubectl %s: %s. %s" % (" ".join(words[:2]), reason.rstrip("."), remedy))


def first_reason(text: str) -> str:
    """Return what the API server reported; other lines of kubectl repeat it or advise."""
    lines = [line.strip() for line in text[:LONGEST_ERROR].splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith(("error", "unable to connect"))]
    return " ".join((named or lines or ["no output"])[0].split())[:LONGEST_REASON]


def names(objects: List[Value]) -> List[str]:
    """Return sorted names of objects."""
    return sorted(str(one.get("metadata", {}).get("name", "")) for one in objects)
