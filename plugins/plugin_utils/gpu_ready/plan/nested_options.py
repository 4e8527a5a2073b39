"""Validation inside the mappings of the operator: options of docker and its log driver, parameters of the module.

What resembles a known name is refused with that name. Of any other unknown name the plan warns (`unknown_names`): the
catalog may be older than the program.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from ....module_utils.gpu_ready.base import validation
from ....module_utils.gpu_ready.base.nearest import nearest
from ....module_utils.gpu_ready.facts.model import Facts
from ..catalog.option_names import DOCKER_OPTIONS, MODULE_PARAMETERS
from ..catalog.settings import Settings
from .model import Notice, Refusal

OPTIONS = "docker_engine_daemon_options"
LOGS = "docker_engine_log_options"
PARAMETERS = "nvidia_driver_module_parameters"


def is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


TYPES: dict[str, Callable[[object], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "int": is_number,
    "str": lambda value: isinstance(value, str),
    "size": lambda value: isinstance(value, str) or is_number(value),
    "list": lambda value: isinstance(value, list),
    "dict": lambda value: isinstance(value, dict),
    "texts": is_texts,
}
WORDS = {
    "bool": "true or false, without quotes",
    "int": "a number, without quotes",
    "str": "text",
    "size": "a number, or text such as 64M",
    "list": "a list",
    "dict": "a mapping",
    "texts": "a mapping of texts, with numbers in quotes",
}
"""Docker decodes daemon.json into typed fields: a value of another type stops it (UnmarshalTypeError in Go)."""
EXAMPLES = {"bool": "true", "int": "10", "str": "text", "size": "64M", "list": "[one, two]", "dict": "{name: {}}"}
EXAMPLES["texts"] = '{name: "10"}'


def refusals(settings: Settings) -> list[Refusal]:
    """Return what is wrong inside mappings that are of the right type themselves."""
    options = settings.docker_engine_daemon_options
    found = misspelt(OPTIONS, options, DOCKER_OPTIONS)
    found += [
        wrong_type(OPTIONS, name, value, WORDS[DOCKER_OPTIONS[name]], EXAMPLES[DOCKER_OPTIONS[name]])
        for name, value in options.items()
        if name in DOCKER_OPTIONS and not TYPES[DOCKER_OPTIONS[name]](value)
    ]
    found += [
        wrong_type(LOGS, name, value, "text, a number, true or false", "10m")
        for name, value in settings.docker_engine_log_options.items()
        if not isinstance(value, (str, int, float))
    ]
    plain = [re.sub("^NVreg_", "", name) for name in settings.nvidia_driver_module_parameters]
    return found + misspelt(PARAMETERS, plain, MODULE_PARAMETERS)


def misspelt(variable: str, names: Iterable[str], known: Mapping[str, str]) -> list[Refusal]:
    guesses = {str(name): nearest(str(name), known) for name in names if name not in known}
    return [
        Refusal(
            "misspelt_name",
            "%s has %s, which is unknown (did you mean %s?)" % (variable, validation.format_value(name), guess),
            "write %s in its place" % guess,
        )
        for name, guess in guesses.items()
        if guess
    ]


def wrong_type(variable: str, name: str, value: object, words: str, example: str) -> Refusal:
    return Refusal(
        "wrong_type",
        "%s has %s: %s, but this must be %s" % (variable, name, validation.format_value(value), words),
        "set it as in %s: {%s: %s}" % (variable, name, example),
    )


def unknown_names(facts: Facts, settings: Settings) -> list[Notice]:
    """Warn of names that nobody knows: docker refuses such an option itself, the kernel ignores such a parameter."""
    disk = facts.driver.on_disk
    options = sorted(str(name) for name in settings.docker_engine_daemon_options if name not in DOCKER_OPTIONS)
    names = [re.sub("^NVreg_", "", name) for name in settings.nvidia_driver_module_parameters]
    known = disk.parameters if disk else {}
    parameters = sorted("NVreg_" + name for name in names if name not in MODULE_PARAMETERS and name not in known)
    found = []
    if options:
        message = "%s has %s, which docker up to 29.7 does not know" % (OPTIONS, ", ".join(options))
        remedy = "check the name: dockerd decides about it before daemon.json is written"
        found.append(Notice("option_unknown", message, remedy))
    if parameters:
        message = "%s has %s, which drivers up to 595 do not have" % (PARAMETERS, ", ".join(parameters))
        found.append(Notice("parameter_unknown", message, "check the name: the kernel ignores a parameter without one"))
    return found
