// @ts-check
/* The form's controls: what an edit means, and what Python's answer puts into them. */

/** @typedef {HTMLInputElement | HTMLSelectElement} Control */

const NOT_ALL = "Choices in grey do not go with this model and the other options.";
const FIXED = "This model leaves no choice here.";

/** @param {Control} control */
const fieldOf = (control) => control.dataset.for ?? control.name;

/**
 * The controls of one option: one, or a slider with its number field.
 *
 * @param {HTMLFormElement} form
 * @param {string} field
 * @returns {Control[]}
 */
const controlsOf = (form, field) =>
  [.../** @type {NodeListOf<Control>} */ (form.querySelectorAll(`[name="${CSS.escape(field)}"], [data-for="${CSS.escape(field)}"]`))];

/**
 * What an edit changes in the state.
 *
 * @param {HTMLFormElement} form
 * @param {Control} control
 * @returns {{field: string, set: Record<string, string>, unset: string[]}}
 */
export function edited(form, control) {
  const field = fieldOf(control);
  const value = valueOf(control);
  for (const other of controlsOf(form, field)) if (other !== control) other.value = value;
  if (field === "gpu") return editedGpu(form, value);
  return value === "" ? { field, set: {}, unset: [field] } : { field, set: { [field]: value }, unset: [] };
}

/** @param {Control} control */
function valueOf(control) {
  return control instanceof HTMLInputElement && control.type === "checkbox"
    ? String(control.checked)
    : control.value.trim();
}

/**
 * The last choice of the list stands for a card that is not on it.
 *
 * @param {HTMLFormElement} form
 * @param {string} value
 * @returns {{field: string, set: Record<string, string>, unset: string[]}}
 */
function editedGpu(form, value) {
  const memory = /** @type {HTMLInputElement} */ (form.elements.namedItem("gpu_memory"));
  showMemoryField(form, value === "");
  if (value) return { field: "gpu", set: { gpu: value }, unset: ["gpu_memory"] };
  memory.value ||= memory.placeholder;
  return { field: "gpu", set: { gpu_memory: memory.value }, unset: ["gpu"] };
}

/**
 * @param {HTMLFormElement} form
 * @param {boolean} shown
 */
function showMemoryField(form, shown) {
  const field = form.querySelector('[data-field="gpu_memory"]');
  if (field instanceof HTMLElement) field.hidden = !shown;
}

/**
 * The options whose default is the model's own value.
 *
 * @param {HTMLFormElement} form
 */
export const modelsOwn = (form) =>
  [.../** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-models-own]"))].map(
    (element) => element.dataset.field ?? "",
  );

/**
 * Show what an address asks for, before Python has judged it.
 *
 * @param {HTMLFormElement} form
 * @param {Record<string, string>} state
 */
export function fillFromAddress(form, state) {
  for (const [field, setting] of Object.entries(state)) fillFor(form, field, setting);
  if (state.gpu_memory) fillFor(form, "gpu", "");
  showMemoryField(form, Boolean(state.gpu_memory));
}

/**
 * Show the plan that Python settled on; the control being typed in is left alone.
 *
 * @param {HTMLFormElement} form
 * @param {any} value
 */
export function fillForm(form, value) {
  const chosen = new URLSearchParams(value.query);
  const memory = chosen.get("gpu_memory");
  const settled = {
    ...value.report.plan,
    model: value.report.model,
    gpu: memory ? "" : value.gpu.key,
    ...(memory && { gpu_memory: memory }),
  };
  for (const [field, setting] of Object.entries(settled)) {
    const frame = form.querySelector(`[data-field="${CSS.escape(field)}"]`);
    if (frame instanceof HTMLElement) frame.hidden = setting === null;
    fillFor(form, field, setting);
  }
  showMemoryField(form, Boolean(memory));
}

/**
 * @param {HTMLFormElement} form
 * @param {string} field
 * @param {unknown} setting
 */
function fillFor(form, field, setting) {
  for (const control of controlsOf(form, field)) fillControl(control, setting);
}

/**
 * @param {Control} control
 * @param {unknown} setting
 */
function fillControl(control, setting) {
  if (control instanceof HTMLInputElement && control.type === "checkbox") {
    control.checked = String(setting) === "true";
    return;
  }
  const typing = document.activeElement === control && control.type === "number";
  const text = setting === null ? "" : String(setting);
  if (!typing && control.value !== text) control.value = text;
}

/**
 * Disable what the model cannot have.
 *
 * @param {HTMLFormElement} form
 * @param {Record<string, unknown[]>} available
 */
export function showAvailable(form, available) {
  for (const [field, values] of Object.entries(available)) {
    const allowed = new Set(values.map(String));
    const control = form.elements.namedItem(field);
    let words = "";
    if (control instanceof HTMLSelectElement) {
      for (const option of control.options) option.disabled = !allowed.has(option.value);
      if (allowed.size < control.options.length) words = NOT_ALL;
    } else if (control instanceof HTMLInputElement) {
      control.disabled = allowed.size < 2;
      if (control.disabled) words = FIXED;
    }
    const reason = form.querySelector(`[data-field="${CSS.escape(field)}"] [data-reason]`);
    if (reason) reason.textContent = words;
  }
}

/** @param {HTMLFormElement} form */
export function clearErrors(form) {
  for (const place of form.querySelectorAll(".field__error")) {
    if (place instanceof HTMLElement) place.hidden = true;
    place.textContent = "";
  }
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

/**
 * Put a message beside its field, where the form has that field.
 *
 * @param {HTMLFormElement} form
 * @param {string} field
 * @param {string} message
 */
export function showError(form, field, message) {
  const place = form.querySelector(`#${CSS.escape(field)}-error`);
  if (!(place instanceof HTMLElement)) return;
  place.textContent = message;
  place.hidden = false;
  const folded = place.closest("details");
  if (folded) folded.open = true;
  for (const control of controlsOf(form, field)) control.setAttribute("aria-invalid", "true");
}
