"""A state of the calculator's page: what is counted for it, and its address."""

from dataclasses import dataclass
from urllib.parse import urlencode

from calculator.page.states import chosen, read_state
from calculator.planner.need import judged
from calculator.report import Report


@dataclass(frozen=True, slots=True)
class Counted:
    """A step's memory, and what follows `calculator/?` in the address that shows it."""

    report: Report
    query: str

    @property
    def peak(self) -> int:
        """Bytes of tensors on the GPU at the peak."""
        return self.report.gpu.total

    @property
    def need(self) -> int:
        """Bytes of GPU memory, with the estimated overhead."""
        return self.peak + self.report.overhead.total

    @property
    def parts(self) -> dict[str, int]:
        """Bytes of the peak by the parts' keys."""
        return self.report.gpu.as_json()


def count(**choices: str) -> Counted:
    """The estimate of a step, its model, GPU and options named as in the page's address.

    >>> count(model="gpt2-l", batch_size="2").query
    'model=gpt2-l&batch_size=2'
    """
    architecture, plan, gpu = read_state(choices)
    report = judged(architecture, plan.on(gpu))
    return Counted(report, urlencode(chosen(architecture, plan, choices)))
