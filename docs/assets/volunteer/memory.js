// @ts-check
/* What a tab keeps in the browser to go on after a reload: its key, its moments, what it has not sent. */

const [NAME, STORE] = ["volunteer", "runs"];

/**
 * @typedef {object} Memory
 * @property {CryptoKeyPair} key
 * @property {import("./adamw.js").Moments} [moments]
 * @property {Float32Array<ArrayBuffer>} [residual]
 * @property {number} samples that rounds took
 * @property {number} rounds that took an update
 */

/** @returns {Promise<IDBDatabase>} */
const opened = () => new Promise((resolve, reject) => {
  const request = indexedDB.open(NAME, 1);
  request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE));
  request.addEventListener("success", () => resolve(request.result));
  request.addEventListener("error", () => reject(request.error));
});

/** @type {<T>(mode: IDBTransactionMode, ask: (store: IDBObjectStore) => IDBRequest<T>) => Promise<T>} */
async function transact(mode, ask) {
  const database = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = ask(transaction.objectStore(STORE));
      transaction.addEventListener("complete", () => resolve(request.result));
      transaction.addEventListener("abort", () => reject(transaction.error));
    });
  } finally {
    database.close();
  }
}

/** @param {string} run @returns {Promise<Memory | undefined>} */
export const recall = (run) => transact("readonly", (store) => store.get(run));

/** @param {string} run @param {Memory} memory */
export const remember = (run, memory) => transact("readwrite", (store) => store.put(memory, run));
