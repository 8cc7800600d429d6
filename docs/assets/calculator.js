// @ts-check
/*
 * The calculator's page: the form's state goes to Python, what Python answers goes into the page
 * and into the address. No formula and no list of models lives here.
 */

import { showAnswer, showBusy, showRefused, showStale } from "./calculator/answer.js";
import { clearErrors, edited, fillForm, fillFromAddress, modelsOwn, showAvailable, showError } from "./calculator/form.js";
import { ask, watch } from "./python.js";

/** @typedef {Record<string, string>} State What was chosen, by option, as in the address. */

/** @type {Record<string, string>} */
const STAGES = {
  loading: "Loading Python, which takes longest the first time. Until it is there, the figures are those of the defaults.",
  starting: "Starting Python …",
  ready: "",
  broken: "Python could not be loaded, so the form cannot answer. The figures shown are those of the defaults.",
};

/** @param {HTMLFormElement} form */
function mount(form) {
  const status = /** @type {HTMLElement} */ (form.querySelector("#calculator-status"));
  /** @type {State} */
  let state = Object.fromEntries(new URLSearchParams(location.search));
  let edits = 0;
  // A choice that a newly chosen model cannot have goes back to its default instead of failing.
  let modelChanged = false;

  function request() {
    const asked = ++edits;
    showBusy(true);
    ask("answer", state, (answer) => {
      if (!form.isConnected) return;
      if (asked === edits) showBusy(false);
      if (answer.kind === "error") return refuse(answer.error, asked === edits);
      clearErrors(form);
      showAnswer(answer.value);
      if (asked === edits) settle(answer.value);
    });
  }

  /** @param {any} value */
  function settle(value) {
    modelChanged = false;
    status.textContent = "";
    state = Object.fromEntries(new URLSearchParams(value.query));
    showAvailable(form, value.available);
    fillForm(form, value);
    const query = value.query ? `?${value.query}` : location.pathname;
    history.replaceState(history.state, "", query + location.hash);
  }

  /**
   * @param {import("./python.js").Failure} failure
   * @param {boolean} newest
   */
  function refuse(failure, newest) {
    if (!newest) return;
    const field = failure.field ?? "";
    if (modelChanged && field !== "model" && field in state) {
      delete state[field];
      return request();
    }
    clearErrors(form);
    showRefused(failure.message);
    showError(form, field, failure.message);
  }

  form.addEventListener("input", (event) => {
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
    state = {};
    request();
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  const stop = watch((stage, failure) => {
    if (!form.isConnected) return stop();
    status.textContent = STAGES[stage] + (failure ? ` (${failure.message})` : "");
    status.dataset.stage = stage;
    if (stage === "broken") for (const set of form.querySelectorAll("fieldset")) set.disabled = true;
  });
  if (location.search) {
    fillFromAddress(form, state);
    showStale();
  }
  request();
}

function mountIfHere() {
  const form = document.querySelector("#calculator-form:not([data-mounted])");
  if (!(form instanceof HTMLFormElement)) return;
  form.dataset.mounted = "";
  mount(form);
}

// Material's instant navigation replaces the content and emits each new document.
const documents = /** @type {any} */ (globalThis).document$;
if (documents) documents.subscribe(mountIfHere);
else mountIfHere();
