"""Module runner: calls a reference module with a draw's tensors and leaves no trace in either.

The module is built once. For the length of a call a draw's parameters are bound into it, with
fresh copies of its buffers, so nothing that a forward writes (batch statistics, step counters)
reaches the next call or the draw. The random generators are seeded for the call and restored.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from hotloop.errors import ProblemError
from hotloop.worker.attribution import user_code
from hotloop.worker.dense_tensors import require_dense, require_drawable
from hotloop.worker.draw import Outputs
from hotloop.worker.inputs import own_memory, seeded


class ModuleRunner:
    """Builds, binds and runs the reference module of one problem."""

    def __init__(self, loaded: Any, dtype: torch.dtype | None) -> None:
        self._loaded = loaded
        self._dtype = dtype
        self.device: str = loaded.device
        self.model = self.build(0)
        self._home = state_of(self.model)
        self.copies_inputs = False
        """Whether forward gets copies of its arguments, because it writes into them."""

    def build(self, seed: int) -> Any:
        """Return a new module, its parameters initialised under `seed`.

        Raises:
            ProblemError: the constructor raised.
        """
        what = "Model(*get_init_inputs())"
        with (
            seeded(seed, self.device),
            torch.device(self.device),
            user_code(self._loaded.problem, what),
        ):
            model = self._loaded.model_class(*self._loaded.init_args)
        return model.to(device=self.device, dtype=self._dtype).requires_grad_(False)

    def run(self, state: dict[str, Tensor], values: tuple[Any, ...], seed: int) -> Outputs:
        """Return forward's tensors, flattened, for these parameters, arguments and random seed.

        Raises:
            ProblemError: forward does not take such arguments, or its result cannot be compared.
        """
        with self._bound(state), seeded(seed, self.device), torch.no_grad(), quiet():
            try:
                result = self.model(*self.arguments(values))
            except TypeError:
                self._require_fit(values)  # Python counts `self`, and knows nothing of get_inputs
                raise
            return self.flatten(result, values)

    def arguments(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what to pass to forward: the values, or copies where forward writes into them."""
        if not self.copies_inputs:
            return values
        return tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, values)

    def flatten(self, result: Any, values: tuple[Any, ...]) -> Outputs:
        """Return the tensors of a nested result; none of them shares memory with an argument.

        Raises:
            ProblemError: the result holds something that cannot be compared.
        """
        arguments = {t.untyped_storage().data_ptr() for t in tensors_of(values)}
        leaves = [leaf for leaf in tree_leaves(result) if leaf is not None]
        outputs: list[Tensor] = []
        for leaf in leaves:
            if isinstance(leaf, (bool, int, float)):
                leaf = torch.tensor(leaf, device=self.device)
            if not isinstance(leaf, Tensor):
                raise ProblemError(
                    f"forward should return tensors, got a {type(leaf).__name__} among its results"
                )
            require_drawable(f"output {len(outputs)}", leaf, is_output=True)
            leaf = leaf.detach()
            outputs.append(leaf.clone() if leaf.untyped_storage().data_ptr() in arguments else leaf)
        if not outputs:
            raise ProblemError("forward should return at least one tensor, got none")
        return tuple(outputs)

    def argument_names(self, count: int) -> tuple[str, ...]:
        """Return the names of forward's positional arguments."""
        names = list(inspect.signature(self.model.forward).parameters)
        return tuple(names[i] if i < len(names) else f"input{i}" for i in range(count))

    def _require_fit(self, values: tuple[Any, ...]) -> None:
        # Of what is called: a decorator that names another signature may raise by itself.
        signature = inspect.signature(self.model.forward, follow_wrapped=False)
        try:
            signature.bind(*values)
        except TypeError as exc:
            kinds = ", ".join(type(value).__name__ for value in values) or "nothing"
            raise ProblemError(
                f"forward{signature} does not take what get_inputs() returns ({kinds}): {exc}; "
                "change one of them"
            ) from None

    @contextmanager
    def _bound(self, state: dict[str, Tensor]) -> Iterator[None]:
        bind(self.model, state)
        try:
            yield
        finally:
            bind(self.model, self._home)


@contextmanager
def quiet() -> Iterator[None]:
    """Drop warnings inside the block: what a user's file warns of is not the judge's affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def bind(model: Any, state: dict[str, Tensor]) -> None:
    """Make a module use the tensors of `state`: parameters themselves, copies of buffers.

    Parameters keep their identity (only their data changes), so modules that hold further
    references to them, as recurrent ones do, follow.
    """
    for name, parameter in model.named_parameters():
        parameter.data = state[name]
    for name, _ in list(model.named_buffers()):
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, state[name].clone())


def state_of(model: Any) -> dict[str, Tensor]:
    """Return parameters and buffers by name; those that `expand` made, with their own values."""
    named = (*model.named_parameters(), *model.named_buffers())
    for name, tensor in named:
        require_dense(f"the model's {name!r}", tensor)
    return {name: own_memory(tensor.detach()) for name, tensor in named}


def tensors_of(values: Any) -> list[Tensor]:
    """Return the tensors in a nested structure."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
