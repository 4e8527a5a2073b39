"""The service that writes metrics of the GPUs for node_exporter."""

from ....module_utils.gpu_ready.facts.model import Facts, MonitoringFacts
from ....module_utils.gpu_ready.system import monitoring_files as files
from ..catalog import data as catalog_data
from ..catalog import model as catalog
from ..catalog.settings import Settings
from . import node_exporter
from .model import Decision, FileDiff, Notice, Step, VariableChange, notify

TEXTFILE = "textfile"


def plan_monitoring(facts: Facts, settings: Settings) -> Decision[None]:
    known = facts.monitoring
    if TEXTFILE not in settings.gpu_monitoring:
        if not known.files:
            return Decision()
        why = "gpu_monitoring does not name textfile any more"
        return Decision(None, [Step("gpu_monitoring.remove", why, verify_after=False)])
    directory = settings.gpu_monitoring_directory or known.exporter or files.NODE_EXPORTER_DIRECTORY
    ends = {str(branch.number): branch.eol for branch in catalog.branches() if branch.eol}
    params = files.MonitoringParams(
        known.python, directory, settings.gpu_monitoring_interval, settings.gpu_monitoring_old_names, ends
    )
    desired = files.format_files(params)
    changed = [path for path, text in sorted(desired.items()) if known.files.get(path) != text]
    steps: list[Step] = []
    if changed or known.program != catalog_data.MONITOR or not known.running:
        busy = any(one.gpu for one in facts.work.containers)
        new = files.UNIT not in known.files  # systemd reads it by itself
        params = params._replace(reload=files.UNIT in changed and not new and not busy)
        why = "the metrics of the GPUs are not written"
        if known.files and (changed or known.program != catalog_data.MONITOR):
            why = "the service that writes the metrics of the GPUs is not as configured"
        diff = [FileDiff(path, known.files.get(path), desired[path]) for path in changed]
        steps.append(Step("gpu_monitoring.textfile", why, params=params, diff=diff, verify_after=False))
    return Decision(None, steps, warnings=unread(known, settings))


def unread(known: MonitoringFacts, settings: Settings) -> list[Notice]:
    """Warn where no node_exporter is known to read the directory."""
    directory = settings.gpu_monitoring_directory
    if node_exporter.is_requested(settings) and not known.exporter_runs:
        if directory in ("", files.NODE_EXPORTER_DIRECTORY):
            return []
        return [
            notify(
                "metrics_not_read",
                "gpu_monitoring_directory is %s, but the node_exporter that gpu-ready installs reads %s"
                % (directory, files.NODE_EXPORTER_DIRECTORY),
                VariableChange({}, ["gpu_monitoring_directory"]),
                "add --collector.textfile.directory=%s to ARGS in /etc/default/%s" % (directory, files.NODE_EXPORTER),
            )
        ]
    if directory or known.exporter:
        return []
    return [
        notify(
            "metrics_not_read",
            "no node_exporter with a textfile directory is known on this host, so nothing reads the metrics in %s"
            % files.NODE_EXPORTER_DIRECTORY,
            VariableChange({"gpu_monitoring_node_exporter": ["install"]}),
            "install node_exporter and start it with --collector.textfile.directory",
            "set gpu_monitoring_directory to the directory that it reads",
        )
    ]
