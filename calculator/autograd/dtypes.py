"""Number formats; a step has one of the two 16-bit formats, `Mode.half`."""

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True, eq=False, repr=False)
class DType:
    """A number format and its bytes for each element; each is one object."""

    name: str
    width: int

    def __repr__(self) -> str:
        return self.name


FLOAT32: Final = DType("float32", 4)
FLOAT16: Final = DType("float16", 2)
BFLOAT16: Final = DType("bfloat16", 2)
INT64: Final = DType("int64", 8)
INT32: Final = DType("int32", 4)
BOOL: Final = DType("bool", 1)
UINT8: Final = DType("uint8", 1)


def wider(one: DType, other: DType) -> DType:
    """The format of a result of two floating formats."""
    return one if one.width >= other.width else other
