// @ts-check
/*
 * Large files of a run also lie there compressed, as NAME.gz: hosts of files do not compress what
 * they do not know. run.json says which; what cannot be had this way is read as the plain file.
 */

import { request, ServerError } from "./request.js";

const MOST_BYTES = 1 << 28; // unpacked; a file that says more is not one of ours
const MAGIC = [0x1f, 0x8b];

/** @typedef {{reply: import("./request.js").Reply, unpack: () => Promise<Uint8Array<ArrayBuffer>>}} Packed unpack rejects for what is not in the format. */

/**
 * Ask for the compressed form of a file.
 * @param {URL} address of the plain file
 * @param {{cache?: RequestCache}} [options]
 * @returns {Promise<Packed | undefined>} undefined if there is none, or this browser cannot unpack it
 * @throws when the server does not respond
 */
export async function requestCompressed(address, options) {
  if (!("DecompressionStream" in globalThis)) return undefined;
  try {
    const reply = await request(new URL(`${address.href}.gz`), options);
    return reply.status === 200 ? { reply, unpack: () => unpack(reply.body) } : undefined;
  } catch (error) {
    if (error instanceof ServerError) return undefined; // some hosts refuse files of this kind
    throw error;
  }
}

/**
 * What a compressed file holds. Some hosts say that it is compressed, and the browser has unpacked
 * it already.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @throws {TypeError} for what is not in the format, or is cut short
 * @throws {RangeError} for too much
 */
async function unpack(bytes) {
  if (!MAGIC.every((byte, at) => bytes[at] === byte)) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const reader = stream.getReader();
  const parts = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > MOST_BYTES) {
      await reader.cancel();
      throw new RangeError(`more than ${MOST_BYTES} bytes`);
    }
    parts.push(/** @type {Uint8Array<ArrayBuffer>} */ (part.value));
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
