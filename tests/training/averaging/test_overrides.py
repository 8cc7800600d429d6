"""The private methods of hivemind that we override: with another release, look at each again.

Each stands here with the SHA-256 of its source in the release that is pinned, the reason, and the
thread of learning-at-home/hivemind that is about it, where we found one.
"""

import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import training.averaging

AVERAGER, OPTIMIZER = "averaging.averager.DecentralizedAverager", "optim.optimizer.Optimizer"
TRACKER = "optim.progress_tracker.ProgressTracker"
OVERRIDDEN = {
    f"{AVERAGER}._load_state_from_peers": (
        "fe7b419d01ce",
        "a download has no deadline; all ask the same donor: issue 169, open",
    ),
    f"{AVERAGER}._run_allreduce_inplace_": (
        "914d57cffc7d",
        "its reducer trusts every sender: pull request 379, CenteredClip, open",
    ),
    f"{AVERAGER}._step": ("dfbb4416e9eb", "a full group waits out its time"),
    f"{OPTIMIZER}._average_gradients_and_load_into_optimizer": (
        "d95bb5ebc061",
        "where a round fails, as in issue 519, it takes the local gradients and goes its own way",
    ),
    f"{OPTIMIZER}._begin_averaging_gradients": (
        "f17d8bb258a0",
        "where none begins, it steps alone: so since pull request 440",
    ),
    f"{OPTIMIZER}._make_progress_tracker": ("a3fe70a367d7", "it makes a tracker of its own class"),
    f"{OPTIMIZER}._make_state_averager": ("59a43eff001c", "it makes an averager of its own class"),
    f"{OPTIMIZER}._update_global_epoch": ("03a36523a3fc", "a failed round must make no step"),
    f"{TRACKER}._parse_swarm_progress_data": (
        "1b5ad87469d3",
        "it believes any claim of samples that is signed: pull request 250 went so far",
    ),
    f"{TRACKER}._progress_reporter": ("affc9ed95108", "it does not announce helpers"),
    "p2p.servicer.ServicerBase._get_handle_name": (
        "d3e13c74c5e5",
        "calls are named after the class since pull request 323: a subclass would not be found",
    ),
}


def overridden() -> Iterator[tuple[str, str]]:
    """Private methods of hivemind that a class of this room overrides, and their sources' sums."""
    for found in pkgutil.iter_modules(training.averaging.__path__, "training.averaging."):
        module = importlib.import_module(found.name)
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ != module.__name__:
                continue
            for base in kind.__mro__[1:]:
                room, _, place = base.__module__.partition(".")
                for name in vars(kind).keys() & vars(base).keys() if room == "hivemind" else ():
                    method = getattr(base, name)
                    if name.startswith("_") and not name.startswith("__") and callable(method):
                        source = inspect.getsource(method).encode()
                        digest = hashlib.sha256(source).hexdigest()[:12]
                        yield f"{place}.{base.__qualname__}.{name}", digest


def test_every_private_method_that_we_override_is_the_one_that_was_looked_at() -> None:
    assert dict(overridden()) == {name: digest for name, (digest, _) in OVERRIDDEN.items()}
