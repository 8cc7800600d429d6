// @ts-check
/* One request to our own server: with an end to waiting, and with the server's clock. */

const HEADERS_MS = 20_000;
const BODY_MS = 180_000;

/** A server's response that is neither a file nor "not found". */
export class ServerError extends Error {}

/**
 * @typedef {object} Reply
 * @property {number} status 200, 206, 404 or 416
 * @property {Headers} headers
 * @property {Uint8Array<ArrayBuffer>} body empty for 404 and 416
 */

/**
 * Ask for a file, or for its bytes from `first` on.
 * @param {URL} address
 * @param {{first?: number, cache?: RequestCache}} [options]
 * @returns {Promise<Reply>}
 * @throws {ServerError | TypeError | DOMException} when no usable answer comes
 */
export async function request(address, { first, cache = "no-cache" } = {}) {
  const waiting = new AbortController();
  let timer = setTimeout(() => waiting.abort(), HEADERS_MS);
  try {
    const headers = first === undefined ? undefined : { Range: `bytes=${first}-` };
    const response = await fetch(address, { cache, headers, signal: waiting.signal });
    clearTimeout(timer);
    timer = setTimeout(() => waiting.abort(), BODY_MS);
    const { status } = response;
    if (status === 404 || status === 416) {
      await response.body?.cancel();
      return { status, headers: response.headers, body: new Uint8Array() };
    }
    if (status !== 200 && status !== 206) throw new ServerError(`the server returned ${status}`);
    return { status, headers: response.headers, body: new Uint8Array(await response.arrayBuffer()) };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The server's time in milliseconds since 1970 when it answered, as far as it tells.
 * @type {(headers: Headers) => number | undefined}
 */
export function serverTime(headers) {
  const date = Date.parse(headers.get("Date") ?? "");
  // `Date` has whole seconds: half of one is the best guess of the rest
  return Number.isNaN(date) ? undefined : date + 500 + 1000 * Number(headers.get("Age") ?? 0);
}
