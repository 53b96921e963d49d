"""The interface shown in a prompt is one that the rest of hotloop accepts."""

import pytest
from prompt_cases import attention_task, norm_task

from hotloop.core.candidate import Candidate
from hotloop.core.language import LANGUAGES
from hotloop.prompts.analysis import analyse
from hotloop.prompts.extract import Extracted, extract
from hotloop.prompts.fences import find_blocks
from hotloop.prompts.render import first_prompt
from hotloop.verify.static_rules import check_candidate
from hotloop.worker import launch_description

TASKS = [make(language) for make in (norm_task, attention_task) for language in LANGUAGES]


def skeleton(task) -> Candidate:
    blocks = [b for b in find_blocks(first_prompt(task).text) if "class ModelNew" in b.text
              or "__global__" in b.text]  # fmt: skip
    (block,) = blocks
    result = extract(f"```{block.language}\n{block.text}\n```", language=task.language)
    assert isinstance(result, Extracted), result
    return result.candidate


@pytest.mark.parametrize("task", TASKS, ids=lambda t: f"{t.problem.name}-{t.language}")
def test_a_skeleton_keeps_the_rules(task):
    candidate = skeleton(task)
    assert check_candidate(candidate, task.problem.policy) is None
    if task.language == "cuda":
        assert len(launch_description.parse(candidate.text()).kernels) == 1
    else:
        assert analyse(candidate.text(), inputs=task.info.inputs) == ()
