// @ts-check
/* Signed files: a header in JSON, a signature over it, a body; see training/access/envelope.py. */

import { isSigned, joined, peerIdOf, readKey, sign, textOf } from "./identity.js";
import { sha256 } from "./shared.js";

const MAGIC = "TTS1";
const PURPOSE = "training-transformers-together sparse 1 ";
const PREFIX = 8; // bytes: magic, two lengths

/** @typedef {Record<string, unknown>} Fields */

/** @type {(kind: string, fields: Fields, body: Uint8Array<ArrayBuffer>, key: CryptoKeyPair) => Promise<Uint8Array<ArrayBuffer>>} */
export async function seal(kind, fields, body, key) {
  const header = bytesOf(dump({ ...fields, kind, public_key: await textOf(key.publicKey), body: await sha256(body) }));
  const signature = bytesOf(await sign(key, joined(bytesOf(PURPOSE), header)));
  const lengths = [header, signature].flatMap(({ length }) => [length & 0xff, length >> 8]);
  return joined(bytesOf(MAGIC), Uint8Array.from(lengths), header, signature, body);
}

/**
 * @param {string} kind
 * @param {Uint8Array<ArrayBuffer>} content
 * @returns {Promise<{fields: Fields, signer: string, body: Uint8Array<ArrayBuffer>}>}
 * @throws {Error} where the file does not hold
 */
export async function open(kind, content) {
  if (textOfBytes(content.subarray(0, 4)) !== MAGIC) throw new Error("it does not begin as such a file does");
  const [headerSize, signatureSize] = [4, 6].map((at) => content[at] + 256 * content[at + 1]);
  const middle = PREFIX + headerSize;
  const [header, signature, body] = [content.slice(PREFIX, middle), content.slice(middle, middle + signatureSize), content.slice(middle + signatureSize)];
  const { kind: claimed, public_key: text, body: sum, ...fields } = JSON.parse(textOfBytes(header));
  if (claimed !== kind) throw new Error(`not a ${kind}`);
  const key = await readKey(text);
  if (!(await isSigned(key, textOfBytes(signature), joined(bytesOf(PURPOSE), header)))) throw new Error("its signer did not sign it");
  if ((await sha256(body)) !== sum) throw new Error("its body is not the one that was signed");
  return { fields, signer: await peerIdOf(key), body };
}

/**
 * JSON as Python writes it with sorted keys and no spaces. Numbers below 0.0001 would differ.
 * @type {(value: unknown) => string}
 */
export const dump = (value) => JSON.stringify(value, (_, part) => (isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part))
  .replaceAll(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {string} text */
const bytesOf = (text) => new TextEncoder().encode(text);
/** @param {Uint8Array} bytes */
const textOfBytes = (bytes) => new TextDecoder().decode(bytes);
