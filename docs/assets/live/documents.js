// @ts-check
/* The small JSON files of a run: replaced as a whole, asked for again only when they are new. */

import { requestCompressed } from "./compressed.js";
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
   * @param {() => boolean} [isCompressed] whether it also lies there as NAME.gz
   */
  constructor(address, isUsable, isCompressed = () => false) {
    this.address = address;
    this.isUsable = isUsable;
    this.isCompressed = isCompressed;
  }

  /**
   * Ask for it. A file that is broken or gone leaves what was known.
   * @param {{whole?: boolean}} [options] whole: past every cache
   * @returns {Promise<{changed: boolean, headers: Headers}>}
   * @throws when no usable answer comes
   */
  async read({ whole = false } = {}) {
    const options = /** @type {const} */ ({ cache: whole ? "reload" : this.#cache });
    const packed = this.isCompressed() ? await requestCompressed(this.address, options) : undefined;
    const { status, headers, body } = packed?.reply ?? (await request(this.address, options));
    if (status === 404) return { changed: false, headers };
    const version = `${headers.get("ETag")} ${headers.get("Last-Modified")} ${body.length}`;
    const settled = isSettled(headers);
    this.#cache = settled ? "no-cache" : "reload";
    if (settled && !whole && version === this.#version) return { changed: false, headers };
    this.#version = version;
    const content = packed ? await packed.unpack().catch(() => this.#plain()) : body;
    return { changed: this.#take(content), headers };
  }

  /**
   * The plain file, where the compressed one cannot be read. Asked for by a range, it comes as it is:
   * hosts may send a spoiled compressed file for the plain one, too.
   */
  async #plain() {
    return (await request(this.address, { first: 0, cache: "reload" })).body;
  }

  /** The file as it was read last. */
  get content() {
    return this.#text ? [this.#text] : [];
  }

  /** Take what an earlier visit has kept. @type {(body: Uint8Array<ArrayBuffer>) => void} */
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
 * @type {(headers: Headers) => boolean}
 */
function isSettled(headers) {
  const [sent, written] = ["Date", "Last-Modified"].map((name) => Date.parse(headers.get(name) ?? ""));
  return Number.isNaN(sent) || Number.isNaN(written) || sent - written >= 2000;
}
