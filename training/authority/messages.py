"""The authority's requests and responses."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from training.access.causes import EXPLANATIONS, Cause


class AccessRequest(BaseModel):
    """A volunteer's request; the Hugging Face token comes in the header ``Authorization``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    run: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="The run's name")]
    organisation: Annotated[
        str, Field(max_length=96, description="The organisation named in the volunteer's run file")
    ]
    peer_public_key: Annotated[
        str,
        Field(max_length=2000, description="The peer's RSA key in OpenSSH's form: ssh-rsa AAAA..."),
    ]
    proof: Annotated[
        str,
        Field(
            max_length=2000,
            description="Signature of the peer's key, RSA-PSS with SHA-256 in base 64, over the "
            "JSON array of a fixed text, the run's name and the SHA-256 of the token in "
            "hexadecimal; see training/access/proofs.py",
        ),
    ]


class AccessAnswer(BaseModel):
    """Access to the run, for a while."""

    username: Annotated[str, Field(description="The owner of the token")]
    peer_id: Annotated[str, Field(description="The peer's identity in the network, in base 58")]
    expires: Annotated[str, Field(description="End of the access, ISO 8601 in UTC")]
    grant: Annotated[
        str, Field(description="Grant for the peer to show to others; JSON, signed with Ed25519")
    ]
    authority_key: Annotated[
        str, Field(description="The key to check grants with: 32 bytes in base 64")
    ]
    time: Annotated[float, Field(description="The authority's clock, seconds since 1970")]


class Description(BaseModel):
    """The authority's public description of itself."""

    run: Annotated[str, Field(description="The run to which it admits volunteers")]
    organisation: Annotated[
        str,
        Field(
            description="The organization whose members it admits; empty: everyone with an account"
        ),
    ]
    allowlist: Annotated[bool, Field(description="Whether it admits only users on its list")]
    lifetime: Annotated[int, Field(description="Seconds that access lasts")]
    authority_key: Annotated[str, Field(description="The key to check grants with")]
    time: Annotated[float, Field(description="The authority's clock, seconds since 1970")]


class Problem(BaseModel):
    """The reason for refusing access; with `field`, `value` and `rule` if a field is invalid."""

    cause: Annotated[Cause, Field(description="The cause")]
    message: Annotated[str, Field(description="The problem, in words")]
    fix: Annotated[str, Field(description="What to do about it")]
    detail: Annotated[str, Field(description="More details")] = ""
    field: Annotated[str | None, Field(description="The invalid field")] = None
    value: Annotated[str | None, Field(description="Its value, shortened")] = None
    rule: Annotated[str | None, Field(description="The rule for its value")] = None


class ProblemAnswer(BaseModel):
    """The body of every answer that is not 200."""

    error: Problem


def problem(cause: Cause, detail: str = "", **input_error: str) -> ProblemAnswer:
    """Describe a problem; `input_error` are `field`, `value` and `rule`."""
    explanation = EXPLANATIONS[cause]
    return ProblemAnswer(
        error=Problem(
            cause=cause,
            message=explanation.meaning,
            fix=explanation.fix,
            detail=detail,
            **input_error,
        )
    )
