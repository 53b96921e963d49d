"""Whether a class and arguments build the instance that was given, and with which arguments.

The judge gets a class and constructor arguments, never the instance. What was changed after the
constructor, or was kept in another form than it was given, would be lost silently; so the module
is built again here, gets the instance's parameters, and must compute the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from hotloop.capture.example_inputs import loaded_torch
from hotloop.capture.gather import literal
from hotloop.errors import ConfigError

_ADVICE = "give init=[...], the arguments that it was built with, or a class whose constructor"
_SEED = 0


def init_of(module: Any) -> tuple[Any, ...]:
    """Return the arguments that an instance was built with, from attributes of the same names.

    Raises:
        ConfigError: an argument has no attribute, or that has no text.
    """
    found: list[Any] = []
    for parameter in inspect.signature(type(module)).parameters.values():
        has_default = parameter.default is not parameter.empty
        value = getattr(module, parameter.name, parameter.default if has_default else None)
        by_name = parameter.kind in (
            parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD,
        )  # fmt: skip
        if by_name and has_default:
            continue
        if by_name or literal(value) is None or (value is None and not has_default):
            raise ConfigError(
                f"{type(module).__name__}: how it was built cannot be found out ({parameter.name}):"
                " give init=[...], the arguments of its class"
            )
        found.append(value)
    return tuple(found)


def rebuilt_in_eval(module: Any, init: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Return whether the module that is built again must be put into eval mode to be the same.

    Args:
        module: the instance that was given.
        init: arguments of its class.
        inputs: example arguments of one call, on which both are compared without gradients, under
            one random seed; tensors are moved to the instance's device. Not compared is an instance
            that gives two results on two such calls.

    Raises:
        ConfigError: the arguments build another module than the one that was given.
    """
    torch = loaded_torch()
    with torch.random.fork_rng(devices=_cuda_devices(module, inputs)):
        again = _built(module, init)
        _require_same_state(module, again)
        in_eval = _needs_eval(module, again)
        _require_same_results(module, again, inputs)
    return in_eval


def _built(module: Any, init: Sequence[Any]) -> Any:
    cls = type(module)
    try:
        return cls(*init)
    except Exception as exc:  # noqa: BLE001 - whatever the user's code raises
        raise ConfigError(
            f"{cls.__name__}(*{list(init)!r}) fails ({_one_line(exc)}): give init=[...]"
        ) from exc


def _require_same_state(module: Any, again: Any) -> None:
    """Compare shapes and dtypes; then load the instance's values into the other."""
    torch = loaded_torch()
    name = type(module).__name__
    here, there = module.state_dict(), again.state_dict()
    for key, value in {**here, **there}.items():
        if isinstance(value, torch.Tensor) and torch.nn.parameter.is_lazy(value):
            raise ConfigError(f"{name}: {key} is lazy: give its sizes in the constructor")
    if _shapes(here) != _shapes(there):
        raise ConfigError(
            f"{name}: the arguments of its class build other parameters than the instance has: "
            f"{_ADVICE} makes them"
        )
    for key, value in here.items():
        got = getattr(value, "dtype", None), getattr(there[key], "dtype", None)
        if got[0] != got[1]:
            raise ConfigError(
                f"{name}: {key} is {got[0]}, and its constructor makes {got[1]}: convert inside "
                "forward, or pass a float32 module"
            )
        if getattr(value, "is_meta", False):
            raise ConfigError(f"{name}: {key} is on the meta device: pass a module with values")
    devices = _devices(module)
    if len(devices) > 1:
        raise ConfigError(f"{name}: expected parameters on one device, got {len(devices)}")
    again.to(*devices)
    again.load_state_dict(here)


def _needs_eval(module: Any, again: Any) -> bool:
    """Bring the built module into the instance's mode; return whether that took `eval()`."""
    modes = _modes(module)
    if _modes(again) == modes:
        return False
    again.eval()
    if _modes(again) == modes:
        return True
    raise ConfigError(
        f"{type(module).__name__}: some of its modules train and some do not: pass a class whose "
        "constructor sets that"
    )


def _require_same_results(module: Any, again: Any, inputs: Sequence[Any]) -> None:
    name = type(module).__name__
    try:
        first, second = _results(module, inputs), _results(module, inputs)
    except Exception as exc:  # noqa: BLE001 - whatever the user's code raises
        raise ConfigError(f"{name} fails on these inputs: {_one_line(exc)}") from exc
    if not _are_close(first, second):
        return
    try:
        third = _results(again, inputs)
    except Exception as exc:  # noqa: BLE001 - whatever the user's code raises
        raise ConfigError(
            f"{name}: built again from its class it fails ({_one_line(exc)}): {_ADVICE} builds it "
            "as it is"
        ) from exc
    if not _are_close(first, third):
        raise ConfigError(
            f"{name}: built again from its class it computes something else: {_ADVICE} builds it "
            "as it is"
        )


def _results(module: Any, inputs: Sequence[Any]) -> list[Any]:
    """Return the flattened result of one call, which changes neither the module nor the inputs."""
    torch = loaded_torch()
    pytree = torch.utils._pytree
    devices = _devices(module)

    def own(value: Any) -> Any:
        return value.detach().clone().to(*devices) if isinstance(value, torch.Tensor) else value

    # Batch statistics and counters are written into copies.
    buffers = {name: value.clone() for name, value in module.named_buffers()}
    values = tuple(pytree.tree_map(own, list(inputs)))
    torch.manual_seed(_SEED)
    with torch.no_grad():
        result = torch.func.functional_call(module, buffers, values)
    leaves = pytree.tree_leaves(result)
    return [x for x in leaves if isinstance(x, (torch.Tensor, bool, int, float))]


def _are_close(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    try:
        loaded_torch().testing.assert_close(one, other, equal_nan=True)
    except AssertionError:
        return False
    return True


def _shapes(state: dict[str, Any]) -> dict[str, tuple[int, ...] | None]:
    return {name: tuple(t.shape) if hasattr(t, "shape") else None for name, t in state.items()}


def _modes(module: Any) -> dict[str, bool]:
    return {name: part.training for name, part in module.named_modules()}


def _devices(module: Any) -> list[Any]:
    return list({t.device: None for t in (*module.parameters(), *module.buffers())})


def _cuda_devices(module: Any, inputs: Sequence[Any]) -> list[Any]:
    devices = {*_devices(module), *(getattr(value, "device", None) for value in inputs)}
    return [device for device in devices if getattr(device, "type", "") == "cuda"]


def _one_line(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]
