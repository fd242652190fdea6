"""Records: a request is what it asks for, with or without a schema."""

from tipbench.bench.records import GenerationRequest, Message


def test_a_request_with_a_schema_can_be_compared_and_hashed() -> None:
    plain = GenerationRequest("m", (Message("user", "Hm?"),), 0.0, 1, 8)
    shaped = GenerationRequest("m", (Message("user", "Hm?"),), 0.0, 1, 8, {"type": "object"})
    assert plain == GenerationRequest("m", (Message("user", "Hm?"),), 0.0, 1, 8, None)
    assert plain != shaped
    assert len({plain, shaped}) == 2
