"""Server-sent events: news at once, silence without them, and an end."""

import asyncio
import contextlib

from starlette.requests import Request

from hotloop.dashboard.stream import Streams, mark


def request(query="", headers=()):
    async def receive():
        await asyncio.sleep(3600)

    scope = {"type": "http", "method": "GET", "path": "/events", "query_string": query.encode(),
             "headers": [(k.encode(), v.encode()) for k, v in headers]}  # fmt: skip
    return Request(scope, receive)


async def take(answer, count, within_s=1.0):
    """Return the first chunks of a stream; fewer where no more come in time."""
    found = []

    async def read():
        async for chunk in answer.body_iterator:
            found.append(chunk)
            if len(found) == count:
                return

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(read(), within_s)
    return found


def test_what_changed_since_the_page_was_made_is_told_at_once():
    async def scene():
        answer = Streams().answer(request("page=list&seen=old"), lambda: "now")
        assert answer.media_type == "text/event-stream"
        return await take(answer, 2)

    retry, event = asyncio.run(scene())
    assert retry.startswith("retry: ")
    assert event == f"id: {mark('now')}\nevent: changed\ndata: {mark('now')}\n\n"


def test_a_page_that_is_up_to_date_is_left_alone():
    back_again = [("last-event-id", mark("now"))]

    async def scene():
        asked = request(f"seen={mark('now')}"), request("seen=old", back_again)
        answers = [Streams().answer(one, lambda: "now") for one in asked]
        return await asyncio.gather(*(take(answer, 2, within_s=0.7) for answer in answers))

    assert [len(chunks) for chunks in asyncio.run(scene())] == [1, 1]


def test_news_come_while_it_is_open_and_it_ends_with_the_server():
    stands = iter(["a", "a", "b"])

    async def scene():
        streams = Streams()
        answer = streams.answer(request(f"seen={mark('a')}"), lambda: next(stands, "b"))
        news = await take(answer, 2, within_s=3.0)
        streams.end()
        ended = streams.answer(request(), lambda: "x")
        return news, [chunk async for chunk in ended.body_iterator]

    news, rest = asyncio.run(scene())
    assert mark("b") in news[1]
    assert len(rest) == 1


def test_there_is_a_most_of_open_pages():
    async def scene():
        streams = Streams(most=1)
        first = streams.answer(request(), lambda: "x")
        await take(first, 1)
        refused = streams.answer(request(), lambda: "x").status_code
        await first.body_iterator.aclose()
        return refused, streams.answer(request(), lambda: "x").status_code

    assert asyncio.run(scene()) == (503, 200)
