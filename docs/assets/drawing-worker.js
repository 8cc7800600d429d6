// @ts-check
/* Draws for the live page, so that the page can be scrolled meanwhile: see templates/pages/live/drawing.js. */

import { CaptionError } from "./drawing/caption.js";
import { Painter } from "./drawing/painter.js";

/** @typedef {{id: number, address: string, sha256: string, caption: string, seed: number}} Order */
/**
 * @typedef {{id: number, kind: "picture", side: number, pixels: Uint8ClampedArray<ArrayBuffer>}
 *   | {id: number, kind: "done"}
 *   | {id: number, kind: "refused" | "failed", message: string}} Delivery
 */

/** @type {Promise<Painter> | undefined} */
let painter;
let newest = 0;

addEventListener("message", ({ data }) => void draw(/** @type {Order} */ (data)));

/** @param {Order} order */
async function draw({ id, address, sha256, caption, seed }) {
  newest = id;
  painter ??= load(address, sha256);
  try {
    for (const { side, pixels } of (await painter).draw(caption, seed)) {
      tell({ id, kind: "picture", side, pixels }, [pixels.buffer]);
      await pause(); // a newer caption may have come
      if (id !== newest) return;
    }
    tell({ id, kind: "done" });
  } catch (error) {
    const message = /** @type {Error} */ (error).message;
    if (error instanceof CaptionError) return tell({ id, kind: "refused", message });
    painter = undefined;
    tell({ id, kind: "failed", message });
  }
}

/** Lets messages in. */
const pause = () => new Promise((resolve) => {
  setTimeout(resolve);
});

/** @type {(delivery: Delivery, moved?: Transferable[]) => void} */
function tell(delivery, moved = []) {
  postMessage(delivery, { transfer: moved });
}

/** @type {(address: string, sha256: string) => Promise<Painter>} */
async function load(address, sha256) {
  const response = await fetch(address).catch(() => {
    throw new Error("the server does not respond");
  });
  if (!response.ok) throw new Error(`the server has no such file (${response.status})`);
  const file = await response.arrayBuffer();
  // Browsers compute sums only for pages that came over a secure connection.
  const sum = crypto.subtle ? inHexadecimal(await crypto.subtle.digest("SHA-256", file)) : sha256;
  if (sum !== sha256) throw new Error("the file is not the one that the run lists");
  return new Painter(file);
}

/** @param {ArrayBuffer} bytes */
const inHexadecimal = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
