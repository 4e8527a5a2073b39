"""Records (``typing.NamedTuple``) to and from JSON, driven by their annotations."""

from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, NewType, Tuple, Type, TypeVar, Union, cast

from .errors import GpuReadyError

R = TypeVar("R", bound=NamedTuple)
if TYPE_CHECKING:
    Word = str
    Message = str
    Content = str
else:  # texts of answers; plugin_utils/answer_bounds.py says how much of each is accepted
    Word, Message, Content = NewType("Word", str), NewType("Message", str), NewType("Content", str)


class RecordError(GpuReadyError):
    """A JSON value that does not fit a record; the message names the field."""


def to_json(value: object) -> Any:
    """Return a value with every record in it as a dictionary; a field ``from_`` has the key ``from``."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name.rstrip("_"): to_json(getattr(value, name)) for name in value._fields}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def answer_values(answer: Any) -> Dict[str, Any]:
    """Return the values of an answer as JSON, without those that are None by default and stayed so."""
    values: Dict[str, Any] = to_json(answer)
    unset = [name for name, default in answer._field_defaults.items() if default is None and values[name] is None]
    return {name: value for name, value in values.items() if name not in unset}


def from_json(record: Type[R], value: object) -> R:
    """Record that a JSON value describes; absent fields have their defaults. Raises RecordError."""
    return cast(R, _convert(record, value, record.__name__))


def _convert(hint: Any, value: Any, where: str) -> Any:
    hint = getattr(hint, "__supertype__", hint)
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return _record(hint, value, where)
    origin: Any = getattr(hint, "__origin__", None)
    arguments: Tuple[Any, ...] = getattr(hint, "__args__", None) or ()
    if origin is Union or type(hint).__name__ == "UnionType":  # X | Y, of records of the control node
        return _any_of(arguments, value, where)
    if origin in (list, List) and isinstance(value, list):
        if _all_are(arguments[0], value):
            return list(value)
        return [_convert(arguments[0], item, "%s[%d]" % (where, index)) for index, item in enumerate(value)]
    if origin in (dict, Dict) and isinstance(value, dict):
        if _all_are(arguments[1], value.values()):
            return dict(value)
        return {key: _convert(arguments[1], item, "%s.%s" % (where, key)) for key, item in value.items()}
    if origin in (tuple, Tuple) and isinstance(value, list):
        hints = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(hints) == len(value):
            return tuple(_convert(hints[index], item, where) for index, item in enumerate(value))
    elif hint in (Any, object) or (isinstance(hint, type) and _fits(value, hint)):
        return value
    raise RecordError("%s must be %s, not %r" % (where, str(hint).replace("typing.", ""), value))


def _all_are(kind: Any, values: Iterable[Any]) -> bool:
    """Return True for values of one plain type.

    The thousands of packages of a host take ten times as long one by one.
    """
    return kind in (str, int, bool) and all(type(value) is kind for value in values)


def _record(record: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise RecordError("%s must be a mapping, not %r" % (where, value))
    names = {name.rstrip("_"): name for name in record._fields}
    unknown = sorted(set(value) - set(names))
    absent = [key for key, name in names.items() if key not in value and name not in record._field_defaults]
    if unknown or absent:
        what = "unknown field %s" % unknown[0] if unknown else "no field %s" % absent[0]
        raise RecordError("%s has %s" % (where, what))
    hints = record.__annotations__
    fields = {names[key]: _convert(hints[names[key]], item, "%s.%s" % (where, key)) for key, item in value.items()}
    return record(**fields)


def _any_of(hints: Tuple[Any, ...], value: Any, where: str) -> Any:
    """Convert to the first type of a Union that fits; raises the error of the last one if none does."""
    if value is None and type(None) in hints:
        return None
    hints = tuple(hint for hint in hints if hint is not type(None))
    for hint in hints[:-1]:
        try:
            return _convert(hint, value, where)
        except RecordError:
            continue
    return _convert(hints[-1], value, where)


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def without_schema(value: object, schema: int, name: str) -> Dict[str, object]:
    """Return a versioned JSON object without its schema; raises RecordError where it has another one than this."""
    if not isinstance(value, dict):
        raise RecordError("%s must be a mapping, not %r" % (name, value))
    if value.get("schema") != schema:
        text = "%s: schema %s is of another release of gpu-ready. Use that release, or remove what it recorded."
        raise RecordError(text % (name, value.get("schema")))
    return {key: item for key, item in value.items() if key != "schema"}
