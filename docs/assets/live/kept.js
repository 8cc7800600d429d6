// @ts-check
/*
 * The data of the last visit, kept by the browser for visits without a network. Nothing is kept
 * where the visitor has switched that off (about/), and nothing breaks where there is no storage.
 */

import { isWanted, LIVE_STORE } from "../offline-choice.js";

const KEPT = "Date"; // the header that says when a file was kept

/** @typedef {{address: URL, content: BlobPart[], restore: (body: Uint8Array<ArrayBuffer>) => void | Promise<void>}} File */

/** Keep files under their addresses; what they hold is taken at once. @type {(files: File[]) => Promise<void>} */
export async function keep(files) {
  if (!isWanted()) return;
  const contents = files.map(({ address, content }) => /** @type {const} */ ([address.href, content]));
  try {
    const store = await caches.open(LIVE_STORE);
    const headers = { [KEPT]: new Date().toUTCString() };
    for (const [address, content] of contents) {
      if (content.length) await store.put(address, new Response(new Blob(content), { headers }));
    }
  } catch {
    // No storage, or no room in it: only a visit without a network misses this.
  }
}

/**
 * Give files the content that was kept of them.
 * @param {File[]} files
 * @returns {Promise<number | undefined>} when the first of them was kept, milliseconds since 1970;
 *     undefined if it was not
 */
export async function recall(files) {
  try {
    const store = await caches.open(LIVE_STORE);
    const [first, ...others] = await Promise.all(files.map(({ address }) => store.match(address.href)));
    if (!first) return undefined;
    const bodies = [first, ...others].map(async (found) => found && new Uint8Array(await found.arrayBuffer()));
    for (const [index, body] of (await Promise.all(bodies)).entries()) if (body) await files[index].restore(body);
    return Date.parse(first.headers.get(KEPT) ?? "");
  } catch {
    return undefined;
  }
}
