"""The authority's requests, and its answers to those that it refuses."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from training.access.causes import EXPLANATIONS, Cause


class AccessRequest(BaseModel):
    """A volunteer's request; the Hugging Face token comes in the header ``Authorization``.

    Attributes:
        organisation: as the volunteer's run file has it.
        peer_public_key: the peer's RSA key in OpenSSH's form, ``ssh-rsa AAAA...``.
        proof: that the peer has the private key, see `training.access.proofs`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    run: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    organisation: Annotated[str, Field(max_length=96)]
    peer_public_key: Annotated[str, Field(max_length=2000)]
    proof: Annotated[str, Field(max_length=2000)]


def problem(cause: Cause, detail: str = "", **input_error: str) -> dict[str, Any]:
    """The body of every answer that is not 200; `input_error` are `field`, `value` and `rule`."""
    explanation = EXPLANATIONS[cause]
    told = {"cause": cause.value, "message": explanation.meaning, "fix": explanation.fix}
    return {"error": told | {"detail": detail} | input_error}
