"""The table of what a layer keeps against published and measured coefficients."""

from templates.pages.formulas.layer_formulas import rows


def test_layers_keep_the_published_and_measured_multiples_and_fused_attention_no_scores() -> None:
    by_title = {row.title: row for row in rows()}
    # Korthikanti et al. 2022, equation 1; 16 N are the statistics of two norms in fp32
    assert by_title["BERT Base"].eager[2] == "34 N·d + 5 Q + 16 N"
    # its GELU is written in plain operations: fitted on real PyTorch 2.13 and transformers 5.23
    # over many sizes, exact to the byte
    gpt2 = ("114 N·d + 9 Q + 16 N", "86 N·d + 7 Q + 16 N", "58 N·d + 5 Q + 16 N")
    assert by_title["GPT-2 Small"].eager == gpt2
    for title, row in by_title.items():
        assert title == "GPT-J 6B" or not any("Q" in formula for formula in row.fused)
