"""The table of what a layer keeps against published and measured coefficients."""

from templates.pages.formulas.layer_formulas import rows


def test_bert_in_16_bits_keeps_the_published_34_sbh_and_5_as2b() -> None:
    # Korthikanti et al. 2022, equation 1; 16 N are the statistics of two norms in fp32
    bert = next(row for row in rows() if row.title == "BERT Base")
    assert bert.eager[2] == "34 N·d + 5 Q + 16 N"


def test_gpt2_keeps_more_because_its_gelu_is_written_in_plain_operations() -> None:
    # fitted on real PyTorch 2.13 and transformers 5.23 over many sizes, exact to the byte
    gpt2 = next(row for row in rows() if row.title == "GPT-2 Small")
    assert gpt2.eager == ("114 N·d + 9 Q + 16 N", "86 N·d + 7 Q + 16 N", "58 N·d + 5 Q + 16 N")


def test_fused_attention_keeps_no_scores() -> None:
    for row in rows():
        if row.title != "GPT-J 6B":
            assert not any("Q" in formula for formula in row.fused)
