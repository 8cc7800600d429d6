// @ts-check
/* The form's controls: what an edit means, and what Python's answer puts into them. */

import { grouped } from "../digits.js";
import { find, findAll } from "../elements.js";

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Control */

const NOT_NOW = "Not with your other choices:";

/** @param {Control} control */
const fieldOf = (control) => control.dataset.for ?? control.name;

/**
 * The controls of one option: one, or a slider with its number field.
 * @type {(form: HTMLFormElement, field: string) => Control[]}
 */
const controlsOf = (form, field) =>
  findAll(form, `[name="${CSS.escape(field)}"], [data-for="${CSS.escape(field)}"]`);

/**
 * What holds an option's controls and its words; null where the form has no such option.
 * @type {(form: HTMLFormElement, field: string) => HTMLElement | null}
 */
export const frameOf = (form, field) => form.querySelector(`[data-field="${CSS.escape(field)}"]`);

/**
 * What an edit changes in the state.
 * @type {(form: HTMLFormElement, control: Control) => {field: string, set: Record<string, string>, unset: string[]}}
 */
export function edited(form, control) {
  const { field, value } = edit(form, control);
  if (field === "gpu") return editedGpu(form, value);
  if (field === "preset") return { field, set: { preset: value }, unset: setBy(form) };
  // A config.json stands for a model of the list, and the other way round.
  if (field === "model") return { field, set: { model: value }, unset: ["config"] };
  if (field === "config" && value) return { field: "model", set: { config: value }, unset: ["model"] };
  if (field === "config") return { field: "model", set: {}, unset: ["config"] };
  return value === "" ? { field, set: {}, unset: [field] } : { field, set: { [field]: value }, unset: [] };
}

/**
 * The field and the value of a control that was changed, shown by the field's other control too.
 * @type {(form: HTMLFormElement, control: Control) => {field: string, value: string}}
 */
export function edit(form, control) {
  const field = fieldOf(control);
  const value = valueOf(control);
  for (const other of controlsOf(form, field)) if (other !== control || isScale(other)) fillControl(other, value);
  return { field, value };
}

/** A slider whose positions stand for stops that grow by ratios. @type {(control: Control) => boolean} */
const isScale = (control) => control.dataset.stops !== undefined;

/** @param {Control} control */
const stopsOf = (control) => (control.dataset.stops ?? "").split(" ").map(Number);

/** @param {Control} control */
function valueOf(control) {
  if (isScale(control)) return String(stopsOf(control)[Number(control.value)]);
  return control instanceof HTMLInputElement && control.type === "checkbox"
    ? String(control.checked)
    : control.value.trim();
}

/**
 * The last choice of the list stands for a card that is not on it.
 * @type {(form: HTMLFormElement, value: string) => {field: string, set: Record<string, string>, unset: string[]}}
 */
function editedGpu(form, value) {
  const memory = /** @type {HTMLInputElement} */ (form.elements.namedItem("gpu_memory"));
  showMemoryField(form, value === "");
  if (value) return { field: "gpu", set: { gpu: value }, unset: ["gpu_memory"] };
  memory.value ||= memory.placeholder;
  return { field: "gpu", set: { gpu_memory: memory.value }, unset: ["gpu"] };
}

/** @type {(form: HTMLFormElement, shown: boolean) => void} */
const showMemoryField = (form, shown) => void frameOf(form, "gpu_memory")?.toggleAttribute("hidden", !shown);

/**
 * The options that presets set: what was chosen for them goes when another preset is chosen.
 * @type {(form: HTMLFormElement) => string[]}
 */
const setBy = (form) => find(form, "[data-sets]").dataset.sets?.split(" ") ?? [];

/** The options whose default is the model's own value. @type {(form: HTMLFormElement) => string[]} */
export const modelsOwn = (form) => fieldsIn(form, "[data-models-own]");

