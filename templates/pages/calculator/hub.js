// @ts-check
/*
 * A model's config.json from huggingface.co: the one request that leaves the site, made on a click
 * that says so. Nothing is sent but the model's name, and no cookie.
 */

import { grouped } from "#assets/digits.js";

const HOST = "https://huggingface.co";
const LONGEST_WAIT_MS = 15_000;

/**
 * The name on the Hub that a text is, or an address there has.
 * @param {string} text
 * @returns {string} Empty if it is neither.
 */
export function hubId(text) {
  const typed = text.trim();
  const path = typed.replace(/^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//, "");
  const [owner, name = ""] = path.split(/[/?#]/);
  const hasOwner = !["", "tree", "blob", "resolve", "raw", "discussions"].includes(name);
  const id = path === typed ? typed : hasOwner ? `${owner}/${name}` : owner;
  return /^[\w.-]{1,96}(?:\/[\w.-]{1,96})?$/.test(id) && !/--|\.\./.test(id) ? id : "";
}

/**
 * The text of a model's config.json.
 * @param {string} typed
 * @param {number} longest In characters.
 * @param {typeof fetch} get
 * @returns {Promise<string>}
 * @throws {Error} With what is wrong and the way out.
 */
export async function fetchConfig(typed, longest, get = fetch) {
  const id = hubId(typed);
  if (!id) throw new Error("Enter a model's name on the Hub, such as Qwen/Qwen2.5-7B, or its address.");
  const paste = "paste its config.json instead.";
  const address = `${HOST}/${id}/resolve/main/config.json`;
  const settings = { credentials: "omit", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(LONGEST_WAIT_MS) };
  const answer = await get(address, /** @type {RequestInit} */ (settings)).catch(() => undefined);
  if (!answer) throw new Error(`huggingface.co cannot be reached: try again, or ${paste}`);
  if (answer.status === 401 || answer.status === 403) {
    throw new Error(`${id} is gated, or there is no such model: check the name, or ${paste}`);
  }
  if (answer.status === 404) throw new Error(`${id} has no config.json on the Hub: name the model that it was made from.`);
  if (!answer.ok) throw new Error(`huggingface.co answered with status ${answer.status}: try again, or ${paste}`);
  const text = await answer.text().catch(() => "");
  if (!text) throw new Error(`The config.json of ${id} did not arrive: try again, or ${paste}`);
  if (text.length > longest) throw new Error(`The config.json of ${id} has more than ${grouped(longest)} characters.`);
  return text;
}

/**
 * Unfold the button that fetches a config.json, for a name that the list lacks.
 * @type {(form: HTMLFormElement, typed: string) => void}
 */
export function proposeHub(form, typed) {
  if (!hubId(typed).includes("/")) return;
  const name = /** @type {HTMLInputElement} */ (form.querySelector("#config-hub"));
  name.value = hubId(typed);
  /** @type {HTMLDetailsElement} */ (name.closest("details")).open = true;
}

/**
 * Let the button fetch what the field beside it names.
 * @type {(form: HTMLFormElement, refuse: (message: string) => void) => void}
 */
export function mountHub(form, refuse) {
  const name = /** @type {HTMLInputElement} */ (form.querySelector("#config-hub"));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("#config-fetch"));
  const text = /** @type {HTMLTextAreaElement} */ (form.querySelector("#config"));

  async function load() {
    button.disabled = true;
    try {
      text.value = await fetchConfig(name.value, Number(text.dataset.longest));
      text.dispatchEvent(new Event("input", { bubbles: true }));
    } catch (error) {
      refuse(error instanceof Error ? error.message : String(error));
    } finally {
      button.disabled = false;
    }
  }

  button.addEventListener("click", () => void load());
  name.addEventListener("input", (event) => event.stopPropagation()); // it is no option
  name.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    void load();
  });
}
