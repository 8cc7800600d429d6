"""Weights that are published in few bits, and what training does with them."""

from collections.abc import Mapping

from calculator.errors import InputError, one_line


def packing_note(found: object) -> str:
    """A note on a config.json's ``quantization_config``; empty where there is none.

    Counted are whole weights, as the plan has them.

    Raises:
        InputError: for a value that is no object.

    Source: transformers (quantizers/, utils/quantization_config.py)
    """
    if found is None:
        return ""
    if not isinstance(found, Mapping):
        raise InputError("quantization_config", found, "must be an object")
    if found.get("load_in_4bit"):
        bits = one_line(found.get("bnb_4bit_quant_type") or "nf4")
        double = "-double" if found.get("bnb_4bit_use_double_quant") else ""
        return (
            f"The published weights are packed in {bits} (bitsandbytes); counted are whole ones. "
            f"To train adapters beside packed ones, choose LoRA and quantization {bits}{double}."
        )
    method = one_line(found.get("quant_method") or "an unnamed method")
    begun = f"The published weights are packed by {method}"
    if method in ("mxfp4", "fp8"):
        return f"{begun}; training unpacks them to 16 bits. Whole weights are counted."
    return f"{begun}, in which they cannot be trained; whole weights are counted."
