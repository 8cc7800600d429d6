"""Access, training data and live data: a volunteer's requests to other servers."""

import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urljoin

from training.doctor import clock
from training.doctor.clock import Reading
from training.doctor.findings import NEWEST_FILE, Finding, PointName, Verdict, fine, unchecked
from training.doctor.setup import Setup
from training.run import download
from training.run.recipes import OWN_DATA, LanguageSettings
from training.run.status import first_line

ANSWER_SECONDS = 8.0
LARGEST_ANSWER = 1024 * 1024
ON_LINE = "check this machine's connection; if it works, wait: it is tried again automatically"


def look_at_access(setup: Setup) -> list[Finding]:
    """Ask the run's authority for access, with the token that `join` would use."""
    if not setup.run.authority:
        return [fine(PointName.ACCESS, "not needed: the run admits everyone")]
    if "hivemind" in setup.broken_imports:
        return [unchecked(PointName.ACCESS, "hivemind")]
    from training.access.causes import EXPLANATIONS, AccessRefusedError
    from training.access.client import ask
    from training.access.trust import token_for
    from training.network.connection import Identity

    try:
        key = Identity.read(setup.folder).key
        grant = ask(setup.run, key, token_for(setup.run.authority)).grant
    except AccessRefusedError as refusal:
        explanation = EXPLANATIONS[refusal.cause]
        more = f" ({refusal.detail})" if refusal.detail else ""
        cause = f"{explanation.meaning}{more}"
        return [Finding(PointName.ACCESS, Verdict.PROBLEM, cause, explanation.fix, refusal.passes)]
    except OSError as error:
        cause = f"the identity in {setup.folder} cannot be read: {first_line(error)}"
        return [Finding(PointName.ACCESS, Verdict.PROBLEM, cause, "choose another --folder")]
    return [fine(PointName.ACCESS, f"admitted as {grant.username}")]


def look_at_data(setup: Setup) -> list[Finding]:
    """Check that the data set and the tokenizer are where the run says."""
    source = setup.run.data or setup.recipe.data.source
    if source is None:
        cause = f"neither the recipe {setup.recipe.name} nor the run file names a data set"
        return [Finding(PointName.DATA, Verdict.PROBLEM, cause, NEWEST_FILE)]
    findings = [_look_at_source(setup, source)]
    tokenizer = setup.recipe.data.tokenizer
    if tokenizer not in OWN_DATA and not Path(tokenizer).is_dir():
        findings.append(_look_at_hub(setup, "tokenizer", tokenizer))
    model = setup.recipe.model
    if isinstance(model, LanguageSettings) and isinstance(model.config, str):
        findings.append(_look_at_hub(setup, "model", model.config))
    return findings


def _look_at_source(setup: Setup, source: str) -> Finding:
    if source in OWN_DATA:
        return fine(PointName.DATA, f"{OWN_DATA[source]}, which come with this program")
    if Path(source).is_dir():
        return _look_at_shards(setup, Path(source))
    return _look_at_hub(setup, "data set", source)


def _look_at_shards(setup: Setup, folder: Path) -> Finding:
    """Check the first shard of a folder: its codes must be in the model's vocabulary."""
    from calculator.errors import InputError
    from training.data.shards import list_shards, read_info

    if isinstance(setup.recipe.model, LanguageSettings):
        files = len(list(folder.glob("*.parquet")))
        if files:
            return fine(PointName.DATA, f"{files} files of texts in {folder}")
        cause = f"there are no Parquet files in {folder}"
        return Finding(PointName.DATA, Verdict.PROBLEM, cause, "ask the organizers for the texts")
    shards = list_shards(folder)
    fix = "create them with `python -m training encode`, or ask the organizers"
    if not shards:
        return Finding(PointName.DATA, Verdict.PROBLEM, f"there are no shards in {folder}", fix)
    try:
        size = read_info(shards[0]).codebook_size
    except InputError as error:
        return Finding(PointName.DATA, Verdict.PROBLEM, str(error), fix)
    known = setup.recipe.model.image_vocabulary_size
    if size > known:
        cause = f"{folder} holds {size:,} different codes, but the model knows {known:,}"
        return Finding(PointName.DATA, Verdict.PROBLEM, cause, fix)
    return fine(PointName.DATA, f"{len(shards)} shards in {folder}")


