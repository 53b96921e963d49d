"""What the dashboard's gate lets through: each guard with what it stops and what it must not."""

import re

import pytest
from dashboard_runs import Told, write_run
from starlette.testclient import TestClient

from hotloop.cli.serve import make_dashboard
from hotloop.core.verdict import Status
from hotloop.dashboard.listing import scan

TOKEN = "a-token-that-is-long-enough"
SCRIPT = "</script></code></pre></title><script>alert(1)</script><img src=x onerror=alert(2)>"


def client_of(root, *, base="http://127.0.0.1:8765", **options):
    return TestClient(make_dashboard(root, **options).app, base_url=base)


def page_ids(root):
    return [place.id for place in scan(root).places]


@pytest.mark.parametrize(
    "path",
    [
        "/run/..%2f", "/run/../../etc/passwd", "/run/%2e%2e%2f%2e%2e", "/run/%2Fetc%2Fpasswd",
        "/run/secret", "/run/inside%2F..%2F..%2Fsecret", "/run/C:%5C", "/suite/..%2f",
        "/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/..%5capp.py", "/static/",
        "/compare?a=../secret&b=../secret", "/events?run=../secret", "/events?suite=%2e%2e",
        "/run/%00", "//etc/passwd", "/run/inside/attempt/..%2f..",
    ],
)  # fmt: skip
def test_no_part_of_an_address_becomes_a_path(tmp_path, path):
    write_run(tmp_path / "secret", [1.0])
    write_run(tmp_path / "served" / "inside", [1.0])
    with client_of(tmp_path / "served") as client:
        answer = client.get(path)
        assert answer.status_code == 404
        assert "made/relu" not in answer.text
        assert client.get(f"/run/{page_ids(tmp_path / 'served')[0]}").status_code == 200


def test_links_to_folders_and_journals_outside_are_not_followed(tmp_path):
    outside = write_run(tmp_path / "secret", [1.0])
    served = tmp_path / "served"
    (served / "b").mkdir(parents=True)
    (served / "a").symlink_to(outside)
    (served / "b" / "journal.sqlite").symlink_to(outside / "journal.sqlite")
    assert page_ids(served) == []
    write_run(served / "c", [1.0])
    assert [place.name for place in scan(served).places] == ["c"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_possible(browse, method):
    answer = browse.request(method, "/")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert browse.head("/").status_code == 200


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1:8765", True), ("localhost:8765", True), ("LOCALHOST", True),
        ("[::1]:8765", True), ("127.0.0.1:9999", True),  # through a tunnel
        ("evil.example", False), ("evil.example:8765", False), ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False), ("192.168.0.7:8765", False), ("", False),
        ("127.0.0.1:8765@evil.example", False), ("evil.example#127.0.0.1", False),
    ],
)  # fmt: skip
def test_a_rebound_name_gets_no_answer(browse, host, is_known):
    answer = browse.get("/", headers={"host": host})
    assert answer.status_code == (200 if is_known else 403)
    assert ("Runs and suites" in answer.text) is is_known


def test_bound_elsewhere_any_literal_address_is_ours_and_foreign_names_are_not(tmp_path):
    with client_of(tmp_path, host="0.0.0.0", token=TOKEN, base="http://192.168.0.7:8765") as client:
        assert client.get("/", params={"token": TOKEN}).status_code == 200
        refused = client.get("/", params={"token": TOKEN}, headers={"host": "evil.example"})
        assert refused.status_code == 403


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({}, True),
        ({"origin": "http://127.0.0.1:8765"}, True),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:3000"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors",
          "sec-fetch-dest": "script"}, False),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate",
          "sec-fetch-dest": "iframe"}, False),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate",
          "sec-fetch-dest": "document"}, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/static/dashboard.js", "/compare"])
def test_a_page_of_another_site_may_link_here_and_nothing_else(browse, path, headers, is_let_in):
    assert browse.get(path, headers=headers).status_code == (200 if is_let_in else 403)


def test_nobody_without_the_token_sees_anything(tmp_path):
    run_id = page_ids_of_one(tmp_path)
    with client_of(tmp_path, token=TOKEN) as client:
        for path in ("/", f"/run/{run_id}", "/static/dashboard.css", "/events?page=list", "/nope"):
            answer = client.get(path)
            assert answer.status_code == 401, path
            assert "made/relu" not in answer.text
        for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "\u00e9\u4e2d"):
            assert client.get("/", params={"token": wrong}).status_code == 401
        assert client.get("/", headers={"cookie": f"hotloop-8765={TOKEN}"}).status_code == 401


def page_ids_of_one(root):
    write_run(root / "r", [1.0])
    return page_ids(root)[0]


