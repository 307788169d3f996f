"""Law of the Terraform writer: what the language makes of a written string is the string."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.deployers.chain_parsers import hcl_text

from aicr.bundle.deployers.terraform_hcl import string

TEXTS = st.text(alphabet=st.sampled_from('${}%\\"\nab~ \t\u00e9')) | st.text(
    alphabet=st.characters(codec="utf-8")
)


@given(TEXTS)
def test_any_text_survives_writing_and_reading(text: str) -> None:
    """Template openers, quotes, backslashes and control characters are no exception."""
    assert hcl_text(string(text)) == text
