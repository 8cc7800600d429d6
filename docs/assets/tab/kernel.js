// @ts-check
/*
 * Products of matrices in WebAssembly with four numbers at a time (SIMD), assembled here from a few
 * lines, so that no toolchain is needed and every byte can be read. C += A B, in tiles of 4 by 8
 * that stay in registers while the sum runs. Opcodes: WebAssembly core specification, section 5.4.
 */

export const [TILE_ROWS, TILE_COLUMNS] = [4, 8];

const [I32, V128] = [0x7f, 0x7b];
const [LOOP, END, BRANCH_IF] = [0x03, 0x0b, 0x0d];
const [GET, SET, TEE, CONST] = [0x20, 0x21, 0x22, 0x41];
const [ADD, SUB] = [0x6a, 0x6b];
const NOTHING = 0x40; // the type of a block without a result
const SIMD = 0xfd;
const UNALIGNED = 2; // addresses are multiples of 2^2 bytes

const PARAMETERS = ["c", "a", "b", "rows", "depth", "aRow", "aColumn", "bRow", "cRow"];
const COUNTERS = ["left", "along", "from", "to"];
const VECTORS = ["x", "low", "high", ...Array.from({ length: 2 * TILE_ROWS }, (_, index) => `sum${index}`)];
const LOCALS = [...PARAMETERS, ...COUNTERS, ...VECTORS];

/** @param {string} name */
const index = (name) => LOCALS.indexOf(name);
/** @param {string} name */
const get = (name) => [GET, index(name)];
/** @param {string} name */
const set = (name) => [SET, index(name)];
/** @param {string} name @param {string} by A local that is added to another. */
const advance = (name, by) => [...get(name), ...get(by), ADD, ...set(name)];
/** @param {number} value small and not negative */
const constant = (value) => [CONST, value];
/** @param {number[]} address @param {number} offset in bytes */
const load = (address, offset) => [...address, SIMD, 0x00, UNALIGNED, offset];
/** @param {number[]} address One number in all four places. */
const spread = (address) => [...address, SIMD, 0x09, UNALIGNED, 0];
/** @param {number[]} address @param {number[]} value @param {number} offset in bytes */
const store = (address, value, offset) => [...address, ...value, SIMD, 0x0b, UNALIGNED, offset];
const MULTIPLY = [SIMD, 0xe6, 0x01];
const PLUS = [SIMD, 0xe4, 0x01];

const rows = Array.from({ length: TILE_ROWS }, (_, row) => row);

/** Do something with each row of the tile in C; `to` is the row's address. @param {(row: number) => number[]} body */
const eachRow = (body) => [
  ...get("c"), ...set("to"),
  ...rows.flatMap((row) => [...body(row), ...advance("to", "cRow")]),
];

const tile = [
  ...eachRow((row) => [
    ...load(get("to"), 0), ...set(`sum${2 * row}`),
    ...load(get("to"), 16), ...set(`sum${2 * row + 1}`),
  ]),
  ...get("depth"), ...set("left"),
  ...get("b"), ...set("from"),
  ...get("a"), ...set("along"),
  LOOP, NOTHING,
  ...load(get("from"), 0), ...set("low"),
  ...load(get("from"), 16), ...set("high"),
  ...get("along"), ...set("to"),
  ...rows.flatMap((row) => [
    ...spread(get("to")), ...set("x"),
    ...["low", "high"].flatMap((half, which) => {
      const sum = `sum${2 * row + which}`;
      return [...get(sum), ...get("x"), ...get(half), ...MULTIPLY, ...PLUS, ...set(sum)];
    }),
    ...(row < TILE_ROWS - 1 ? advance("to", "aRow") : []),
  ]),
  ...advance("from", "bRow"),
  ...advance("along", "aColumn"),
  ...get("left"), ...constant(1), SUB, TEE, index("left"), BRANCH_IF, 0,
  END,
  ...eachRow((row) => [
    ...store(get("to"), get(`sum${2 * row}`), 0),
    ...store(get("to"), get(`sum${2 * row + 1}`), 16),
  ]),
];

const panel = [
  LOOP, NOTHING,
  ...tile,
  ...get("to"), ...set("c"), // where the rows of this tile end, the next tile begins
  ...rows.flatMap(() => advance("a", "aRow")),
  ...get("rows"), ...constant(TILE_ROWS), SUB, TEE, index("rows"), BRANCH_IF, 0,
  END,
  END,
];

/** @param {number} value */
const unsigned = (value) => {
  const bytes = [];
  for (let left = value; ; left >>>= 7) {
    if (left < 128) return [...bytes, left];
    bytes.push((left & 127) | 128);
  }
};
/** @param {number[]} bytes Their count in front. */
const sized = (bytes) => [...unsigned(bytes.length), ...bytes];
/** @param {string} text */
const named = (text) => sized([...new TextEncoder().encode(text)]);
/** @param {number} kind @param {number[]} content */
const section = (kind, content) => [kind, ...sized(content)];

const locals = [2, COUNTERS.length, I32, VECTORS.length, V128];

const MODULE = new Uint8Array([
  0x00, ...new TextEncoder().encode("asm"), 1, 0, 0, 0,
  ...section(1, [1, 0x60, ...sized(PARAMETERS.map(() => I32)), 0]), // the type of the function
  ...section(2, [1, ...named("page"), ...named("memory"), 0x02, 0x00, 1]), // a memory of one page or more
  ...section(3, [1, 0]),
  ...section(7, [1, ...named("panel"), 0x00, 0]),
  ...section(10, [1, ...sized([...locals, ...panel])]),
]);

/**
 * The function that adds A B to a panel of C, 8 columns wide; undefined where the browser has no
 * SIMD. Addresses and strides are in bytes, counts are above 0, `rows` a multiple of 4.
 * @param {WebAssembly.Memory} memory
 * @returns {undefined | ((c: number, a: number, b: number, rows: number, depth: number,
 *   aRow: number, aColumn: number, bRow: number, cRow: number) => void)}
 */
export function panelOf(memory) {
  if (!WebAssembly.validate(MODULE)) return undefined;
  const instance = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { page: { memory } });
  return /** @type {any} */ (instance.exports.panel);
}
