"""Suite folders for the dashboard: one run folder for each problem, as `bench` leaves them."""

import json

from dashboard_runs import write_run

from hotloop.core.record import to_json
from hotloop.core.verdict import Status
from hotloop.suite.folder import Member, SuiteRecord

TITLES = ("19_ReLU", "1_Square_matrix_multiplication_", "23_Softmax")
OUTCOMES = ((1.0, {1: 1.0}), (Status.TIMEOUT, {}), None)
OPTIONS = {
    "generator": "model", "model": "replay:made-up", "strategy": "refine", "language": "triton",
    "seed": 0,
}  # fmt: skip


def write_suite(folder, *, device="cuda", outcomes=OUTCOMES):
    members = []
    for number, outcome in enumerate(outcomes, 1):
        member = Member(name=f"kernelbench/1/{number}", level=1, number=number,
                        title=TITLES[(number - 1) % 3], problem_id="p")  # fmt: skip
        members.append(member)
        if outcome is not None:
            value, finals = outcome
            finals = finals if device == "cuda" else {}
            write_run(folder / member.folder, [value], finals=finals, device=device,
                      name=member.name)  # fmt: skip
    record = SuiteRecord(
        suite="kernelbench", problems=tuple(members), options=OPTIONS | {"device": device},
        limits={"wall_s": 600.0},
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.json").write_text(json.dumps(to_json(record)))
    return folder