/**
 * The fields that a selector finds, or that stand in what it finds.
 * @type {(form: HTMLFormElement, selector: string) => string[]}
 */
export const fieldsIn = (form, selector) =>
  findAll(form, `:is(${selector}, ${selector} *)[data-field]`).map((element) => element.dataset.field ?? "");

/** The model, the kind of training and the card that are chosen, in words. @type {(form: HTMLFormElement) => string} */
export function subjectOf(form) {
  const [config, model, memory] = ["config", "model", "gpu_memory"].map((name) => valueOf(controlsOf(form, name)[0]));
  const [card] = /** @type {HTMLSelectElement} */ (form.elements.namedItem("gpu")).selectedOptions;
  const preset = form.querySelector("[name='preset']:checked + span");
  const kind = preset ? ` (${preset.textContent})` : "";
  return `${config ? "config.json" : model}${kind} on ${card?.value ? card.text.replace(/ \(.*/, "") : `${memory} GiB`}`;
}

/** @type {(form: HTMLFormElement, name?: string) => HTMLOptionElement | undefined} */
export const cardIn = (form, name) => [.../** @type {HTMLSelectElement} */ (form.elements.namedItem("gpu")).options].find((card) => card.value === name);

/**
 * Show what an address asks for, before Python has judged it.
 * @type {(form: HTMLFormElement, state: Record<string, string>) => void}
 */
export function fillFromAddress(form, state) {
  for (const [field, setting] of Object.entries({ preset: "", ...state })) fillFor(form, field, setting);
  if (state.gpu_memory) fillFor(form, "gpu", "");
  showMemoryField(form, Boolean(state.gpu_memory));
}

/**
 * Show the plan that Python settled on; the control being typed in is left alone.
 * @type {(form: HTMLFormElement, value: any) => void}
 */
export function fillForm(form, value) {
  const chosen = new URLSearchParams(value.query);
  const memory = chosen.get("gpu_memory");
  const settled = {
    ...value.report.plan,
    ...value.job,
    model: value.report.model,
    preset: chosen.get("preset") ?? "",
    gpu: memory ? "" : value.gpu.key,
    ...(memory && { gpu_memory: memory }),
  };
  for (const [field, setting] of Object.entries(settled)) {
    frameOf(form, field)?.toggleAttribute("hidden", setting === null);
    fillFor(form, field, setting);
  }
  showMemoryField(form, Boolean(memory));
}

/**
 * Show a field's value in its controls; the one being typed in is left alone.
 * @type {(form: HTMLFormElement, field: string, setting: unknown) => void}
 */
export function fillFor(form, field, setting) {
  for (const control of controlsOf(form, field)) fillControl(control, setting);
}

/** @type {(control: Control, setting: unknown) => void} */
function fillControl(control, setting) {
  if (control instanceof HTMLInputElement && control.type === "checkbox") {
    control.checked = String(setting) === "true";
    return;
  }
  if (control.type === "radio") {
    /** @type {HTMLInputElement} */ (control).checked = control.value === String(setting);
    return;
  }
  if (isScale(control)) {
    const place = Math.round(placeOf(stopsOf(control), Number(setting)));
    if (control.value !== String(place)) control.value = String(place);
    control.setAttribute("aria-valuetext", grouped(Number(setting), 3));
    return;
  }
  const isText = control.closest(".field--names") !== null;
  const isTypedInto = control.type === "number" || isText || control.ariaExpanded === "true";
  const typing = document.activeElement === control && isTypedInto;
  const text = setting === null ? "" : String(setting);
  if (!typing && control.value !== text) control.value = text;
}

/**
 * Disable the choices that the other ones forbid, and say why. A box stays in the tab order.
 * @param {HTMLFormElement} form
 * @param {Record<string, Record<string, string>>} refused The rule by option and value.
 */