def test_the_token_is_asked_for_once_and_leaves_the_address(tmp_path):
    run_id = page_ids_of_one(tmp_path)
    with client_of(tmp_path, token=TOKEN) as client:
        first = client.get(f"/run/{run_id}?status=PASSED&token={TOKEN}", follow_redirects=False)
        assert first.status_code == 303
        assert first.headers["location"] == f"/run/{run_id}?status=PASSED"
        cookie = first.headers["set-cookie"]
        assert {"httponly", "samesite=lax", "path=/"} <= set(cookie.lower().split("; "))
        assert TOKEN not in cookie
        assert client.get("/").status_code == 200, "the cookie is enough from now on"
    with client_of(tmp_path, token="another-token-than-before") as other:
        value = cookie.split(";")[0]
        assert other.get("/", headers={"cookie": value}).status_code == 401


def test_the_way_back_never_leads_to_another_site(tmp_path):
    with client_of(tmp_path, token=TOKEN) as client:
        for path in ("//evil.example/", "/%5c%5cevil.example/", "/\\evil.example"):
            answer = client.get(f"http://127.0.0.1:8765{path}?token={TOKEN}",
                                follow_redirects=False)  # fmt: skip
            assert not re.match(r"/[/\\]|[a-z]+:", answer.headers.get("location", "/"))


def test_scripts_in_foreign_text_are_shown_and_never_run(tmp_path):
    told = Told(
        error=f"error {SCRIPT}", kernel=f"kernel {SCRIPT}", idea=f"idea {SCRIPT}",
        prompt=f"prompt {SCRIPT}", reasoning=f"reasoning {SCRIPT}", reply=f"reply {SCRIPT}",
        source=f"# {SCRIPT}\nx = '{SCRIPT}'  # {{n}}\n", path='k"><b onclick=x>.py',
        details={"log": SCRIPT, SCRIPT: SCRIPT},
    )  # fmt: skip
    outcomes = [Status.COMPILE_ERROR, 1.0, Status.INCORRECT_NUMERICAL]
    write_run(tmp_path / 'r"><img src=x>', outcomes, parents={2: (1,), 3: (2,)}, told=told,
              finals={2: 1.0}, name=f"name {SCRIPT}")  # fmt: skip
    (run_id,) = page_ids(tmp_path)
    assert re.fullmatch(r"[a-z0-9-]+", run_id)
    with client_of(tmp_path) as client:
        pages = ["/", f"/run/{run_id}", f"/compare?a={run_id}&b={run_id}",
                 f"/run/{run_id}?text=%3Cscript%3Ealert(3)%3C/script%3E&status=%22%3E%3Cb%3E",
                 *(f"/run/{run_id}/attempt/{n}" for n in (1, 2, 3))]  # fmt: skip
        seen = ""
        for path in pages:
            html = client.get(path).text
            seen += html
            tags = set(re.findall(r"<script[^>]*>", html))
            assert tags == {'<script src="/static/dashboard.js" defer>'}, path
            assert not re.search(r"<img|<b[ >]|\son\w+=\"|\sstyle=|javascript:", html), path
        for said in ("error", "kernel", "idea", "prompt", "reasoning", "reply", "#", "name"):
            assert f"{said} &lt;/script&gt;" in seen, f"{said} is shown as it is"


def test_control_characters_are_made_visible(tmp_path):
    told = Told(reply="\u202egnp.exe \x1b[2J\x00", source="x = 1  # \u202e\x00\x1b[2J {n}\n")
    write_run(tmp_path / "r", [1.0, 2.0], parents={2: (1,)}, told=told)
    (run_id,) = page_ids(tmp_path)
    with client_of(tmp_path) as client:
        html = client.get(f"/run/{run_id}/attempt/2").text
    assert not set(html) & set("\u202e\x00\x1b")
    assert "\ufffdgnp.exe \ufffd[2J\ufffd" in html


@pytest.mark.parametrize("path", ["/", "/nope", "/static/dashboard.css", "/compare"])
def test_every_answer_forbids_what_is_not_ours(browse, path):
    headers = browse.get(path).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] in ("no-store", "no-cache")


def test_refusals_carry_the_same_headers(browse):
    answer = browse.get("/", headers={"host": "evil.example"})
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_pages_and_assets_name_no_other_host(tmp_path):
    write_run(tmp_path / "r", [Status.INCORRECT_NUMERICAL, 1.0], parents={2: (1,)})
    (run_id,) = page_ids(tmp_path)
    with client_of(tmp_path) as client:
        for path in ("/", f"/run/{run_id}", f"/run/{run_id}/attempt/1", "/static/dashboard.css",
                     "/static/dashboard.js"):  # fmt: skip
            assert not re.search(r"https?://|url\(|@import", client.get(path).text), path
