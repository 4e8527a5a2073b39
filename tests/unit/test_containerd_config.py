"""containerd's files: where keys are written by version, their form, refusals, and their removal."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.containers.containerd import config, edits, toml
from plugins.module_utils.gpu_ready.containers.containerd import files as containerd_files
from tests.unit.test_toml import DEBIAN

OLD, CDI, NEW = (1, 6, 20), (1, 7, 24), (2, 1, 9)
CRI = 'plugins."io.containerd.grpc.v1.cri"'
V3 = 'plugins."io.containerd.cri.v1.runtime"'
KUBEADM = f"""version = 2
[{CRI}.containerd]
  default_runtime_name = "runc"
[{CRI}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [{CRI}.containerd.runtimes.runc.options]
    SystemdCgroup = true
"""


def files(main: "str | None", **imports: str) -> list[config.ConfigFile]:
    return [config.ConfigFile(config.MAIN, main)] + [
        config.ConfigFile(f"{config.DROP_IN_DIRECTORY}/{name}.toml", text) for name, text in sorted(imports.items())
    ]


def change(engine: Any, main: "str | None", mode: str = "toolkit", default: bool = False, recorded: Any = (), imports: Mapping[str, str] | None = None) -> Any:  # fmt: skip
    return edits.plan_edits(engine, files(main, **(imports or {})), mode, default, list(recorded))


def cri(text: str, name: str = "io.containerd.grpc.v1.cri") -> Any:
    return tomllib.loads(text)["plugins"][name]


@pytest.mark.parametrize("engine", [OLD, CDI])
def test_up_to_1_7_the_runtime_is_added_to_config_toml_itself_beside_runc(engine: Any) -> None:
    (edit,) = change(engine, DEBIAN).edits
    assert edit.path == config.MAIN and edit.after.startswith(DEBIAN)
    runtimes = cri(edit.after)["containerd"]["runtimes"]
    assert runtimes == {
        "nvidia": {
            "runtime_type": "io.containerd.runc.v2",
            "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"},
        },
        "runc": {"runtime_type": "io.containerd.runc.v2"},
    }


@pytest.mark.parametrize(("main", "name"), [(DEBIAN, CRI), (DEBIAN.replace("version = 2", "version = 3"), V3)])
def test_from_2_0_on_the_runtime_is_in_an_own_file_in_the_format_of_config_toml(main: str, name: str) -> None:
    drop_in, imports = change(NEW, main).edits
    assert drop_in.path == config.DROP_IN and drop_in.before is None
    assert f"[{name}.containerd.runtimes.nvidia]\n" in drop_in.after and "runtimes.runc" not in drop_in.after
    assert tomllib.loads(drop_in.after)["version"] == tomllib.loads(main)["version"]
    first, rest = main.split("\n", 1)
    assert imports.after == f'{first}\nimports = ["/etc/containerd/conf.d/99-gpu-ready.toml"]\n{rest}'


@pytest.mark.parametrize(
    "imports", ['["/etc/containerd/conf.d/*.toml"]', '["conf.d/*"]', '["./conf.d/99-gpu-ready.toml"]']
)
def test_imports_that_include_the_file_are_unchanged(imports: str) -> None:
    (edit,) = change(NEW, f"imports = {imports}\n" + DEBIAN).edits
    assert edit.path == config.DROP_IN


def test_other_imports_stay() -> None:
    _, edit = change(NEW, 'version = 2 # two\nimports = [ "/x.toml" ] # mine\n').edits
    assert edit.after == 'version = 2 # two\nimports = ["/x.toml", "/etc/containerd/conf.d/99-gpu-ready.toml"] # mine\n'


def test_the_file_is_read_after_those_that_config_toml_imports_already() -> None:
    main, other = 'version = 2\nimports = ["/etc/containerd/site.toml"]\n', "/etc/containerd/site.toml"
    site = config.ConfigFile(other, f"version = 2\n[{CRI}.containerd]\ndefault_runtime_name = 'kata'\n")
    drop_in, imports = edits.plan_edits(NEW, [config.ConfigFile(config.MAIN, main), site], "toolkit", True, []).edits
    assert tomllib.loads(imports.after or "")["imports"] == [other, config.DROP_IN]
    read = [config.ConfigFile(edit.path, edit.after) for edit in (imports, drop_in)]
    assert edits.plan_edits(NEW, [read[0], site, read[1]], "toolkit", True, []).edits == []
    # The other way round, the file of the site is read last.
    swapped = config.ConfigFile(config.MAIN, main.replace("imports = [", f'imports = ["{config.DROP_IN}", '))
    with pytest.raises(config.ConfigError, match="site.toml, read after .*99-gpu-ready.toml, sets"):
        edits.plan_edits(NEW, [swapped, site], "toolkit", True, [])


@pytest.mark.parametrize(
    ("given", "ours", "edited", "left"),
    [
        (None, [config.DROP_IN], ["/x.toml", config.DROP_IN], ["/x.toml"]),
        (None, [edits.EARLIER], ["/x.toml", edits.EARLIER], ["/x.toml"]),
        (None, [edits.EARLIER], [edits.EARLIER], None),
        ([edits.EARLIER], [edits.EARLIER], [edits.EARLIER], [edits.EARLIER]),
        (None, [config.DROP_IN], [edits.EARLIER, config.DROP_IN], [edits.EARLIER]),  # nvidia-ctk's
    ],
)
def test_only_our_own_imports_are_reverted_in_a_file_that_was_edited_since(
    given: Any, ours: list[str], edited: list[str], left: Any
) -> None:
    after, now = (f"version = 3\nimports = {json.dumps(one)}\n" for one in (ours, edited))
    text = edits.revert_keys(now + "root = '/srv'\n", "version = 3\n", after, [(edits.IMPORTS, given)])
    assert tomllib.loads(text or "").get("imports") == left


@pytest.mark.parametrize(("engine", "version"), [(OLD, 2), (NEW, 3)])
def test_a_missing_config_toml_gets_the_format_of_the_engine(engine: Any, version: int) -> None:
    edits = {edit.path: edit for edit in change(engine, None).edits}
    assert edits[config.MAIN].before is None
    assert tomllib.loads(edits[config.MAIN].after)["version"] == version
    assert change(NEW, None, "cdi").edits == []


def test_the_runtime_has_the_cgroup_driver_of_runc() -> None:
    (edit,) = change(CDI, KUBEADM).edits
    runtimes = cri(edit.after)["containerd"]["runtimes"]
    assert runtimes["nvidia"]["options"] == {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True}
    assert runtimes["runc"] == cri(KUBEADM)["containerd"]["runtimes"]["runc"]
    drop_in, _ = change(NEW, KUBEADM).edits
    assert cri(drop_in.after)["containerd"]["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is True


@pytest.mark.parametrize("engine", [CDI, NEW])
def test_nvidia_as_the_default_runtime(engine: Any) -> None:
    edits = change(engine, KUBEADM, default=True).edits
    assert cri(edits[0].after)["containerd"]["default_runtime_name"] == "nvidia"
    if engine is CDI:
        assert KUBEADM.replace('"runc"', '"nvidia"', 1) in edits[0].after


@pytest.mark.parametrize(
    ("engine", "main", "after"),
    [
        (CDI, DEBIAN, DEBIAN.replace('v1.cri"]\n', 'v1.cri"]\n    enable_cdi = true\n', 1)),
        (CDI, f"version = 2\n[{CRI}]\nenable_cdi = false\n", f"version = 2\n[{CRI}]\nenable_cdi = true\n"),
        (NEW, DEBIAN, None),
        (CDI, f"version = 2\n[{CRI}]\nenable_cdi = true\ncdi_spec_dirs = ['/opt']\n",
         f'version = 2\n[{CRI}]\nenable_cdi = true\ncdi_spec_dirs = ["/opt", "/etc/cdi"]\n'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["cdi", "native"])
def test_cdi(engine: Any, main: str, after: "str | None", mode: str) -> None:
    assert [edit.after for edit in change(engine, main, mode).edits] == ([after] if after else [])


def test_disabled_cdi_is_enabled_by_the_own_file() -> None:
    drop_in, _ = change(NEW, f"version = 3\n[{V3}]\nenable_cdi = false\n", "cdi").edits
    assert drop_in.after.endswith(f"[{V3}]\nenable_cdi = true\n")


def carried_out(engine: Any, main: "str | None", mode: str, default: bool = False, recorded: Any = ()) -> Any:
    """Return the files after a change, and the whole record."""
    found = change(engine, main, mode, default, recorded)
    after = {edit.path: edit.after for edit in found.edits}
    all_files = [config.ConfigFile(config.MAIN, after.get(config.MAIN, main))]
    if after.get(config.DROP_IN):
        all_files.append(config.ConfigFile(config.DROP_IN, after[config.DROP_IN]))
    known = [path for path, _ in recorded]
    return all_files, [*recorded, *[one for one in found.record if one[0] not in known]]


@pytest.mark.parametrize("engine", [CDI, NEW])
@pytest.mark.parametrize("main", [DEBIAN, KUBEADM, None, "version = 2", "# nothing\n"])
@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize("mode", ["toolkit", "cdi"])
def test_a_change_is_idempotent_and_revertible(engine: Any, main: "str | None", default: bool, mode: str) -> None:
    if main == "# nothing\n":
        with pytest.raises(config.ConfigError):
            change(engine, main)
        return
    after, record = carried_out(engine, main, mode, default)
    assert edits.plan_edits(engine, after, mode, default, record).edits == []
    text = after[0].text
    assert text is None or edits.revert_keys(text, main, text, record) == main
    if text is not None and text != main:
        edited = text + '\n[plugins."mine"]\nx = 1\n'
        back = edits.revert_keys(edited, main, text, record)
        expected = tomllib.loads(main or f"version = {tomllib.loads(text)['version']}")
        assert back and pruned(tomllib.loads(back)) == pruned(
            edits.merge_tables(expected, {"plugins": {"mine": {"x": 1}}})
        )


def pruned(value: Any) -> Any:
    """A mapping without empty tables."""
    if not isinstance(value, dict):
        return value
    return {key: pruned(one) for key, one in value.items() if not isinstance(one, dict) or pruned(one)}


def test_another_mode_removes_the_keys_of_the_first() -> None:
    after, record = carried_out(CDI, KUBEADM, "toolkit", True)
    (edit,) = edits.plan_edits(CDI, after, "cdi", False, record).edits
    assert tomllib.loads(edit.after or "")["plugins"]["io.containerd.grpc.v1.cri"] == {
        **cri(KUBEADM),
        "enable_cdi": True,
    }
    drop_in, imports = change(NEW, KUBEADM).edits
    (removed,) = change(NEW, imports.after, "cdi", imports={"99-gpu-ready": drop_in.after}).edits
    assert removed.path == config.DROP_IN and removed.after is None


def test_a_runtime_that_somebody_else_set_up_is_left_alone() -> None:
    own = f'{KUBEADM}[{CRI}.containerd.runtimes.nvidia]\nruntime_type = "io.containerd.runc.v2"\n' + (
        f'[{CRI}.containerd.runtimes.nvidia.options]\nBinaryName = "/opt/nvidia-container-runtime"\nSystemdCgroup = true\n'
    )
    assert change(CDI, own).edits == [] == change(NEW, own).edits
    assert change(NEW, 'version = 2\nimports = ["conf.d/*"]\n', imports={"99-nvidia": own}).edits == []


@pytest.mark.parametrize(
    ("engine", "main", "mode", "imports", "code"),
    [
        (OLD, DEBIAN, "cdi", {}, "engine_without_cdi"),
        (CDI, DEBIAN + "x = \n", "toolkit", {}, "containerd_config_invalid"),
        (CDI, 'version = 2\nimports=["conf.d/*"]\n', "toolkit", {"x": "["}, "containerd_config_invalid"),
        (CDI, 'disabled_plugins = ["cri"]\n', "toolkit", {}, "containerd_cri_disabled"),
        (NEW, 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n', "cdi", {}, "containerd_cri_disabled"),
        (CDI, "[plugins.cri]\nx = 1\n", "toolkit", {}, "containerd_config_old"),
        (NEW, "root = '/x'\n", "toolkit", {}, "containerd_config_old"),
        (CDI, 'version = 2\nimports=["conf.d/*"]\n', "toolkit", {"x": KUBEADM}, "containerd_import_shadows"),
        (NEW, "version = 2\n", "toolkit",
         {"99-other": KUBEADM.replace("runc]", "nvidia]").replace("v2\"", "v1\"")}, "containerd_import_shadows"),
        (CDI, f"version = 2\n{CRI}.containerd = {{}}\n", "toolkit", {}, "containerd_config_inline"),
        (NEW, "version = 2\nimports = {}\n", "toolkit", {}, None),
    ],
)  # fmt: skip
def test_refusals(engine: Any, main: str, mode: str, imports: dict[str, str], code: "str | None") -> None:
    if code is None:
        assert change(engine, main, mode, imports=imports).edits
        return
    with pytest.raises(config.ConfigError) as caught:
        change(engine, main, mode, imports=imports)
    assert caught.value.code == code
    assert caught.value.problem and not caught.value.remedy.endswith(".")


def test_an_invalid_file_is_named_with_line_and_column() -> None:
    with pytest.raises(
        config.ConfigError, match=r"/etc/containerd/config.toml is not valid TOML \(line 10, column 5: "
    ):
        change(CDI, DEBIAN + "x = \n")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.6.20~ds1-1+deb12u3", (1, 6, 20)),
        ("containerd github.com/containerd/containerd/v2 v2.1.9 abc", (2, 1, 9)),
        ("containerd containerd.io 1.7.27 05044ec", (1, 7, 27)),
        ("0:1.6.33-3.1.el7", (1, 6, 33)),
        ("2.1", (2, 1, 0)),
        ("", None),
    ],
)  # fmt: skip
def test_versions(text: str, version: Any) -> None:
    assert config.parse_version(text) == version


def test_settings_of_the_unit() -> None:
    unit = "[Service]\nExecStart=/usr/bin/containerd\nKillMode=process\n"
    assert config.config_path([unit]) == config.MAIN and config.keeps_containers([unit])
    drop_in = (
        "[Service]\nExecStart=\nExecStart=/opt/containerd -c /opt/c.toml --log-level info\nKillMode=control-group\n"
    )
    assert config.config_path([unit, drop_in]) == "/opt/c.toml" and not config.keeps_containers([unit, drop_in])
    assert not config.keeps_containers([])


def test_settings_that_the_engine_did_not_apply() -> None:
    expected = change(NEW, None).required
    dump = f"version = 3\n[{V3}.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n"
    assert containerd_files.missing_keys(dump, expected) == ["containerd.runtimes.nvidia.options.BinaryName"]
    assert (
        containerd_files.missing_keys(
            toml.set_value(dump, ("plugins", edits.PLUGINS[3], *expected[1][0]), edits.RUNTIME), expected
        )
        == []
    )
