// A run as the pages' scripts know it, read from its folder when the site is built.
// @ts-check
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { RunFiles } from "#assets/live/files.js";
import { fileOf } from "#assets/live/valid.js";

// Nobody asks it: the addresses of the files are made with it, and then lose it.
const LIVE = "https://live.invalid/";

/** All that a run's files say now. @param {string} folder */
export async function readRun(folder) {
  const name = basename(resolve(folder));
  const files = new RunFiles(name, new URL(`${encodeURIComponent(name)}/`, LIVE));
  for (const [path, file] of Object.entries(files.all)) {
    if (existsSync(join(folder, path))) await file.restore(new Uint8Array(await readFile(join(folder, path))));
  }
  files.publish();
  const { card } = files.data;
  if (!card) throw new Error(`${name} has no usable run.json.`);
  return { ...files.data, card, loaded: true };
}

/**
 * A file's address relative to the folder of all runs; empty if it is not one of the run's files.
 * @param {unknown} path
 * @param {URL} folder
 */
export const addressOf = (path, folder) => fileOf(path, folder)?.slice(LIVE.length) ?? "";

/** @param {object} value What the script was asked for. */
export const answer = (value) => process.stdout.write(JSON.stringify(value));
