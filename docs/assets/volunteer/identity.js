// @ts-check
/*
 * A volunteer's key and identity by WebCrypto, as training/access/signatures.py and grants.py read
 * them: RSA as hivemind's keys are, so that a tab is signed for and named like everybody else.
 */

const SCHEME = { name: "RSA-PSS", hash: "SHA-256" };
const BITS = 2048;
const DIGEST_BYTES = 32;
const KIND = "ssh-rsa";
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** @returns {Promise<CryptoKeyPair>} whose private half never leaves the browser */
export const newKey = () => crypto.subtle.generateKey(
  { ...SCHEME, modulusLength: BITS, publicExponent: Uint8Array.of(1, 0, 1) }, false, ["sign", "verify"]);

/** @param {CryptoKeyPair} key @param {Uint8Array<ArrayBuffer>} message @returns {Promise<string>} in base 64 */
export async function sign({ privateKey }, message) {
  return toBase64(new Uint8Array(await crypto.subtle.sign(paddingOf(privateKey), privateKey, message)));
}

/** @param {CryptoKey} publicKey @param {string} signature @param {Uint8Array<ArrayBuffer>} message */
export const isSigned = (publicKey, signature, message) =>
  crypto.subtle.verify(paddingOf(publicKey), publicKey, fromBase64(signature), message);

/** The longest salt, as hivemind takes it: RFC 8017, section 9.1.1. @param {CryptoKey} key */
function paddingOf({ algorithm }) {
  const { modulusLength } = /** @type {RsaHashedKeyAlgorithm} */ (algorithm);
  return { name: SCHEME.name, saltLength: Math.ceil((modulusLength - 1) / 8) - DIGEST_BYTES - 2 };
}

/** @param {CryptoKey} publicKey As OpenSSH writes it: RFC 4253, section 6.6. */
export async function textOf(publicKey) {
  const { e, n } = await crypto.subtle.exportKey("jwk", publicKey);
  const parts = [new TextEncoder().encode(KIND), ...[e, n].map((number) => unsigned(fromUrl(/** @type {string} */ (number))))];
  return `${KIND} ${toBase64(joined(...parts.flatMap((part) => [lengthOf(part), part])))}`;
}

/** @param {string} text @throws {Error} where it is no such key */
export async function readKey(text) {
  const bytes = fromBase64(text.slice(KIND.length + 1));
  const parts = [];
  for (let at = 0; at < bytes.length; ) {
    const size = new DataView(bytes.buffer, at).getUint32(0);
    parts.push(bytes.slice(at + 4, at + 4 + size));
    at += 4 + size;
  }
  const [kind, e, n] = parts;
  const plain = (/** @type {Uint8Array} */ number) => toUrl(number[0] ? number : number.subarray(1));
  const key = { kty: "RSA", e: plain(e), n: plain(n) };
  const found = await crypto.subtle.importKey("jwk", key, SCHEME, true, ["verify"]);
  if (new TextDecoder().decode(kind) !== KIND || (await textOf(found)) !== text) throw new Error("the key is not written as it must be");
  return found;
}

/** @param {CryptoKey} publicKey In base 58: libp2p's specification of peer identities. */
export async function peerIdOf(publicKey) {
  const der = new Uint8Array(await crypto.subtle.exportKey("spki", publicKey));
  const wrapped = joined(Uint8Array.of(8, 0, 0x12, (der.length & 0x7f) | 0x80, der.length >> 7), der);
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", wrapped));
  return base58(joined(Uint8Array.of(0x12, DIGEST_BYTES), sum));
}

/** @param {Uint8Array} bytes that do not begin with 0 */
function base58(bytes) {
  let digits = "";
  for (let number = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n); number; number /= 58n) {
    digits = ALPHABET[Number(number % 58n)] + digits;
  }
  return digits;
}

/** @param {...Uint8Array} parts */
export function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** @param {Uint8Array} bytes Four bytes, the highest first. */
const lengthOf = ({ length }) => Uint8Array.of(length >>> 24, length >>> 16, length >>> 8, length);
/** @param {Uint8Array} number Without a sign: a first bit of 1 would be one. */
const unsigned = (number) => (number[0] & 0x80 ? joined(Uint8Array.of(0), number) : number);
/** @param {Uint8Array} bytes */
const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
/** @param {string} text */
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
/** @param {string} text */
const fromUrl = (text) => fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
/** @param {Uint8Array} bytes */
const toUrl = (bytes) => toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
