"""'Train with local steps': measured figures as recorded, limits said plainly."""

from templates.pages.local_steps.learning import measured
from templates.pieces.benchmark import read_benchmark
from templates.pieces.recorded_run import first_run
from tests.pages.rendered import render_page
from tests.pages.scripts import call
from training.sparse.object_store import PERMITTED_SECONDS


def test_the_table_shows_the_recorded_figures() -> None:
    found = measured()
    values = read_benchmark("sparse").values
    loss, sent, received = found.rows
    assert [cell.split()[0] for cell in loss[1:]] == [
        f"{values['synchronous: loss, mean']:.2f}",
        f"{values['sparse: loss, mean']:.2f}",
    ]
    assert sent[1:] == [
        f"{values['synchronous: sent by a peer']:,.0f} kB",
        f"{values['sparse: sent by a peer']:,.0f} kB",
    ]
    assert received[2] == f"{values['sparse: received by a peer']:,.0f} kB"


def test_the_page_says_who_has_the_keys_of_the_store() -> None:
    page = render_page("local-steps")
    section = page[page.index("{ #store }") : page.index("{ #limits }")]
    assert "Volunteers never get a key" in section
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        assert f"export {name}=" in section
    assert f"for {PERMITTED_SECONDS // 60} minutes" in section
    assert "not with each provider" in section


def test_the_live_page_says_what_ends_a_step() -> None:
    rest = {"total_steps": 300, "warmup_steps": 10, "learning_rate": 0.05}
    ends = ({"target_batch_size": 4096}, {"target_batch_size": 0, "round_seconds": 1.5})
    cards = [first_run().card | {"schedule": rest | end} for end in ends]
    averaging, local = call("docs/assets/live/figures.js", "about", [[c, "young"] for c in cards])
    assert ["Sequences per step", "4,096"] in averaging
    words = "a round: 1.5 s of local steps by each volunteer, then an exchange"
    assert ["Each step", words] in local
