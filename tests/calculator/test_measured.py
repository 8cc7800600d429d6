"""A handful of measurements of real PyTorch, frozen: the calculator equals them to the byte.

Each was made by ``python -m validation measure`` with the command's words and ``--device
counting``: the real model, optimizer and autograd of torch 2.13, transformers 5.23 and bitsandbytes
0.50 on a GPU that counts and computes nothing. `validation/measurements` has hundreds more.
"""

from dataclasses import dataclass

import pytest

from calculator.__main__ import build_parser
from calculator.catalog import find_model
from calculator.commandline import plan_from
from calculator.estimate import estimate
from calculator.report import Phase, Report


@dataclass(frozen=True)
class Measured:
    """Bytes of what lives from step to step, and the most that was alive in each phase."""

    weights: int
    gradients: int
    optimizer: int
    forward: int
    loss: int
    backward: int
    update: int
    to_ram: int = 0


MEASURED = {
    "bert-base": Measured(
        438_065_664,
        438_057_472,
        876_114_944,
        1_771_245_568,
        1_892_890_624,
        1_847_583_744,
        2_190_303_744,
    ),
    "bert-base --precision half": Measured(
        219_037_184, 219_028_992, 438_057_984, 853_533_184, 916_043_264, 969_896_960, 1_095_161_344
    ),
    "bert-large --optimizer-bits 8": Measured(
        1_340_706_304,
        1_340_698_112,
        682_210_304,
        3_264_832_000,
        3_385_151_488,
        3_490_739_200,
        3_363_622_912,
    ),
    "bert-large --optimizer lamb --optimizer-bits 8": Measured(
        1_340_706_304,
        1_340_698_112,
        682_412_032,
        3_265_033_728,
        3_385_353_216,
        3_490_940_928,
        3_363_824_640,
    ),
    "bert-large --attention eager": Measured(
        1_340_706_304,
        1_340_698_112,
        2_681_396_224,
        5_967_849_984,
        6_088_169_472,
        6_058_024_448,
        6_703_506_944,
    ),
    "bert-large --checkpointing selective": Measured(
        1_340_706_304,
        1_340_698_112,
        2_681_396_224,
        5_263_206_912,
        5_383_526_400,
        5_489_925_120,
        6_703_506_944,
    ),
    "gpt2-m --optimizer momentum --update loop": Measured(
        1_419_292_672,
        1_419_292_672,
        1_419_292_672,
        5_826_678_784,
        6_336_674_816,
        5_927_066_624,
        4_257_894_400,
    ),
    "gpt2-m --sharing-groups 2": Measured(
        310_824_960,
        310_824_960,
        621_649_920,
        3_366_514_688,
        3_876_916_224,
        3_467_308_032,
        1_554_141_184,
    ),
    "gpt2-l --batch-size 2 --sequence-length 1024": Measured(
        3_096_120_320,
        3_096_120_320,
        6_192_240_640,
        19_191_264_768,
        20_209_213_952,
        19_313_851_392,
        15_480_634_368,
    ),
    "gpt2-l --precision mixed": Measured(
        1_548_060_160,
        1_548_060_160,
        9_288_360_960,
        13_686_292_992,
        14_200_925_696,
        13_817_573_376,
        18_576_738_304,
    ),
    "gpt2-l --batch-size 4 --sequence-length 128 --offload optimizer --dropout 0.2 "
    "--accumulation 4": Measured(
        3_096_120_320,
        3_096_120_320,
        0,
        9_826_791_936,
        10_080_657_920,
        10_030_505_472,
        6_192_248_832,
        3_096_120_320,
    ),
    "gpt3-175b": Measured(
        698_417_037_312,
        698_417_037_312,
        1_396_834_074_624,
        2_652_730_339_328,
        2_653_637_706_752,
        2_796_239_078_400,
        3_492_085_219_328,
    ),
    "gpt3-xl --precision fp32": Measured(
        5_262_893_056,
        5_262_893_056,
        10_525_786_112,
        27_717_746_688,
        28_541_158_400,
        28_146_230_272,
        26_314_498_048,
    ),
    "gpt-j-6b": Measured(
        24_218_211_328,
        24_203_531_264,
        48_407_062_528,
        115_638_175_232,
        116_635_566_080,
        116_346_917_888,
        121_032_369_152,
    ),
    "gpt-j-6b --precision half": Measured(
        12_116_445_696,
        12_101_765_632,
        24_203_531_264,
        61_017_464_320,
        62_049_657_344,
        61_844_802_560,
        60_523_540_992,
    ),
    "gpt-j-6b --sharing-groups 3": Measured(
        4_069_577_728,
        4_068_004_864,
        8_136_009_728,
        45_151_135_232,
        46_149_550_080,
        45_860_893_696,
        20_341_629_952,
    ),
    "t5-small --precision half": Measured(
        121_013_248, 121_013_248, 242_026_496, 650_591_232, 715_866_112, 683_491_328, 605_074_432
    ),
    "t5-small --batch-size 4 --sequence-length 1024 --target-length 64 --attention math "
    "--checkpointing full --precision half --optimizer sgd --dropout 0": Measured(
        121_013_248, 121_013_248, 0, 532_123_136, 237_329_408, 861_259_264, 242_061_312
    ),
    "t5-small --batch-size 4 --sequence-length 1024 --target-length 64 --checkpointing full "
    "--precision amp --optimizer sgd --dropout 0": Measured(
        242_026_496, 242_026_496, 0, 495_246_336, 544_595_968, 727_517_184, 484_087_808
    ),
    "t5-base": Measured(
        891_614_208,
        891_614_208,
        1_783_228_416,
        3_950_607_360,
        4_077_486_592,
        4_012_474_368,
        4_458_079_232,
    ),
    "t5-base --attention eager": Measured(
        891_614_208,
        891_614_208,
        1_783_228_416,
        4_582_013_952,
        4_708_893_184,
        4_643_880_960,
        4_458_079_232,
    ),
    "t5-3b --checkpointing full": Measured(
        11_406_393_344,
        11_406_393_344,
        22_812_786_688,
        40_157_413_376,
        40_256_111_616,
        45_792_830_464,
        57_031_974_912,
    ),
    "t5-11b": Measured(
        45_229_285_376,
        45_229_285_376,
        90_458_570_752,
        175_563_364_352,
        175_524_177_408,
        181_304_316_928,
        226_146_435_072,
    ),
}


def report_of(words: str) -> Report:
    arguments = build_parser().parse_args(["estimate", *words.split()])
    model = find_model(arguments.model)
    return estimate(model, plan_from(arguments, model))


@pytest.mark.parametrize(("words", "measured"), MEASURED.items())
def test_the_most_alive_in_each_phase_is_what_was_measured(words: str, measured: Measured) -> None:
    found = {str(phase): memory.total for phase, memory in report_of(words).phases.items()}
    assert found == {
        "forward": measured.forward,
        "loss": measured.loss,
        "backward": measured.backward,
        "update": measured.update,
    }


@pytest.mark.parametrize(("words", "measured"), MEASURED.items())
def test_what_lives_from_step_to_step_is_what_was_measured(words: str, measured: Measured) -> None:
    update = report_of(words).phases[Phase.UPDATE]
    assert update.weights == measured.weights
    assert update.gradients == measured.gradients
    assert update.optimizer == measured.optimizer


@pytest.mark.parametrize(("words", "measured"), MEASURED.items())
def test_what_is_moved_to_ram_is_what_was_measured(words: str, measured: Measured) -> None:
    assert report_of(words).to_ram == measured.to_ram
