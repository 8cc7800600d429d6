// @ts-check
/*
 * The answer's figures. The markup was rendered when the site was built; each element says which
 * figure it shows (`data-text`) or which sizes CSS draws it by (`data-lengths`).
 */

/** @param {string} selector */
const find = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));

/**
 * What stands at a dotted path.
 *
 * @param {any} value
 * @param {string} path
 */
const lookUp = (value, path) => path.split(".").reduce((found, name) => found?.[name], value);

/** @param {any} value The value that calculator.protocol returns for "answer". */
export function showAnswer(value) {
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-text]"))) {
    const text = value.figures[element.dataset.text ?? ""];
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-lengths]"))) {
    for (const pair of (element.dataset.lengths ?? "").split(" ")) {
      const [name, path] = pair.split(":");
      element.style.setProperty(`--${name}`, String(lookUp(value, path)));
    }
  }
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-fits]"))) {
    element.dataset.fits = String(value.verdict.fits);
  }
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-moment]"))) {
    element.toggleAttribute("data-peak", element.dataset.moment === value.report.gpu.moment);
  }
  showSavings(value);
  showNotes(value.report.notes);
  find("#calculator-command").textContent = value.command;
  const answer = find("#calculator-answer");
  answer.removeAttribute("data-stale");
  find("#calculator-refused").hidden = true;
  answer.dataset.answerId = String(Number(answer.dataset.answerId) + 1);
}

/** Dim figures that are not those of the form's present state. */
export function showStale() {
  find("#calculator-answer").dataset.stale = "";
}

/**
 * Say above the figures why they are not those of the form's present state.
 *
 * @param {string} message
 */
export function showRefused(message) {
  showStale();
  const place = find("#calculator-refused");
  place.textContent = `These are not the figures of your choices. ${message}`;
  place.hidden = false;
}

/**
 * Say that the figures are not yet those of the form's present state.
 *
 * @param {boolean} busy
 */
export function showBusy(busy) {
  find("#calculator-answer").setAttribute("aria-busy", String(busy));
}

/** @param {any} value */
function showSavings(value) {
  const template = /** @type {HTMLTemplateElement} */ (find("#saving-row"));
  const rows = value.savings.map((/** @type {any} */ saving, /** @type {number} */ index) => {
    const row = /** @type {HTMLElement} */ (
      /** @type {Element} */ (template.content.firstElementChild).cloneNode(true)
    );
    row.style.setProperty("--bytes", saving.gpu);
    row.toggleAttribute("data-costs", saving.gpu < 0);
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-part]"))) {
      const name = part.dataset.part ?? "";
      part.textContent = name === "label" ? saving.label : value.figures[`savings.${index}.${name}`];
    }
    return row;
  });
  find("#calculator-savings").replaceChildren(...rows);
  find("#calculator-no-savings").hidden = rows.length > 0;
}

/** @param {string[]} notes */
function showNotes(notes) {
  const items = notes.map((note) => {
    const item = document.createElement("li");
    item.textContent = note;
    return item;
  });
  find("#calculator-notes").replaceChildren(...items);
  find("#calculator-notes-block").hidden = items.length === 0;
}

document.addEventListener("click", async (event) => {
  const button = event.target;
  if (!(button instanceof HTMLElement) || button.id !== "calculator-copy") return;
  const command = find("#calculator-command");
  try {
    await navigator.clipboard.writeText(command.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    getSelection()?.selectAllChildren(command);
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
});
