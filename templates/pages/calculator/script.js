// @ts-check
/*
 * The calculator's page: the form's state goes to Python, what Python answers goes into the page
 * and into the address. No formula and no list of models lives here. Until Python is there, a
 * model's default state is shown as it was computed when the site was built.
 */

import { hasAdvice, mountAdvice, showAdvice, showNoAdvice, showSearching } from "./advice.js";
import { showAnswer, showBusy, showComputing, showFigures, showNone, showRefused, showStopped, showVerdict } from "./answer.js";
import { isListed, mountChooser, shapeOf } from "./chooser.js";
import { hasConfig, mountConfig, pack, unpack } from "./config.js";
import { cardIn, clearErrors, edited, fieldsIn, fillForm, fillFromAddress, frameOf, modelsOwn, showChosen, showError, showLargest, showLongest, showRefusals, subjectOf } from "#assets/calculator/form.js";
import { mountCurve } from "./curve.js";
import { mountFiles } from "./files.js";
import { mountFrontier } from "./frontier.js";
import { mountHub, proposeHub } from "./hub.js";
import { mountMessage } from "./message.js";
import { mountProgram } from "./program.js";
import { Series } from "./series.js";
import { grouped } from "#assets/digits.js";
import { find, findAll, mountEach } from "#assets/elements.js";
import { ask, drop, isReady } from "#assets/python.js";
import { showPythonStatus } from "#assets/python-status.js";

/** @typedef {Record<string, string>} State What was chosen, by option, as in the address. */

const READY = "Computed by Python in your browser.";
// An answer that takes longer than this leaves the figures before it dimmed.
const AT_ONCE_MS = 100;

