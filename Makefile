# Every target sets up what it needs: `make demo` on a fresh machine is enough.
#
# PYTHON=/path/to/python uses that interpreter as it is (torch, triton and the other dependencies
# have to be there) and installs nothing.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.SUFFIXES:

VENV := .venv
METADATA := build/metadata
comma := ,
EXTRAS := dev$(if $(shell command -v nvidia-smi),$(comma)gpu)
# Without a GPU: float32, because Triton's plain interpreter is wrong in half precision.
DEMO_SIZES := $(if $(shell command -v nvidia-smi),,--set dtype=float32)
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

ifdef PYTHON
  RUN := PYTHONPATH=$(CURDIR)/src:$(CURDIR)/$(METADATA)$(if $(PYTHONPATH),:$(PYTHONPATH)) $(PYTHON)
  READY := $(METADATA)/.ready
else
  RUN := $(VENV)/bin/python
  READY := $(VENV)/.ready
endif

.PHONY: help venv demo demo-model test test-slow test-gpu check bench-attention bench-verify bench-copy \
  bench-final bench-audit bench-honest bench-attacks bench-durability bench-isolation bench-timing \
  bench-mutation bench-mutation-gpu bench-kernelbench replay-kernelbench bench-examples pilot-report verifier-quality readme docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV) (torch==2.13.0 and the rest of constraints.txt)"
	@for base in python3.12 python3.11 python3.13 python3; do \
	  if "$$base" -c '$(IS_NEW_ENOUGH)' 2>/dev/null; then \
	    [ -x $(VENV)/bin/python ] || "$$base" -m venv $(VENV); break; fi; \
	done; \
	[ -x $(VENV)/bin/python ] || { echo "expected Python 3.11 or newer on PATH; install it, or give PYTHON=" >&2; exit 1; }
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

$(METADATA)/.ready: pyproject.toml scripts/entry_points.py
	@$(PYTHON) scripts/entry_points.py $(METADATA)
	@touch $@

venv: $(READY)  ## create .venv with the pinned versions

demo: $(READY)  ## one whole run with the built-in generator: no GPU needed, no key, no network
	@rm -rf runs/demo
	@$(RUN) -m hotloop optimize examples/attention/relative.py --device auto --budget 60s \
	  $(DEMO_SIZES) --out runs/demo
	@echo; echo '$$ hotloop show runs/demo'; $(RUN) -m hotloop show runs/demo
	@echo; echo '$$ ls runs/demo/best'; ls -1 runs/demo/best
	@echo; echo '$$ pytest runs/demo/best/test_kernel.py     # without hotloop'
	@$(RUN) -m pytest -q -rs -p no:cacheprovider runs/demo/best/test_kernel.py

demo-model: $(READY)  ## a model's recorded answers, verified afresh: no GPU, no key, no network
	@rm -rf runs/demo-model
	@$(RUN) -m hotloop optimize examples/attention/relative.py --device cpu --set dtype=float32 \
	  --model replay:examples/recordings/relative_cpu.jsonl --strategy hybrid --parallel 2 \
	  --max-calls 4 --budget 5m --out runs/demo-model
	@echo; echo '$$ hotloop show runs/demo-model'; $(RUN) -m hotloop show runs/demo-model

test: $(READY)  ## the default tests: no GPU, no network
	@$(RUN) -m pytest -q -n auto --maxprocesses 4 --dist loadfile

test-slow: $(READY)  ## tests that take seconds to minutes each
	@$(RUN) -m pytest -q -m 'slow and not gpu'

test-gpu: $(READY)  ## tests that need an NVIDIA GPU
	@$(RUN) -m pytest -q -m gpu

check: $(READY)  ## lint, format and types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

bench-attention: $(READY)  ## tune and time the attention problems (GPU; ARGS=--plan: how long); writes benchmarks/results
	@$(RUN) -m benchmarks.attention $(ARGS)

bench-verify: $(READY)  ## time the verifier itself (GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.verify_throughput $(ARGS)

bench-final: $(READY)  ## time the full and the short final tier (GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.final_cost $(ARGS)

bench-copy: $(READY)  ## time copies of outputs in and out of a CUDA graph (GPU)
	@$(RUN) -m benchmarks.copy_out $(ARGS)

bench-audit: $(READY)  ## try fakes on all of KernelBench (GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.audit $(ARGS)

bench-honest: $(READY)  ## run honest kernels, of which none may be refused (GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.honest $(ARGS)

bench-attacks: $(READY)  ## run all cheats, of which each must be refused (GPU or CPU); writes benchmarks/results
	@$(RUN) -m benchmarks.attacks $(ARGS)

bench-kernelbench: $(READY)  ## what suites of `hotloop bench` came to (no GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.kernelbench $(ARGS)

replay-kernelbench: $(READY)  ## the published rows again from the recording (no GPU; ARGS='--data PATH')
	@$(RUN) -m benchmarks.kernelbench_replay $(ARGS)

bench-examples: $(READY)  ## compare first drafts of two suites, with and without examples (no GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.examples_effect $(ARGS)

bench-durability: $(READY)  ## kill runs at random moments and soak one (no GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.durability $(ARGS)

bench-isolation: $(READY)  ## attack the cage, and time each tier (no GPU needed); writes benchmarks/results
	@$(RUN) -m benchmarks.isolation $(ARGS)

bench-timing: $(READY)  ## compare the clocks on kernels from 2 us to 5 ms (GPU); writes benchmarks/results
	@$(RUN) -m benchmarks.timing_probe $(ARGS)

bench-mutation: $(READY)  ## mutation score of the verifier (no GPU, half an hour); writes benchmarks/results
	@$(RUN) -m benchmarks.mutation --workers 2 --out benchmarks/results/verifier_quality_cpu.json $(ARGS)

bench-mutation-gpu: $(READY)  ## the same on all GPUs, with CUDA sources and the final tier; writes benchmarks/results
	@$(RUN) -m benchmarks.mutation --device cuda $(ARGS)

pilot-report: $(READY)  ## write the model pilot's results from its runs; ARGS="--folder DIR"
	@$(RUN) -m benchmarks.model_pilot report $(ARGS)

verifier-quality: $(READY)  ## merge what was measured of the verifier and write docs/verifier.md's numbers
	@$(RUN) -m benchmarks.verifier_quality $(ARGS)

readme: $(READY)  ## write the README's table and picture from benchmarks/results
	@$(RUN) -m benchmarks.readme

docs: $(READY)  ## build the documentation into build/docs and check its links
ifndef PYTHON
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs]'
endif
	@$(RUN) -m sphinx -q -W --keep-going -c docs -b html . build/docs
	@echo "build/docs/docs/index.html"

clean:  ## remove caches and the environment
	rm -rf $(VENV) $(METADATA) .pytest_cache .mypy_cache .ruff_cache .hypothesis
