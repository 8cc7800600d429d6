// @ts-check
/* The small JSON files of a run: replaced as a whole, asked for again only when they are new. */

import { request } from "./request.js";

/** A JSON file of the run. @template Value */
export class LiveDocument {
  /** @type {Value | undefined} What it said last; undefined until there is one. */
  value;
  /** Whether the file that is there now cannot be read. */
  broken = false;
  #version = "";
  #text = "";
  /** @type {RequestCache} */
  #cache = "no-cache";

  /**
   * @param {URL} address
   * @param {(value: any) => boolean} isUsable
   */
  constructor(address, isUsable) {
    this.address = address;
    this.isUsable = isUsable;
  }

  /**
   * Ask for it. A file that is broken or gone leaves what was known.
   *
   * @param {{whole?: boolean}} [options] whole: past every cache
   * @returns {Promise<{changed: boolean, headers: Headers}>}
   * @throws when no usable answer comes
   */
  async read({ whole = false } = {}) {
    const { status, headers, body } = await request(this.address, { cache: whole ? "reload" : this.#cache });
    if (status === 404) return { changed: false, headers };
    const version = `${headers.get("ETag")} ${headers.get("Last-Modified")} ${body.length}`;
    const settled = isSettled(headers);
    this.#cache = settled ? "no-cache" : "reload";
    if (settled && !whole && version === this.#version) return { changed: false, headers };
    this.#version = version;
    return { changed: this.#take(body), headers };
  }

  /** The file as it was read last. */
  get content() {
    return this.#text ? [this.#text] : [];
  }

  /**
   * Take what an earlier visit has kept.
   *
   * @param {Uint8Array<ArrayBuffer>} body
   */
  restore(body) {
    this.#take(body);
  }

  /** @param {Uint8Array<ArrayBuffer>} body */
  #take(body) {
    const text = new TextDecoder().decode(body);
    if (text === this.#text) return false;
    this.#text = text;
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined;
    }
    this.broken = value === undefined || !this.isUsable(value);
    if (!this.broken) this.value = value;
    return true;
  }
}

/**
 * `Last-Modified` has whole seconds: a file that was written less than two seconds before it was
 * sent may have been written again since, under the same date.
 *
 * @param {Headers} headers
 */
function isSettled(headers) {
  const [sent, written] = ["Date", "Last-Modified"].map((name) => Date.parse(headers.get(name) ?? ""));
  return Number.isNaN(sent) || Number.isNaN(written) || sent - written >= 2000;
}
