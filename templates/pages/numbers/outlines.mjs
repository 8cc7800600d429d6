// The outlines of curves of memory, by the module that draws them in the calculator:
// node outlines.mjs FILE, which has a list of curves, each a list of points.
// @ts-check
import { readFileSync } from "node:fs";
import { outline } from "#assets/calculator/outline.js";

/** @type {import("#assets/calculator/outline.js").Place[][]} */
const curves = JSON.parse(readFileSync(process.argv[2], "utf8"));
const outlines = curves.map((points) => points[0].tops.map((_, part) => outline(points, part)));
process.stdout.write(JSON.stringify({ outlines }));
