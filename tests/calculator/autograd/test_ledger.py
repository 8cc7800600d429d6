from calculator.autograd.dtypes import FLOAT16, FLOAT32
from calculator.autograd.ledger import Ledger, Storage
from calculator.autograd.sizes import Size, size
from calculator.parts import Part, Phase
from tests.calculator.living import living, living_as

ELEMENTS = size("tokens") * size("hidden")
LIVING = (ELEMENTS, FLOAT32)


def new(ledger: Ledger, elements: Size = ELEMENTS, part: Part = Part.TEMPORARIES) -> Storage:
    storage = Storage(ledger, ledger.size_id(elements, FLOAT32), part)
    storage.holders += 1
    return storage


def test_equal_sizes_have_one_number() -> None:
    ledger = Ledger()
    assert ledger.size_id(ELEMENTS, FLOAT32) == ledger.size_id(ELEMENTS, FLOAT32) == 1
    assert ledger.size_id(ELEMENTS, FLOAT16) == 2


def test_bytes_die_with_their_last_holder() -> None:
    ledger = Ledger()
    storage = new(ledger)
    storage.holders += 1
    storage.release()
    assert living(ledger) == {LIVING: 1}
    storage.release()
    assert not living(ledger)


def test_what_the_graph_keeps_is_an_activation_until_it_is_done_with_it() -> None:
    ledger = Ledger()
    storage = new(ledger)
    storage.save()
    storage.save()
    assert living_as(ledger, Part.ACTIVATIONS) == {LIVING: 1}
    storage.unsave()
    assert living_as(ledger, Part.ACTIVATIONS) == {LIVING: 1}
    storage.unsave()
    assert not living_as(ledger, Part.ACTIVATIONS)
    assert living_as(ledger, Part.TEMPORARIES) == {LIVING: 1}


def test_a_gradient_stays_one_when_the_graph_keeps_it() -> None:
    ledger = Ledger()
    storage = new(ledger)
    storage.become(Part.GRADIENTS)
    storage.save()
    assert living_as(ledger, Part.GRADIENTS) == {LIVING: 1}


def test_changing_its_part_neither_makes_nor_frees_bytes() -> None:
    ledger = Ledger()
    storage = new(ledger)
    before = list(ledger.events)
    storage.become(Part.GRADIENTS)
    assert ledger.events == before


def test_static_bytes_are_on_no_ledger() -> None:
    ledger = Ledger()
    static = Storage(ledger, 0, Part.WEIGHTS)
    static.holders += 1
    static.release()
    assert ledger.events == []


def test_phases_and_layers_begin_at_the_event_that_follows() -> None:
    ledger = Ledger()
    new(ledger)
    ledger.begin(Phase.LOSS)
    ledger.mark("layers", 3, backward=True)
    assert ledger.phases == [(1, Phase.LOSS)]
    assert ledger.marks == [(1, ("layers", 3, True))]