export function showRefusals(form, refused) {
  for (const control of form.querySelectorAll("select, [type='checkbox']")) {
    const { name } = /** @type {HTMLInputElement | HTMLSelectElement} */ (control);
    const reason = frameOf(form, name)?.querySelector("[data-reason]");
    if (!reason) continue;
    const rules = refused[name] ?? {};
    if (control instanceof HTMLSelectElement) {
      for (const option of control.options) option.disabled = option.value in rules;
    } else control.ariaDisabled = String(Object.keys(rules).length > 0);
    const words = [...new Set(Object.values(rules))].join("; ");
    reason.textContent = words && `${NOT_NOW} ${words}.`;
  }
}

/**
 * Say beside the name of folded options what was chosen among them.
 * @param {HTMLFormElement} form
 * @param {Record<string, string>} changed Words by option, without those at their defaults.
 */
export function showChosen(form, changed) {
  for (const place of findAll(form, "[data-chosen]")) {
    const fields = (place.dataset.chosen ?? "").split(" ");
    place.textContent = fields.map((field) => changed[field]).filter(Boolean).join("; ");
  }
}

/** @param {HTMLFormElement} form */
export function clearErrors(form) {
  for (const place of findAll(form, ".field__error")) place.textContent = "";
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

/**
 * Say what is wrong beside its field, where the form shows that field.
 * @param {HTMLFormElement} form
 * @param {import("../python.js").Failure} failure
 * @returns {string} What is left to say elsewhere.
 */
export function showError(form, { field, message, value, rule }) {
  const name = field ?? "";
  const escaped = CSS.escape(name);
  const label = form.querySelector(`label[for="${escaped}"], #${escaped}-label`)?.textContent ?? "";
  const sentence = label && rule ? `${label} ${value}: ${rule}.` : `${message}.`;
  const place = form.querySelector(`#${escaped}-error`);
  if (!place || frameOf(form, name)?.hidden) return sentence;
  place.textContent = sentence;
  for (let folded = place.closest("details"); folded; folded = folded.parentElement?.closest("details") ?? null) {
    folded.open = true;
  }
  for (const control of controlsOf(form, name)) control.setAttribute("aria-invalid", "true");
  return `Please correct “${label}”.`;
}

/** Where a number stands among stops, also between two of them. @type {(stops: number[], number: number) => number} */
function placeOf(stops, number) {
  const after = stops.findIndex((stop) => stop >= number);
  if (after < 0) return stops.length - 1;
  if (after === 0) return 0;
  const [low, high] = [stops[after - 1], stops[after]];
  return after - 1 + Math.log(number / low) / Math.log(high / low);
}

/**
 * Mark on each slider where the step stops fitting; what is not known has no mark.
 * @param {HTMLFormElement} form
 * @param {Record<string, number>} largest The largest that fits, by option.
 */
export function showLargest(form, largest) {
  for (const control of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[data-stops]"))) {
    mark(control, "largest", largest[control.name]);
  }
}

/**
 * Mark the model's longest sequence on its slider, and name it below.
 * @type {(form: HTMLFormElement, longest: number) => void}
 */
export function showLongest(form, longest) {
  const field = find(form, "[data-field='sequence_length']");
  mark(/** @type {HTMLInputElement} */ (find(field, "[data-stops]")), "longest", longest);
  find(field, "[data-reason]").textContent = `The model's longest: ${grouped(longest)}.`;
}

/**
 * Put a mark on a slider, unless the number is unknown or beyond it.
 * @type {(control: HTMLInputElement, name: "largest" | "longest", number: number | undefined) => void}
 */
function mark(control, name, number) {
  const stops = stopsOf(control);
  const frame = /** @type {HTMLElement} */ (control.parentElement);
  const isShown = number !== undefined && number < stops[stops.length - 1];
  frame.toggleAttribute(`data-${name}`, isShown);
  if (isShown) frame.style.setProperty(`--${name}`, String(placeOf(stops, number) / (stops.length - 1)));
}
