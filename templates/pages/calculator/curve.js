// @ts-check
/*
 * The memory of the whole step as a curve, with a cursor. Python says where each point begins, how
 * high each part of it reaches, and what its words are; here is only the drawing.
 */

import { endOf, outline } from "#assets/calculator/outline.js";
import { find, findAll, make } from "#assets/elements.js";
import { Folded } from "./folded.js";

/** @typedef {import("#assets/calculator/outline.js").Place & {total: string, parts: string[], time: string, name: number, layer: string, largest: [number, number, string][]}} Point */
/** @typedef {{start: number, end: number, name: string, label: string}} Phase */
/** @typedef {{note: string, phases: Phase[], times: {x: number, text: string}[], lines: {y: number, text: string}[], limit: {y: number, text: string} | null, peak: number, points: Point[], names: string[], kinds: string[], summary: string[]}} Curve */

/** @type {(place: HTMLDetailsElement, ask: import("./folded.js").Ask) => Folded} */
export function mountCurve(place, ask) {
  const slider = find(place, "[role='slider']");
  /** @type {Curve | undefined} */
  let curve;
  let at = 0;

  /** @param {import("#assets/python.js").Answer} answer */
  function show(answer) {
    find(place, ".curve__note").textContent = answer.kind === "error" ? answer.error.message : answer.value.note;
    if (answer.kind === "error") return false;
    const stays = curve && at !== curve.peak ? curve.points[at].x : undefined;
    curve = /** @type {Curve} */ (answer.value);
    draw(curve);
    go(stays === undefined ? curve.peak : pointAt(stays));
    return true;
  }

  /** @param {Curve} drawn */
  function draw(drawn) {
    for (const [part, path] of findAll(place, "svg path").entries()) path.setAttribute("d", outline(drawn.points, part));
    fill(".curve__lines", drawn.lines, (line) => labelled(line.text, { "--y": line.y }));
    fill(".curve__limit", drawn.limit ? [drawn.limit] : [], (line) => labelled(line.text, { "--y": line.y }));
    fill(".curve__phases", drawn.phases, (phase) => labelled(phase.label, { "--start": phase.start, "--end": phase.end }));
    fill(".curve__times", drawn.times, (time) => labelled(time.text, { "--start": time.x }));
    fill(".curve__summary", drawn.summary, (words) => make("li", {}, words));
    slider.setAttribute("aria-valuemax", String(drawn.points.length - 1));
    find(place, ".curve__body").hidden = false;
  }

  /** @type {<T>(selector: string, items: T[], element: (item: T) => HTMLElement) => void} */
  function fill(selector, items, element) {
    find(place, selector).replaceChildren(...items.map(element));
  }

  /** @param {number} next */
  function go(next) {
    if (!curve) return;
    at = Math.min(Math.max(next, 0), curve.points.length - 1);
    const point = curve.points[at];
    const words = [curve.names[point.name], point.time].filter(Boolean).join(", ");
    slider.style.setProperty("--x", String((point.x + endOf(curve.points, at)) / 2));
    slider.style.setProperty("--y", String(point.tops[point.tops.length - 1]));
    slider.setAttribute("aria-valuenow", String(at));
    slider.setAttribute("aria-valuetext", `${point.total}. ${words}`);
    find(place, "[data-curve='total']").textContent = point.total;
    find(place, "[data-curve='name']").textContent = words;
    for (const [part, element] of findAll(place, "[data-curve='part']").entries()) element.textContent = point.parts[part];
    const { kinds } = curve;
    fill(".curve__largest", point.largest, ([kind, count, bytes]) =>
      make("li", {}, make("strong", {}, bytes), count > 1 ? ` ${count} \u00d7 ${kinds[kind]}` : ` ${kinds[kind]}`));
    find(place, ".curve__none").hidden = point.largest.length > 0;
    /** @type {HTMLButtonElement} */ (find(place, "#curve-peak")).disabled = at === curve.peak;
  }

  /** The point that a share of the width is in. @param {number} x */
  function pointAt(x) {
    return /** @type {Curve} */ (curve).points.findLastIndex((point) => point.x <= x);
  }

  /** The first point of the next layer, or of the one before. @param {number} by */
  function layerFrom(by) {
    const { points } = /** @type {Curve} */ (curve);
    const starts = [...points.keys()].filter((index) => points[index].layer !== points[index - 1]?.layer);
    const here = starts.findLastIndex((start) => start <= at);
    return starts[here + by] ?? (by > 0 ? points.length - 1 : 0);
  }

  /** @param {PointerEvent} event */
  function goToPointer(event) {
    const box = slider.getBoundingClientRect();
    if (curve) go(pointAt((event.clientX - box.left) / box.width));
  }

  slider.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" || event.buttons) goToPointer(event);
  });
  slider.addEventListener("pointerdown", goToPointer);
  slider.addEventListener("keydown", (event) => {
    const moved = curve && {
      ArrowRight: () => at + 1,
      ArrowUp: () => at + 1,
      ArrowLeft: () => at - 1,
      ArrowDown: () => at - 1,
      PageUp: () => layerFrom(1),
      PageDown: () => layerFrom(-1),
      Home: () => 0,
      End: () => Infinity,
    }[event.key];
    if (!moved || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(moved());
  });
  find(place, "#curve-peak").addEventListener("click", () => {
    if (!curve) return;
    slider.focus();
    go(curve.peak);
  });
  return new Folded(place, (given) => ask("curve", {}, given), show);
}

/** @type {(text: string, lengths: Record<string, number>) => HTMLElement} */
function labelled(text, lengths) {
  const element = make("span", {}, text);
  for (const [name, length] of Object.entries(lengths)) element.style.setProperty(name, String(length));
  return element;
}
