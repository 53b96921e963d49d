"""A live function or module with example inputs, as a Problem."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

from hotloop.capture.example_inputs import inputs_source, loaded_torch
from hotloop.capture.gather import Gatherer, literal
from hotloop.capture.rebuild import init_of, rebuilt_in_eval
from hotloop.core.problem import Problem
from hotloop.errors import ConfigError
from hotloop.problems import load_problem_spec
from hotloop.problems.classify import NATIVE_NAMES

_HEAD = '"""{name}, captured from a running program."""\n\nfrom __future__ import annotations\n'
_OWN_NAMES = frozenset({"Model", "get_inputs", "get_init_inputs"}) | NATIVE_NAMES
_EVAL_MODEL = """class Model({name}):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.eval()"""


def capture(
    subject: Any, inputs: Sequence[Any], *, init: Sequence[Any] | None = None, device: str
) -> Problem:
    """Return a problem whose reference is a live function or module.

    Args:
        subject: a function of tensors, an `nn.Module` class, or an instance of one. Its source, and
            that of all it names, must be readable.
        inputs: example arguments of one call; their shapes and dtypes are the problem's.
        init: arguments of the module's class; for an instance they are found out where its
            attributes have their names. An instance built again must have its parameters' shapes
            and dtypes and give its results on the inputs; its mode (`eval()`) is kept.
        device: `cuda` or `cpu`: where it will be judged.

    Raises:
        ConfigError: something has no text, or the instance is another when it is built again.
    """
    source = problem_source(subject, inputs, init)
    name = getattr(subject, "__name__", type(subject).__name__)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        return load_problem_spec(path, device=device)


def problem_source(subject: Any, inputs: Sequence[Any], init: Sequence[Any] | None = None) -> str:
    """Return the text of the problem file. See `capture`."""
    torch = loaded_torch()
    if not isinstance(inputs, Sequence) or isinstance(inputs, (str, bytes)):
        raise ConfigError(
            f"inputs: expected a list of the arguments of one call, got a {type(inputs).__name__}"
        )
    drawn = inputs_source(inputs)
    name = getattr(subject, "__name__", type(subject).__name__)
    is_model = name == "Model" and not isinstance(subject, FunctionType)
    gatherer = Gatherer(_OWN_NAMES - {"Model"} if is_model else _OWN_NAMES)
    gatherer.add("torch", torch)
    if isinstance(subject, torch.nn.Module):
        found = init_of(subject) if init is None else tuple(init)
        in_eval = rebuilt_in_eval(subject, found, inputs)
        model = _module_source(gatherer, type(subject), in_eval=in_eval)
    elif isinstance(subject, type) and issubclass(subject, torch.nn.Module):
        found = tuple(init or ())
        model = _module_source(gatherer, subject)
    elif isinstance(subject, FunctionType):
        if init is not None:
            raise ConfigError("init: only a module is built from arguments; leave it out")
        found, model = (), _function_source(gatherer, subject)
    else:
        raise ConfigError(
            f"expected a function, an nn.Module class or an instance of one, got a "
            f"{type(subject).__name__}: wrap it in a function, def f(x): return ..."
        )
    parts = [_HEAD.format(name=name) + "\n" + gatherer.text(), model]
    parts += [drawn, _init_source(found)]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _function_source(gatherer: Gatherer, function: FunctionType) -> str:
    gatherer.add(function.__name__, function)
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise ConfigError(f"{function.__name__}: *args and **kwargs: name the arguments")
        if parameter.kind is parameter.KEYWORD_ONLY:
            if parameter.default is parameter.empty:
                raise ConfigError(
                    f"{function.__name__}: {parameter.name} can only be given by name, and inputs "
                    "are given by place; give it a default"
                )
            continue
        names.append(parameter.name)
    taken = ", ".join(names)
    return (
        f"class Model(torch.nn.Module):\n    def forward(self, {taken}):\n"
        f"        return {function.__name__}({taken})"
    )


def _module_source(gatherer: Gatherer, cls: type, *, in_eval: bool = False) -> str:
    gatherer.add(cls.__name__, cls)
    if not in_eval:
        return "" if cls.__name__ == "Model" else f"Model = {cls.__name__}"
    if cls.__name__ == "Model" and "super(Model" in gatherer.text():
        raise ConfigError("Model: in eval mode: write super() without arguments, or rename it")
    return _EVAL_MODEL.format(name=cls.__name__)


def _init_source(values: Sequence[Any]) -> str:
    texts = [literal(value) for value in values]
    for i, text in enumerate(texts):
        if text is None:
            kind = type(values[i]).__name__
            raise ConfigError(f"init[{i}]: expected a number, a string or a list, got a {kind}")
    return f"def get_init_inputs():\n    return [{', '.join(str(text) for text in texts)}]"
