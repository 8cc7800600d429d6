// @ts-check
/*
 * A config.json that the visitor gives: pasted, dropped on the page, or chosen. It travels in the
 * address's fragment, compressed, so that it survives a reload and can be shared, and no server
 * sees it.
 */

import { grouped } from "#assets/digits.js";

const MARK = "#config=";
// A fragment longer than this is left out of the address; browsers cut longer ones.
const LONGEST_FRAGMENT = 60_000;

/**
 * Let files reach the textarea; returns what takes one that came another way.
 * @type {(form: HTMLFormElement, refuse: (message: string) => void) => (file: File | undefined) => Promise<void>}
 */
export function mountConfig(form, refuse) {
  const text = /** @type {HTMLTextAreaElement} */ (form.querySelector("#config"));
  const chosen = /** @type {HTMLInputElement} */ (form.querySelector("#config-file"));
  const longest = Number(text.dataset.longest);

  /** @param {File | undefined} file */
  async function read(file) {
    if (!file) return;
    /** @type {HTMLDetailsElement} */ (text.closest("details")).open = true;
    if (file.size > longest) {
      return refuse(`${file.name}: a config.json has at most ${grouped(longest)} characters.`);
    }
    text.value = await file.text();
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  chosen.addEventListener("input", (event) => {
    event.stopPropagation();
    void read(chosen.files?.[0]);
    chosen.value = "";
  });
  return read;
}

/** @param {string} fragment */
export const hasConfig = (fragment) => fragment.startsWith(MARK);

/**
 * The fragment that holds a config.json; empty where it would be too long for an address.
 * @type {(text: string) => Promise<string>}
 */
export async function pack(text) {
  const packed = await through(new Blob([shorter(text)]).stream(), new CompressionStream("deflate-raw"), Infinity);
  const letters = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  const fragment = MARK + letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return fragment.length > LONGEST_FRAGMENT ? "" : fragment;
}

/**
 * The config.json that a fragment holds.
 * @param {string} fragment
 * @param {number} longest In bytes: what would unpack to more is refused.
 * @throws {RangeError} If it would.
 */
export async function unpack(fragment, longest) {
  const letters = atob(fragment.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const plain = await through(new Blob([bytes]).stream(), new DecompressionStream("deflate-raw"), longest);
  return new TextDecoder().decode(plain);
}

/**
 * @type {(source: ReadableStream<any>, change: CompressionStream | DecompressionStream, most: number) => Promise<Uint8Array<ArrayBuffer>>}
 */
async function through(source, change, most) {
  const reader = source.pipeThrough(change).getReader();
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const chunks = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      void reader.cancel();
      throw new RangeError("too long");
    }
    chunks.push(value);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/** @param {string} text */
function shorter(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}
