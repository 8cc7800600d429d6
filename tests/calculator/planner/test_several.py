from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from calculator.catalog import GPUS, MODELS, Gpu
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.planner.need import judged, need_of
from calculator.planner.several import WORLDS, fewest_in_steps, fewest_with_ram_in_steps
from tests.calculator.plans import examples

LARGE = ("gpt2-xl", "gpt3-3b", "gpt3-7b", "gpt3-13b", "gpt3-175b")


def fits(model: str, plan: Plan, gpu: Gpu) -> bool:
    try:
        report = judged(MODELS[model], plan.on(gpu))
    except InputError:
        return False
    return need_of(report).fits(gpu.memory)


@examples(5)
@given(st.sampled_from(LARGE), st.sampled_from(list(GPUS.values())))
def test_the_gpus_hold_the_step_and_fewer_do_not_and_shards_in_ram_need_no_more(
    model: str, gpu: Gpu
) -> None:
    here, in_ram = (
        [several for several in search(MODELS[model], Plan(), gpu) if several]
        for search in (fewest_in_steps, fewest_with_ram_in_steps)
    )
    assert len(here) <= 1
    for several in (*here, *in_ram):
        assert fits(model, several.plan, gpu)
        for fewer in (gpus for gpus in WORLDS if gpus < several.plan.gpus):
            assert not fits(model, replace(several.plan, gpus=fewer), gpu)
    for several in in_ram:
        assert several.plan.cpu_offload
        assert several.ram == estimate(MODELS[model], several.plan).ram.total > 0
    for several in here:
        assert in_ram[0].plan.gpus <= several.plan.gpus


def test_gpus_that_are_there_are_tried_first_and_as_many_as_they_are() -> None:
    (found,) = [one for one in fewest_in_steps(MODELS["gpt2-l"], Plan(gpus=3), GPUS["t4"]) if one]
    assert (found.plan.gpus, found.words) == (3, "FSDP")
    shared = found.plan
    for one in fewest_in_steps(MODELS["gpt2-l"], shared, GPUS["t4"]):
        assert one is None or one.plan.gpus > shared.gpus
