"""Gluon is asked of a model for Hopper GPUs alone, and refused before a call is made."""

from dataclasses import replace

import pytest
from prompt_cases import norm_task
from runs import Run, reply

from hotloop import errors


def on_gpu(language, gpu, device="cuda"):
    task = norm_task(language)
    return replace(task, info=replace(task.info, device=device, environment={"gpu": gpu}))


@pytest.mark.parametrize("gpu", ["NVIDIA A100-SXM4-80GB", "NVIDIA B200"])
def test_gluon_on_a_gpu_that_is_no_hopper_is_refused_before_anything_is_asked(gpu):
    run = Run({1: reply()}, task=on_gpu("gluon", gpu))
    with pytest.raises(errors.ConfigError, match=f"--language gluon: .* got {gpu}"):
        run.generator.space(run.task.info)
    with pytest.raises(errors.ConfigError, match="Hopper"):
        run.generator.prompt_for(run.task.info, run.propose(1))
    assert run.model.calls == []


@pytest.mark.parametrize(
    ("language", "gpu", "device"),
    [
        ("gluon", "NVIDIA H200", "cuda"),
        ("gluon", "NVIDIA H100 80GB HBM3", "cuda"),
        ("gluon", None, "cuda"),
        ("gluon", None, "cpu"),
        ("triton", "NVIDIA A100-SXM4-80GB", "cuda"),
    ],
)
def test_other_languages_and_gpus_are_asked_for(language, gpu, device):
    run = Run({}, task=on_gpu(language, gpu, device))
    run.generator.space(run.task.info)
    assert run.generator.prompt_for(run.task.info, run.propose(1)).prompt.messages
