// @ts-check
/*
 * Files that configure a training, dropped anywhere on the page or chosen: what Python reads in them
 * for the card of the form. They stay in this browser. A config.json that comes alone is a model.
 */

import { grouped } from "#assets/digits.js";
import { copyOf, find, findAll, make } from "#assets/elements.js";

/** @typedef {{name: string, text: string}} Brought */
/** @typedef {{title: string, state: string, verdict: string, time: string, plan: string[], assumed: string, notes: string[], remedy: string, patch: string, query: string, done: boolean}} Run */

/**
 * @param {HTMLDetailsElement} place
 * @param {(files: Brought[], show: (answer: import("#assets/python.js").Answer) => void) => void} ask Asks Python about files beside the present state.
 * @param {(query: string) => void} follow Goes to a state.
 * @param {(file: File) => void} readConfig Takes a model's config.json.
 */
export function mountFiles(place, ask, follow, readConfig) {
  const chosen = /** @type {HTMLInputElement} */ (find(place, "#files"));
  const longest = Number(chosen.dataset.longest);
  const [status, error, answer] = ["#files-status", "#files-error", ".files__runs"].map((selector) => find(place, selector));
  /** @type {Brought[]} */
  let files = [];
  let beside = "";

  /** @param {File[]} brought */
  async function read(brought) {
    if (!brought.length) return;
    const tooLong = brought.find(({ size }) => size > longest);
    const texts = tooLong ? [] : await Promise.all(brought.map((file) => file.text()));
    if (texts.length === 1 && brought[0].name.endsWith(".json") && texts[0].includes('"model_type"')) return readConfig(brought[0]);
    place.open = true;
    files = texts.map((text, index) => ({ name: brought[index].name, text }));
    if (tooLong) refuse(`${tooLong.name} has more than ${grouped(longest)} bytes: give the file that configures the training.`);
    else request();
    place.scrollIntoView({ block: "nearest" });
  }

  function request() {
    place.setAttribute("aria-busy", "true");
    status.textContent = `Reading ${files.map(({ name }) => name).join(", ")} …`;
    goOn(files, beside, "");
  }

  /**
   * Ask until all changes are found, or something else is asked.
   * @param {Brought[]} asked
   * @param {string} now
   * @param {string} shown
   */
  function goOn(asked, now, shown) {
    ask(asked, (given) => {
      if (asked !== files || now !== beside) return;
      if (given.kind === "error") return refuse(`${given.error.message}.`);
      const found = JSON.stringify(given.value);
      if (found !== shown) show(given.value);
      if (given.value.some((/** @type {Run} */ run) => !run.done)) goOn(asked, now, found);
    });
  }

  /** @param {string} words */
  function refuse(words) {
    show([]);
    error.textContent = words;
  }

  /** @param {Run[]} runs */
  function show(runs) {
    place.removeAttribute("aria-busy");
    status.textContent = error.textContent = "";
    answer.replaceChildren(...runs.map(runOf));
  }

  /** @param {Run} run */
  function runOf(run) {
    const row = copyOf(find(place, "#files-run"), run);
    for (const part of findAll(row, "[data-part]")) {
      const value = run[/** @type {keyof Run} */ (part.dataset.part)];
      if (Array.isArray(value)) part.replaceChildren(...value.map((words) => make("li", {}, words)));
      /** @type {HTMLElement} */ (part.closest("[data-optional]") ?? part).hidden = !part.textContent;
    }
    row.dataset.fit = run.state;
    const button = find(row, ".files__open");
    button.hidden = !run.query;
    button.addEventListener("click", () => follow(run.query));
    return row;
  }

  chosen.addEventListener("input", () => {
    void read([...(chosen.files ?? [])]);
    chosen.value = ""; // the same file again is another choice
  });
  const page = /** @type {HTMLElement} */ (place.closest("article") ?? document.body);
  page.addEventListener("dragover", (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
  page.addEventListener("drop", (event) => {
    const dropped = [...(event.dataTransfer?.files ?? [])];
    if (!dropped.length) return;
    event.preventDefault();
    void read(dropped);
  });
  document.querySelector("#files-link")?.addEventListener("click", () => {
    place.open = true;
    chosen.focus();
  });

  return {
    /** Ask again where the card or the model of the form is another one. @type {(now: string) => void} */
    request(now) {
      if (now === beside) return;
      beside = now;
      if (files.length) request();
    },
  };
}
