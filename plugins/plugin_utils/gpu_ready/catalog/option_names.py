"""Names of docker's options with their kinds, and of the module's parameters (catalog/option_names.yml)."""

from .files import read

_names = read("option_names.yml")

DOCKER_OPTIONS: dict[str, str] = _names["docker"]
MODULE_PARAMETERS: dict[str, str] = dict.fromkeys(_names["module_parameters"], "")
