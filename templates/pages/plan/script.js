// @ts-check
/*
 * The page that plans a run: the form's state goes to Python, what Python answers goes into the
 * page and into the address. No formula lives here. Python is loaded at the first touch, or at once
 * where the address already asks for something.
 */

import { mountCounts } from "./counts.js";
import { clearErrors, edit, fillFor, frameOf, showError } from "#assets/calculator/form.js";
import { find, findAll, make, mountEach } from "#assets/elements.js";
import { ask } from "#assets/python.js";
import { showPythonStatus } from "#assets/python-status.js";

/** @typedef {Record<string, string>} State What was chosen, by option, as in the address. */

const READY = "Computed by Python in your browser.";
const OTHER = "other";
// What describes a model or a GPU that is not on the list, and what each of the list brings itself.
/** @type {Record<string, {described: string[], own: string[]}>} */
const BRINGS = {
  model: { described: ["parameters", "layers", "width"], own: ["sequence_length", "sharing_groups"] },
  gpu: { described: ["teraflops"], own: ["watts"] },
};

/** @param {HTMLElement} root */
function mount(root) {
  const form = /** @type {HTMLFormElement} */ (find(root, "form"));
  const answer = find(root, ".answer");
  const refused = find(root, "#plan-refused");
  /** @type {State} */
  let state = Object.fromEntries([...new URLSearchParams(location.search)].filter(([field]) => frameOf(form, field)));
  /** @type {Record<string, string>} */
  let shown = JSON.parse(form.dataset.values ?? "{}");
  let edits = 0;
  const otherGpus = mountCounts(find(form, "[data-field=more_gpus]"), () => shown.gpu);

  function request() {
    const asked = ++edits;
    answer.dataset.stale = "";
    answer.setAttribute("aria-busy", "true");
    ask("plan", state, (reply) => {
      if (!root.isConnected || asked !== edits) return;
      answer.setAttribute("aria-busy", "false");
      if (reply.kind === "error") return refuse(reply.error);
      show(reply.value);
    });
  }

  /** @param {import("#assets/python.js").Failure} failure */
  function refuse(failure) {
    clearErrors(form);
    refused.textContent = showError(form, failure);
  }

  /** @param {any} value */
  function show(value) {
    clearErrors(form);
    refused.textContent = "";
    shown = value.values;
    state = Object.fromEntries(new URLSearchParams(value.query));
    for (const [field, setting] of Object.entries(value.values)) {
      frameOf(form, field)?.toggleAttribute("hidden", value.left_out.includes(field));
      fillFor(form, field, setting);
    }
    otherGpus.show(value.values.more_gpus);
    find(root, "#plan-kinds").hidden = value.kinds.length < 2;
    find(root, "#plan-kinds tbody").replaceChildren(...value.kinds.map(row));
    for (const element of findAll(root, "[data-figure]")) element.textContent = value.figures[element.dataset.figure ?? ""];
    find(root, "#plan-command").textContent = value.command;
    showStairs(root, value.stairs);
    find(root, "#plan-assumptions").replaceChildren(...value.assumptions.map(row));
    find(root, "#plan-sources").replaceChildren(...value.sources.map(source));
    history.replaceState(history.state, "", (value.query ? `?${value.query}` : location.pathname) + location.hash);
    find(root, "#plan-address").textContent = location.href;
    delete answer.dataset.stale;
  }

  /** @param {string} query */
  function follow(query) {
    state = Object.fromEntries(new URLSearchParams(query));
    request();
  }

  form.addEventListener("input", (event) => {
    const { field, value } = edit(form, /** @type {any} */ (event.target));
    if (value === "") delete state[field];
    else state[field] = value;
    for (const name of BRINGS[field]?.own ?? []) delete state[name];
    for (const name of BRINGS[field]?.described ?? []) {
      if (value === OTHER) state[name] ??= shown[name];
      else delete state[name];
    }
    request();
  });
  form.addEventListener("reset", () => follow(""));
  form.addEventListener("submit", (event) => event.preventDefault());
  root.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("[data-query]");
    if (button instanceof HTMLButtonElement) follow(button.dataset.query ?? "");
    if (/** @type {Element} */ (event.target).closest("#plan-print")) print();
  });
  root.addEventListener("change", (event) => {
    const box = /** @type {Element} */ (event.target).closest("[data-stair] input");
    if (box instanceof HTMLInputElement) follow(box.dataset.query ?? "");
  });

  showPythonStatus(root, find(root, "[data-status]"), READY, (isBroken) => {
    for (const set of root.querySelectorAll("fieldset")) set.disabled = isBroken;
  });
  find(root, "#plan-address").textContent = location.href;
  delete document.documentElement.dataset.asked; // set before the first paint, see first.html
  if (Object.keys(state).length) {
    for (const [field, setting] of Object.entries(state)) fillFor(form, field, setting);
    otherGpus.show(state.more_gpus ?? "");
    for (const element of findAll(root, "[data-figure]")) element.textContent = "–";
    request();
  } else {
    for (const kind of ["pointerenter", "focusin"]) root.addEventListener(kind, request, { once: true });
  }
}

/**
 * Draw the run without speed-ups, and after each one.
 * @param {HTMLElement} root
 * @param {{field: string, on: boolean, query: string, time: string, computing: number, waiting: number}[]} stairs
 */
function showStairs(root, stairs) {
  for (const line of findAll(root, "[data-stair]")) {
    const stair = stairs.find(({ field }) => field === line.dataset.stair);
    line.hidden = !stair;
    if (!stair) continue;
    line.toggleAttribute("data-off", !stair.on);
    find(line, "[data-time]").textContent = stair.time;
    for (const part of /** @type {const} */ (["computing", "waiting"])) {
      line.style.setProperty(`--${part}`, String(stair[part]));
    }
    const box = line.querySelector("input");
    if (!box) continue;
    box.checked = stair.on;
    box.dataset.query = stair.query;
  }
}

/** @param {string[]} cells */
const row = ([label, ...others]) =>
  make("tr", {}, make("th", { scope: "row" }, label), ...others.map((words) => make("td", {}, words)));

/** @param {{title: string, address: string}} from */
const source = ({ title, address }) => make("li", {}, make("a", { href: address }, title));

mountEach("#plan", mount);