def _look_at_hub(setup: Setup, what: str, name: str) -> Finding:
    """Ask the Hugging Face Hub about a repository, without loading any of it."""
    if "huggingface_hub" in setup.broken_imports:
        return unchecked(PointName.DATA, "huggingface_hub")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    look = HfApi().dataset_info if what == "data set" else HfApi().model_info
    fix, passes = ON_LINE, True
    try:
        look(name, timeout=ANSWER_SECONDS)
    except GatedRepoError:
        cause, passes = f"the {what} {name} requires your consent", False
        fix = "accept its terms on its page and log in with `hf auth login`"
    except (RepositoryNotFoundError, HFValidationError):
        cause, passes = f"there is no {what} {name} that you can read", False
        fix = "if it is private, log in with `hf auth login`; otherwise tell the organizers"
    except OfflineModeIsEnabled:
        cause, passes = f"could not look for the {what} {name}: offline mode is on", False
        fix = "unset HF_HUB_OFFLINE"
    except HfHubHTTPError as error:
        cause = f"the Hub failed to describe the {what} {name}: {first_line(error)}"
    except Exception as error:  # the library passes on errors of its HTTP client
        cause = f"the Hub does not respond about the {what} {name} ({first_line(error)})"
    else:
        return fine(PointName.DATA, f"{what} {name}")
    return Finding(PointName.DATA, Verdict.PROBLEM, cause, fix, passes)


def look_at_exchange(setup: Setup, readings: list[Reading]) -> list[Finding]:
    """Ask the web host of a run with local steps, in place of port and entry points."""
    own = "not needed: volunteers of this run use its web host"
    findings = [fine(PointName.PORT, own), fine(PointName.REACHABILITY, own)]
    address = setup.run.exchange
    if not address:
        cause = "the run file names no exchange"
        return [*findings, Finding(PointName.ENTRY_POINTS, Verdict.PROBLEM, cause, NEWEST_FILE)]
    from training.sparse.store import StoreError, is_outage
    from training.sparse.web_store import WebStore

    store, asked_at = WebStore(address), time.time()
    try:
        status = store.describe()
        readings.append(clock.read("the run's host", status.time, asked_at, time.time()))
    except StoreError as error:
        passes = is_outage(error)
        fix = ON_LINE if passes else NEWEST_FILE
        found = Finding(PointName.ENTRY_POINTS, Verdict.PROBLEM, str(error), fix, passes)
        return [*findings, found]
    finally:
        store.close()
    if status.run != setup.run.name:
        cause = f"{address} is the host of another run"
        return [*findings, Finding(PointName.ENTRY_POINTS, Verdict.PROBLEM, cause, NEWEST_FILE)]
    words = f"{address} answers, round {status.round:,}"
    return [*findings, _look_at_store(setup.run.store, words)]


def _look_at_store(address: str, words: str) -> Finding:
    """Ask the run's object store for anything: a refusal is an answer."""
    if not address:
        return fine(PointName.ENTRY_POINTS, words)
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS):
            pass
    except urllib.error.HTTPError as error:
        error.close()
        if error.code >= 500:
            return _without_store(address, words, f"status {error.code}")
    except (OSError, HTTPException, ValueError) as error:
        return _without_store(address, words, first_line(error))
    return fine(PointName.ENTRY_POINTS, f"{words}; its store {address} answers")


def _without_store(address: str, words: str, why: str) -> Finding:
    cause = f"{words}, but its store {address} does not ({why})"
    fix = "nothing: files then come from the run's host, more slowly"
    return Finding(PointName.ENTRY_POINTS, Verdict.WARNING, cause, fix)


def look_at_live(setup: Setup) -> list[Finding]:
    """Read the run's card."""
    live = setup.run.live
    if not live:
        return [fine(PointName.LIVE, "the run publishes none")]
    try:
        card = json.loads(_read_card(live))
        name = card["name"]
    except urllib.error.HTTPError as error:
        cause = f"{live} returns status {error.code}"
        return [_no_live_data(cause)]
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
        return [_no_live_data(f"{live} cannot be read ({reason or first_line(error)})")]
    except (download.TooLongError, KeyError, TypeError):
        return [_no_live_data(f"{live} holds no live data of a run")]
    if name != setup.run.name:
        return [_no_live_data(f"{live} holds the live data of another run: {name!r}")]
    if card.get("finished"):
        cause = f"the run ended at {card['finished']}"
        fix = "look for a newer run on the organizers' page"
        return [Finding(PointName.LIVE, Verdict.WARNING, cause, fix)]
    return [fine(PointName.LIVE, live)]


def _no_live_data(cause: str) -> Finding:
    fix = "nothing, as long as other volunteers can send you the weights"
    return Finding(PointName.LIVE, Verdict.WARNING, cause, fix, passes=True)


def _read_card(live: str) -> bytes:
    is_web = download.is_web(live)
    place = urljoin(live.rstrip("/") + "/", "run.json") if is_web else Path(live) / "run.json"
    return download.read(place, LARGEST_ANSWER, ANSWER_SECONDS)
