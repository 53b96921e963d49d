"""Model reference: the trusted side of a KernelBench or native problem.

Parameters come from rebuilding the module under each draw's seed, as a user would get them; values
come from `get_inputs` or from a profile that replaces them. Which profiles can judge a candidate is
found out once, by running each.

Not here: how the module is called (`module_runner.py`), value profiles (`inputs.py`), float64
(`golden.py`), what sequential sums are (`envelope.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from hotloop.worker import (
    alike,
    baselines,
    constant_inputs,
    from_bias,
    golden,
    inputs,
    parameters,
    tf32_use,
    value_profiles,
)
from hotloop.worker.admission import admitted, for_final
from hotloop.worker.attribution import user_code
from hotloop.worker.bound import Rigour
from hotloop.worker.census import Census
from hotloop.worker.degeneracy import degenerate_reasons
from hotloop.worker.draw import (
    Draw,
    Outputs,
    Reference,
    Specs,
    nbytes,
    specs_of,
)
from hotloop.worker.envelope import OtherOrder, orders, outlier_reason, recurrent_parts
from hotloop.worker.input_reach import KEEPS_INPUTS
from hotloop.worker.kept_inputs import KeptInputs
from hotloop.worker.lookups import Lookups
from hotloop.worker.memory import DoesNotFit
from hotloop.worker.module_runner import ModuleRunner, bind, state_of, tensors_of
from hotloop.worker.nothing_to_judge import require_elements, require_tensors
from hotloop.worker.opposed import FirstProducts
from hotloop.worker.precision import STRICT, applied
from hotloop.worker.random_sources import FREE
from hotloop.worker.value_profiles import MODEL_PROFILES

PROFILES = value_profiles.names(MODEL_PROFILES)
NOMINAL_SEED = 1


class ModelReference(Reference):
    """The reference of a file with `Model`, `get_inputs` and `get_init_inputs`.

    Raises:
        ProblemError: the module cannot be built, drawn or run.
    """

    def __init__(self, loaded: Any) -> None:
        super().__init__(loaded)
        self._runner = ModuleRunner(loaded, self.precision.dtype)
        named = self._runner.model.named_parameters()
        self.parameter_names = frozenset(name for name, _ in named)
        built = [state_of(self._runner.build(NOMINAL_SEED + i)) for i in (0, 1)]
        constants, buffers = parameters.constant_names(built[0], built[1], self.parameter_names)
        self.constant_names, self.reach = constants, value_profiles.Reach(buffers=buffers)
        self._compiled: baselines.CompiledModel | None = None
        self._compiles = self.device == "cuda"
        nominal = self.draw(NOMINAL_SEED, "shipped")
        require_tensors(nominal.inputs)
        inputs.check_repeats(nominal.inputs, self._draw_inputs(NOMINAL_SEED)[0])
        self.reach.input_names = self._runner.argument_names(len(nominal.inputs))
        constant_inputs.find(
            self.reach, nominal.inputs, self.sources, lambda: self._draw_inputs(NOMINAL_SEED + 1)[0]
        )
        outputs = self._survey(nominal)
        require_elements(outputs)
        self._specs = specs_of(self.reach.input_names, nominal, outputs)
        self.io_bytes = nbytes([*tensors_of(nominal.inputs), *nominal.state.values(), *outputs])
        self._degenerate = degenerate_reasons(self, nominal, outputs)
        self.reach.unbiased_weights = parameters.unbiased_weights(nominal.state)
        rules = parameters.bias_rules(nominal.state, self.census)
        begins_at_bias = from_bias.fits(self.flops, self.device)
        self.bias_rules = rules if begins_at_bias else None
        self._has_biases = begins_at_bias and bool(parameters.product_biases(nominal.state))
        del nominal, outputs
        self.kept_inputs = KeptInputs(self)
        self.profiles, self._exact = admitted(self)
        self.final_profiles = for_final(self)

    def draw(self, seed: int, profile: str, *, timed: bool = False) -> Draw:
        """Build the parameters and inputs of `seed`; timed draws are no different."""
        if profile not in PROFILES:
            raise ValueError(f"expected a profile of {PROFILES}, got {profile!r}")
        state = state_of(self._runner.build(seed))
        values, self.sources = self._draw_inputs(seed)
        gen = inputs.generator(seed, self.device)
        laws = (None,) * len(values) if profile in KEEPS_INPUTS else self.sources
        inputs.overwrite(values, laws, profile, gen, self.reach)
        parameters.replace(state, profile, gen, constants=self.constant_names, reach=self.reach)
        return Draw(values, state, seed, profile)

    def redraw_inputs(self, draw: Draw, seed: int) -> None:
        """Refill free inputs in place; call `get_inputs` again only for the others."""
        gen = inputs.generator(seed, self.device)
        keeps = [self.reach.keeps(i, draw.profile) for i in range(len(draw.inputs))]
        pairs = zip(self.sources, keeps, strict=True)
        copied = [not inputs.renews(law, keeps=kept) for law, kept in pairs]
        if any(tensors_of(v) for v, c in zip(draw.inputs, copied, strict=True) if c):
            fresh, _ = self._draw_inputs(seed)
            for old, new, is_copied in zip(draw.inputs, fresh, copied, strict=True):
                if is_copied:
                    for target, values in zip(tensors_of(old), tensors_of(new), strict=True):
                        target.copy_(values)
        inputs.overwrite(draw.inputs, self.sources, draw.profile, gen, self.reach)
        draw.seed = seed

    def eager(self, draw: Draw) -> Outputs:
        """Run the module as it is, under the policy's precision flags."""
        with applied(self.precision), user_code(self.loaded.problem, "forward"):
            return self._runner.run(draw.state, draw.inputs, draw.seed)

    def golden(self, draw: Draw, *, blocks: int | None = None) -> Outputs:
        """Run the module in float64, on `blocks` slices of the batch where the whole does not fit.

        A batch that cannot be split runs whole even where the estimate says that it does not fit.

        Args:
            draw: what to run on.
            blocks: how many slices; by default as few as the device's memory asks for.

        Raises:
            ProblemError: the model has no float64 form.
            DoesNotFit: memory runs out in any form that is the same computation.
        """
        wide = {name: golden.widen(t) for name, t in draw.state.items()}

        def run(values: tuple[Any, ...]) -> Outputs:
            return self._runner.run(wide, values, draw.seed)

        wanted = blocks or golden.blocks_needed(
            tensors_of(draw.inputs), self._peak_bytes, self.device
        )
        if wanted == 1:
            with applied(STRICT):
                whole = golden.run_if_it_fits(run, draw.inputs)
            if whole is not None:
                return whole
        expected = self.eager(draw)
        with applied(STRICT):
            batched = golden.batched_inputs(run, draw.inputs, expected)
            del expected  # it may be as large as an input, and only its edges were looked at
            if batched is not None:
                return golden.run_in_blocks(run, draw.inputs, batched, max(wanted, 4))
            untried = blocks is None and wanted > 1
            whole = golden.run_if_it_fits(run, draw.inputs) if untried else None
        if whole is None:
            raise DoesNotFit(
                "the inputs do not fit: a float64 run needs more memory than the device has, and "
                "the batch cannot be split; use smaller sizes"
            )
        return whole

    def envelope(self, draw: Draw) -> dict[str, Outputs]:
        """Return eager, sums in other orders, float32 convolutions and the compiled model."""
        members = {"eager": self.eager(draw)}
        for name, arithmetic in orders(draw.profile, has_biases=self._has_biases).items():
            mode = OtherOrder(arithmetic)
            try:
                parts = recurrent_parts(self.census.names)
                with applied(self.precision), sdpa_kernel(SDPBackend.MATH), parts, mode:
                    sums = self._runner.run(draw.state, draw.inputs, draw.seed)
                if mode.replaced:
                    members[name] = sums
            except torch.OutOfMemoryError:
                self.note(f"envelope member {name!r} left out: it does not fit in memory")
                if name == "from_bias" and draw.profile == "biased":
                    members[name] = from_bias.unknown(members["eager"])
        if self.device == "cuda" and self.census.convolves and self.precision.conv_tf32:
            with applied(STRICT):
                members["conv_float32"] = self._runner.run(draw.state, draw.inputs, draw.seed)
        if self._compiles:
            self._add_compiled(draw, members)
        return members

    def eager_uses_tf32(self, draw: Draw) -> bool | None:
        """Return whether eager's convolutions round to TF32 on `draw`; None where none may.

        cuDNN decides by the sizes: where it is allowed, it is often not done.
        """
        allowed = self.device == "cuda" and self.census.convolves and self.precision.conv_tf32
        if not allowed:
            return None
        with applied(STRICT):
            exact = self._runner.run(draw.state, draw.inputs, draw.seed)
        return tf32_use.rounds(self.eager(draw), exact)

    def _add_compiled(self, draw: Draw, members: dict[str, Outputs]) -> None:
        try:
            if self._compiled is None:
                self._compiled = baselines.CompiledModel(self._runner.build(NOMINAL_SEED))
            with applied(self.precision), inputs.seeded(draw.seed, self.device):
                result = self._compiled.run(draw.state, self._runner.arguments(draw.inputs))
            outputs = self._runner.flatten(result, draw.inputs)
        except Exception as exc:  # noqa: BLE001  an optional member; the others stand without it
            self._compiles = False
            self.note(f"envelope member 'compiled' left out: {baselines.one_line(exc)}")
            return
        others = [m for name, m in members.items() if name != "eager"]
        reason = outlier_reason(outputs, members["eager"], others)
        if reason is None:
            members["compiled"] = outputs
        else:
            self.note(f"envelope member 'compiled' left out ({draw.profile}): {reason}")

    def is_exact(self, profile: str) -> bool:
        """Whether sums of `profile` are exact in every legitimate implementation."""
        return profile in self._exact

    def rigour(self, profile: str, output: int) -> Rigour:
        """Return which rules hold: fewer for values beyond float16 that eager bears badly."""
        told = self.reach.rules.get(profile, ())
        return told[output] if output < len(told) else Rigour.FULL

    def baseline_names(self) -> tuple[str, ...]:
        """Return the baselines; compiled ones exist on a GPU only."""
        return baselines.MODEL_BASELINES if self.device == "cuda" else ("eager",)

    def baseline(self, name: str, draw: Draw) -> Callable[[], Any]:
        """Return a callable with a module of its own, bound to the draw's tensors."""
        baselines.require(name, self.baseline_names())
        model = self._runner.build(NOMINAL_SEED)
        bind(model, draw.state)
        return baselines.model_baseline(
            name, model, lambda: self._runner.arguments(draw.inputs), self.precision
        )

    def specs(self) -> Specs:
        """Return inputs, outputs, parameters."""
        return self._specs

    def degenerate(self) -> tuple[str, ...]:
        """Return why a constant would pass on the shipped values, or why nothing can."""
        return self._degenerate

    def run_with_seed(self, draw: Draw, seed: int) -> Outputs:
        """Run eager on a draw with another seed for random operations inside."""
        with applied(self.precision):
            return self._runner.run(draw.state, draw.inputs, seed)

    def _draw_inputs(self, seed: int) -> tuple[Any, Any]:
        get_inputs = self.loaded.get_inputs
        assert get_inputs is not None
        with inputs.seeded(seed, self.device), user_code(self.loaded.problem, "get_inputs()"):
            return inputs.draw_inputs(get_inputs, self.device, self.precision.dtype)

    def _survey(self, draw: Draw) -> Outputs:
        """Run once under the counters, then once for outputs, time and the peak of memory."""
        self.census = Census()
        counter = FlopCounterMode(display=False)
        products = FirstProducts(draw.inputs, draw.state)
        tensors = tensors_of(draw.inputs)
        versions = [t._version for t in tensors]
        lookups = Lookups(draw.inputs, draw.state)
        with self.census, counter, products, lookups:
            self.eager(draw)
        self.reach.tables = frozenset(lookups.tables)
        self.reach.alike = alike.places(draw.inputs, self.sources)
        free = {i for i in products.inputs if self.sources[i] in FREE}
        if free:
            self.reach.opposed_inputs = frozenset(free)
            self.reach.opposed_weights = frozenset(products.weights)
        self.flops = float(counter.get_total_flops())
        if versions != [t._version for t in tensors]:
            self._runner.copies_inputs = True
            self.note("forward writes into its arguments; it is given copies")
            draw.inputs = self.draw(draw.seed, draw.profile).inputs
        start = time.monotonic()
        if self.device != "cuda":
            self._peak_bytes = 0
            outputs = self.eager(draw)
            self.eager_s = time.monotonic() - start
            return outputs
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        outputs = self.eager(draw)
        self._peak_bytes = torch.cuda.max_memory_allocated() - before
        torch.cuda.synchronize()
        self.eager_s = time.monotonic() - start
        return outputs
