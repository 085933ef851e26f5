"""Names that can be stored, and answers as JSON."""

import msgspec
import pytest

from pseudomallows.sampling.options import METHODS
from pseudomallows.web.errors import ServiceError
from pseudomallows.web.types import MAX_NAME, ErrorAnswer, RefitRequest, check_name, encode


@pytest.mark.parametrize("name", ["x", "ü ☕", "a/b", "x" * MAX_NAME])
def test_any_text_may_be_a_name(name):
    check_name(name, "a user")


@pytest.mark.parametrize("name", ["", "x" * (MAX_NAME + 1), "a\0b", "\ud800"])
def test_what_no_store_takes_is_refused(name):
    with pytest.raises(
        ServiceError, match="the name of an item must have 1 to 300 letters"
    ) as error:
        check_name(name, "an item")
    assert error.value.status == 422


def test_answers_are_json():
    assert encode(ErrorAnswer('no "x"')) == rb'{"error":"no \"x\""}'


@pytest.mark.parametrize("method", METHODS)
def test_a_refit_may_name_every_method(method):
    asked = msgspec.json.decode(encode({"method": method}), type=RefitRequest)
    assert asked.method == method


def test_a_refit_may_name_no_other_method():
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'magic'"):
        msgspec.json.decode(b'{"method": "magic"}', type=RefitRequest)