/** @param {HTMLFormElement} form */
function mount(form) {
  // What an address holds besides our options, such as a tracker's mark, is not ours.
  /** @type {State} */
  let state = Object.fromEntries(
    [...new URLSearchParams(location.search)].filter(
      ([field]) => field === "pin" || (field !== "config" && frameOf(form, field)),
    ),
  );
  // The page was built with the figures of the state that it opens with.
  const opening = form.dataset.opening ?? "";
  const givesConfig = hasConfig(location.hash);
  const isOpening = !givesConfig && Object.keys(state).length === 0;
  if (isOpening) state = read(opening);
  else if (!givesConfig) state = { model: form.dataset.unnamed ?? "", ...state };
  // The fragment that holds the state's config.json, as it was packed last.
  let packed = { text: "", fragment: "" };
  const unshared = find(form, "#config-unshared");
  let edits = 0;
  const series = new Series();
  // A choice that a newly chosen model cannot have goes back to its default instead of failing.
  let modelChanged = false;
  // The state shown, as the address of another one holds it.
  let pin = "";
  const folded = (/** @type {string} */ name) => /** @type {HTMLDetailsElement} */ (find(document, `#calculator-${name}`));
  const advice = mountAdvice(find(document, "#calculator-advice"), follow);
  const program = mountProgram(folded("program"), askNow);
  const drawn = [mountCurve(folded("curve"), askNow), mountFrontier(folded("frontier"), askNow, follow), program];
  const pasted = mountMessage(folded("message"), askNow, follow);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let late;

  /** @type {import("./folded.js").Ask} */
  function askNow(method, more, show) {
    const asked = edits;
    ask(method, { ...state, ...more }, (answer) => {
      if (form.isConnected && asked === edits) show(answer);
    });
  }

  function request() {
    if (!form.isConnected) return; // the visitor has gone on to another page
    const asked = ++edits;
    showBusy(true);
    showSearching();
    form.dataset.searching = "";
    for (const one of drawn) one.showStale();
    // The figures come first.
    for (const method of ["answer", "advise", "curve", "frontier", "code", "explain"]) drop(method);
    clearTimeout(late);
    if (isReady()) late = setTimeout(() => form.isConnected && showComputing(subjectOf(form)), AT_ONCE_MS);
    else void showFirst(asked);
    if (asked === 1 && isOpening) return askForAnswer(asked); // its figures are in the page
    ask("glance", state, (answer) => {
      if (!form.isConnected) return;
      if (asked === edits) clearTimeout(late);
      if (answer.kind === "error") return refuse(answer.error, asked === edits);
      clearErrors(form);
      showFigures(answer.value);
      if (asked !== edits) return;
      settle(answer.value);
      series.after("answer", () => askForAnswer(asked));
    });
  }

  /** Ask for what takes longer than a frame, unless something is edited. @param {number} asked */
  function askForAnswer(asked) {
    if (asked !== edits) return;
    askNow("answer", {}, (answer) => {
      showBusy(false);
      if (answer.kind === "error") return refuse(answer.error, true);
      const name = named(answer.value);
      showAnswer(answer.value);
      settle(answer.value);
      showRefusals(form, answer.value.refused);
      if (hasAdvice(name)) delete form.dataset.searching;
      else series.after("advice", () => askForAdvice(asked, name));
      for (const one of drawn) one.follow(name);
      pasted.request();
      files.request(JSON.stringify(subject()));
    });
  }

  /**
   * Ask what would make it fit, until all is found or something is edited.
   * @type {(asked: number, name: string) => void}
   */
  function askForAdvice(asked, name) {
    if (asked !== edits) return;
    askNow("advise", {}, (answer) => {
      if (answer.kind === "error") return;
      showAdvice(answer.value, name);
      if (answer.value.done) markLargest(answer.value.largest);
      if (!answer.value.done) askForAdvice(asked, name);
    });
  }

  /** @param {Record<string, number>} largest */
  function markLargest(largest) {
    showLargest(form, largest);
    delete form.dataset.searching;
  }

  /** A state's name: its address, with the config.json that this leaves out. @param {any} value */
  const named = (value) => [value.query, state.config].filter(Boolean).join("\n");

  /** Go to a state that Python proposes. @param {string} query */
  function follow(query) {
    const before = state;
    const { config } = state;
    state = { ...read(query), ...(config && !query.startsWith("model=") && { config }) };
    request();
    return () => {
      state = before;
      request();
    };
  }

  /**
   * Show what was computed when the site was built, before Python is there: a model's default state,
   * or the verdict alone with a preset. Of any other state nothing is known.
   * @param {number} asked
   */
  async function showFirst(asked) {
    const { model, gpu, preset, ...others } = state;
    if (asked === 1 && isOpening) return;
    showComputing(subjectOf(form));
    const isPlain = !gpu && !preset && !model?.includes("/");
    if (!model || !(preset || isPlain) || Object.keys(others).length) return;
    const name = isPlain || isListed(form, model) ? model : shapeOf(model, await firstFigures("shapes"));
    const first = await firstFigures(`${isPlain ? "" : "verdicts/"}${encodeURIComponent(name.replace("/", "--"))}`);
    if (!first || asked !== edits || isReady() || !form.isConnected) return;
    if (!isPlain) return showVerdict(verdictFrom(first[preset], cardIn(form, gpu ?? form.dataset.gpu)));
    showAnswer(first.answer);
    settle(first.answer);
    showRefusals(form, first.answer.refused);
    showAdvice(first.advice, named(first.answer));
    markLargest(first.advice.largest);
  }

  /** @param {any} value */
  function settle(value) {
    modelChanged = false;
    pin = value.pin;
    showPinned("pin" in state);
    showChosen(form, value.changed);
    const { config = "" } = state;
    state = { ...read(value.query), ...(config && { config }) };
    showLongest(form, value.longest);
    fillForm(form, value);
    const query = value.query && value.query !== opening ? `?${value.query}` : location.pathname;
    if (packed.text !== config) {
      packed = { text: config, fragment: "" };
      unshared.hidden = true;
    }
    // Browsers refuse more than some hundred addresses in a few seconds.
    series.after("address", () => {
      if (form.isConnected) history.replaceState(history.state, "", query + (packed.fragment || otherFragment()));
    });
    if (config && !packed.fragment) void share(config);
  }

  /** What follows "#" in the address, if it is not a config.json. */
  function otherFragment() {
    return hasConfig(location.hash) ? "" : location.hash;
  }

  /** Put a config.json into the address. @type {(text: string) => Promise<void>} */
  async function share(text) {
    const fragment = await pack(text);
    unshared.hidden = fragment !== "";
    if (!fragment || state.config !== text || !form.isConnected) return;
    packed = { text, fragment };
    history.replaceState(history.state, "", location.pathname + location.search + fragment);
  }

  /** Read the config.json that the address holds, then ask. */
  async function restore() {
    const text = /** @type {HTMLTextAreaElement} */ (find(form, "#config"));
    const longest = Number(text.dataset.longest);
    try {
      text.value = await unpack(location.hash, longest);
    } catch (error) {
      const rule =
        error instanceof RangeError
          ? `must hold a config.json of at most ${grouped(longest)} characters`
          : "was cut or changed in the link: paste the config.json itself";
      return refuse({ type: "InputError", field: "config", message: rule, value: "in this address", rule }, true);
    }
    /** @type {HTMLDetailsElement} */ (text.closest("details")).open = true;
    packed = { text: text.value.trim(), fragment: location.hash };
    delete state.model;
    state.config = packed.text;
    request();
  }

  /**
   * @param {import("#assets/python.js").Failure} failure
   * @param {boolean} newest
   */
  function refuse(failure, newest) {
    if (!newest || !form.isConnected) return;
    showBusy(false);
    const field = failure.field ?? "";
    if (field === "pin" && state.pin) {
      delete state.pin; // its config.json is gone, or its address was changed by hand
      return request();
    }
    if (modelChanged && field !== "model" && field !== "config" && field in state) {
      delete state[field];
      return request();
    }
    if (modelChanged && state.preset) {
      if (state.preset === "full") delete state.preset;
      else state.preset = "full"; // not every model takes adapters
      return request();
    }
    clearErrors(form);
    const way = failure.way_out;
    showRefused(showError(form, failure), way && { words: way.words, take: () => void follow(way.query) });
    if (field === "model") proposeHub(form, state.model ?? "");
  }

  for (const [id, change] of Object.entries({ "#compare-pin": () => ({ ...state, pin }), "#compare-unpin": unpinned })) {
    document.querySelector(id)?.addEventListener("click", () => {
      state = change();
      request();
      showPinned("pin" in state);
      find(document, "pin" in state ? "#compare-unpin" : "#compare-pin").focus();
    });
  }

  function unpinned() {
    const { pin: _, ...others } = state;
    return others;
  }

  form.addEventListener("input", (event) => {
    advice.forget();
    series.edit(/** @type {HTMLInputElement} */ (event.target).type === "range");
    const change = edited(form, /** @type {HTMLInputElement} */ (event.target));
    modelChanged = change.field === "model";
    if (modelChanged) {
      for (const field of modelsOwn(form)) delete state[field];
    }
    Object.assign(state, change.set);
    for (const field of change.unset) delete state[field];
    request();
  });
  form.addEventListener("reset", () => {
    state = read(opening);
    advice.forget();
    request();
  });
  form.addEventListener("click", (event) => {
    if (event.target instanceof HTMLInputElement && event.target.ariaDisabled === "true") event.preventDefault();
    const family = event.target instanceof Element && event.target.closest(".family");
    if (!(family instanceof HTMLElement)) return;
    advice.forget();
    const others = ["gpu", "gpu_memory", "pin", ...fieldsIn(form, "#form-job")];
    const kept = Object.entries(state).filter(([field]) => others.includes(field));
    follow(new URLSearchParams([["model", family.dataset.model ?? ""], ...kept]).toString());
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  mountChooser(/** @type {HTMLInputElement} */ (form.querySelector("#model")));
  /** @param {string} message */
  const refuseConfig = (message) => {
    clearErrors(form);
    showRefused(showError(form, { type: "InputError", field: "config", message, value: "", rule: "" }));
  };
  const readConfig = mountConfig(form, refuseConfig);
  mountHub(form, refuseConfig);
  /** @type {Parameters<typeof mountFiles>[1]} */
  const check = (brought, show) => ask("check", { ...subject(), files: brought }, (answer) => form.isConnected && show(answer));
  const files = mountFiles(folded("files"), check, follow, readConfig);

  /** The model, the card, and the data set of the state. */
  function subject() {
    const fields = ["model", "config", "gpu", "gpu_memory", ...fieldsIn(form, "#form-job")];
    return Object.fromEntries(fields.filter((field) => field in state).map((field) => [field, state[field]]));
  }

  showPythonStatus(form, find(form, "#calculator-status"), READY, (isBroken) => {
    for (const set of form.querySelectorAll("fieldset")) set.disabled = isBroken;
    if (isBroken) showStopped();
  });
  addEventListener("hashchange", () => {
    if (form.isConnected && hasConfig(location.hash) && location.hash !== packed.fragment) void restore();
  });
  if (!isOpening) {
    fillFromAddress(form, state);
    showNone();
    showNoAdvice();
    program.forget();
    find(document, ".program").hidden = true;
  } else {
    markLargest(JSON.parse(find(document, "#calculator-advice").dataset.largest ?? "{}"));
  }
  delete document.documentElement.dataset.asked; // set before the first paint, see first.html
  if (givesConfig) void restore();
  else request();
}

/** @type {(query: string) => State} */
const read = (query) => Object.fromEntries(new URLSearchParams(query));

/** @param {boolean} isPinned */
function showPinned(isPinned) {
  find(document, "#compare-pin").hidden = isPinned;
  find(document, "#compare-unpin").hidden = !isPinned;
}

/**
 * What Python answered when the site was built; undefined where it was not asked.
 * @type {(path: string) => Promise<any>}
 */
async function firstFigures(path) {
  try {
    const response = await fetch(new URL(`./first/${path}.json`, import.meta.url));
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined; // Python answers, only later
  }
}

/**
 * A card's verdict and the sum behind it, from those of a preset.
 * @type {(verdicts: [string, string, string[]][] | undefined, card: HTMLOptionElement | undefined) => [string, string] | undefined}
 */
function verdictFrom(verdicts, card) {
  const found = card && verdicts?.find(([, , cards]) => cards.includes(card.value));
  if (!found) return undefined;
  const [state, sum] = found;
  return [state, sum.replace("{card}", card.dataset.short ?? "").replace("{memory}", card.dataset.memory ?? "")];
}

// On paper, what is folded away belongs to the choices, too.
addEventListener("beforeprint", () => {
  for (const folded of findAll(document, ".form__more, .more")) folded.toggleAttribute("open", true);
});

mountEach("#calculator-form", mount);
