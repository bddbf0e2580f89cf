"""Creation of plugins: a factory is called with its declared arguments and a handle.

A factory is a class or function with the parameters `(args, handle)`, or fewer. The annotation of the first parameter
declares the arguments: a dataclass or msgspec struct, into which they are decoded, otherwise a dict. An exception of a
factory is an error of plugin or configuration, reported in one line with its position.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, Final

import msgspec

from policysched.app.configuration.profiles import check_plugin, points_of
from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode, without_nulls

_PLAIN: Final = (inspect.Parameter.empty, Any, None, dict, Mapping)
"""Type annotations of a factory's arguments that mean a dict."""
_ABOUT: Final = ("apiVersion", "kind")
"""Fields of plugin arguments, apiVersion and kind, that can identify the type of the arguments."""


@dataclass(frozen=True, slots=True)
class CheckedFactory:
    """A plugin factory that checks the plugin's arguments before the call and the created plugin afterwards.

    Raises:
        UsageError: the arguments do not match, the factory fails, or its result is not a plugin.
    """

    name: str
    """Name of the plugin."""
    factory: Any

    def __call__(self, args: Any, handle: Any) -> Any:
        """Create the plugin."""
        taken = self._parameters()
        if args is not None and not taken:
            raise self._refusal("takes no arguments")
        given = (self._arguments(args, taken[0]) if taken else None, handle)
        if isinstance(self.factory, type):  # before an abstract class raises at instantiation
            check_plugin(self.name, self.factory)
        try:
            made = self.factory(*given[: len(taken)])
            acts = points_of(made)
        except (Exception, SystemExit) as error:
            raise self._refusal(f"creation failed: {shown_error(error)}") from error
        if not acts:
            check_plugin(self.name, made)
            raise self._refusal(f"{type(made).__name__} implements no extension point, such as filter or score")
        return made

    def checked(self) -> CheckedFactory:
        """Return this factory, because it is already imported."""
        return self

    def makes(self) -> type[Any] | None:
        """Return the class of the plugins that the factory creates; None if the factory does not declare the class."""
        if isinstance(self.factory, type):
            return self.factory
        self._parameters()
        made = self._resolved(inspect.signature(self.factory).return_annotation)
        return made if isinstance(made, type) and made is not inspect.Signature.empty else None

    def _parameters(self) -> list[inspect.Parameter]:
        """Return the parameters of the factory to which the arguments and the handle are passed."""
        if not callable(self.factory):
            raise self._refusal(f"{self.factory!r:.80} is not a class or function of (args, handle)")
        try:
            every = inspect.signature(self.factory).parameters.values()
        except (TypeError, ValueError) as error:
            raise self._refusal(f"cannot read the signature of {self.factory!r:.80}: {error}") from error
        placed = [one for one in every if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        keywords = (one for one in every if one.kind is one.KEYWORD_ONLY)
        if any(one.default is one.empty for one in (*placed[2:], *keywords)):
            raise self._refusal("factory needs more parameters than (args, handle)")
        return placed[:2]

    def _arguments(self, args: Any, parameter: inspect.Parameter) -> Any:
        """Decode the arguments into the declared type."""
        if args is not None and not isinstance(args, Mapping):
            raise self._refusal("args must be an object")
        given = without_nulls(args or {})
        shape = self._shape(parameter.annotation)
        if shape is None:
            return given
        info = msgspec.inspect.type_info(shape)
        known = {field.encode_name for field in info.fields}  # type: ignore[attr-defined]
        given = {name: value for name, value in given.items() if name in known or name not in _ABOUT}
        for field in _unknown_fields(given, info, ""):
            raise self._refusal(f"args.{field}: unknown field")
        try:
            return decode(shape, shape.__name__, given)
        except ObjectError as error:
            raise self._refusal(f"{'.'.join(filter(None, ('args', error.field)))}: {error.reason}") from error

    def _shape(self, annotation: Any) -> type[Any] | None:
        """Return the type into which a plugin's arguments are decoded; None for a dict."""
        annotation = self._resolved(annotation)
        if annotation in _PLAIN or typing.get_origin(annotation) in (dict, Mapping):
            return None
        if isinstance(annotation, type) and (is_dataclass(annotation) or issubclass(annotation, msgspec.Struct)):
            return annotation
        raise self._refusal(f"type of args must be a dataclass, a msgspec struct or a dict, not {annotation}")

    def _resolved(self, annotation: Any) -> Any:
        """Return the type of a type annotation that may be a string.

        Raises:
            UsageError: the string has an unknown name, such as one that is imported only for type checkers.
        """
        if not isinstance(annotation, str):
            return annotation
        module = sys.modules.get(getattr(self.factory, "__module__", ""))
        declared = SimpleNamespace(__annotations__={"it": annotation})
        try:
            return typing.get_type_hints(declared, vars(module) if module else {})["it"]
        except (NameError, AttributeError, SyntaxError, TypeError) as error:
            raise self._refusal(f"cannot resolve the annotation {annotation}: {error}") from error

    def _refusal(self, why: str) -> UsageError:
        return UsageError(f"plugin {self.name}: {why}")


def stated_name(factory: Any) -> str:
    """Return the name of a factory's plugin: its `name` attribute, otherwise the name of the function or class."""
    stated = getattr(factory, "name", None)
    return stated if isinstance(stated, str) else str(getattr(factory, "__name__", type(factory).__name__))


def shown_error(error: BaseException) -> str:
    """Return an exception as one line with its position in the plugin."""
    machinery = (str(PurePath(__file__).parent), "<frozen importlib", str(PurePath(importlib.__file__).parent))
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(machinery)]
    place = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _unknown_fields(value: Any, kind: Any, place: str) -> Iterator[str]:
    """Yield the fields of a value that its type does not have."""
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next((one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType)), None)
    if isinstance(value, Mapping) and isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        types = {field.encode_name: field.type for field in kind.fields}
        for name, item in value.items():
            path = f"{place}.{name}".removeprefix(".")
            if name in types:
                yield from _unknown_fields(item, types[name], path)
            else:
                yield path
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown_fields(item, getattr(kind, "item_type", None), f"{place}[{index}]")
