from hypothesis import assume, given
from hypothesis import strategies as st

from calculator.cards import COMMON, Card
from calculator.catalog import find_gpu, find_model
from calculator.estimate import estimate
from calculator.plan import Checkpointing, Plan
from calculator.planner.advice import advise_in_steps
from calculator.planner.fastest import fastest
from calculator.planner.largest import largest_batch
from calculator.planner.need import need_of
from tests.calculator.plans import Case, can_run, cases, examples

CHECKPOINTED = Plan(checkpointing=Checkpointing.FULL)


@examples(10)
@given(cases(), st.sampled_from(COMMON))
def test_the_fastest_plan_fits_and_trains_the_same(case: Case, gpu: Card) -> None:
    assume(can_run(case, gpu))
    plan = case.plan.on(gpu)
    largest = largest_batch(case.architecture, plan, gpu.memory)
    found = fastest(case.architecture, plan, gpu.memory, largest)
    if found is None:
        return
    report = estimate(case.architecture, found.plan)
    assert need_of(report).fits(gpu.memory)
    assert report.seconds == found.seconds
    changes = {"checkpointing", "checkpoint_every", "batch_size"}
    assert {name for name in Plan.options() if vars(found.plan)[name] != vars(plan)[name]} < changes
    before = estimate(case.architecture, plan.but(batch_size=largest)).seconds
    assert found.seconds.tokens_per_second > before.tokens_per_second


def test_the_largest_micro_batch_is_not_the_fastest_where_layers_are_computed_again() -> None:
    gpu, model = find_gpu("a100-40"), find_model("gpt2")
    largest = largest_batch(model, CHECKPOINTED.on(gpu), gpu.memory)
    found = fastest(model, CHECKPOINTED.on(gpu), gpu.memory, largest)
    assert found.plan.checkpointing is Checkpointing.NONE
    assert found.plan.batch_size < largest
    # a forward pass is a third of all products (Chen et al., 2016)
    assert 0.2 < found.gain <= 1 / 3
    *_, advice = advise_in_steps(model, CHECKPOINTED, gpu)
    (way,) = [one for one in advice.ways if one.words == found.instruction]
    assert way.details.endswith("The largest micro-batch is not the fastest.")
