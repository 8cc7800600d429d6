// @ts-check
/*
 * The memory of the whole step as a curve, with a cursor. Python says where each point begins, how
 * high each part of it reaches, and what its words are; here is only the drawing.
 */

import { endOf, outline } from "#assets/calculator/outline.js";

/** @typedef {import("#assets/calculator/outline.js").Place & {total: string, parts: string[], time: string, name: number, layer: string, largest: [number, number, string][]}} Point */
/** @typedef {{start: number, end: number, name: string, label: string}} Phase */
/** @typedef {{note: string, phases: Phase[], times: {x: number, text: string}[], lines: {y: number, text: string}[], limit: {y: number, text: string} | null, peak: number, points: Point[], names: string[], kinds: string[], summary: string[]}} Curve */

// An edit is followed by the curve when no other one came for so long: the figures come first.
const QUIET_MS = 250;

/**
 * @param {HTMLDetailsElement} place
 * @param {(show: (answer: import("#assets/python.js").Answer) => void) => void} ask Asks Python for the curve of the present state.
 */
export function mountCurve(place, ask) {
  const slider = /** @type {HTMLElement} */ (place.querySelector("[role='slider']"));
  /** @type {Curve | undefined} */
  let curve;
  let at = 0;
  // States by their names; the default's is empty.
  /** @type {string | undefined} */
  let shown;
  /** @type {string | undefined} */
  let wanted;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let quiet;

  /** @param {string} selector */
  const find = (selector) => /** @type {HTMLElement} */ (place.querySelector(selector));

  function request() {
    if (!place.open || wanted === undefined || shown === wanted) return;
    const asked = wanted;
    ask((answer) => {
      if (answer.kind === "error") return say(answer.error.message);
      const stays = curve && at !== curve.peak ? curve.points[at].x : undefined;
      curve = /** @type {Curve} */ (answer.value);
      shown = asked;
      draw(curve);
      go(stays === undefined ? curve.peak : pointAt(stays));
      place.removeAttribute("aria-busy");
    });
  }

  /** @param {string} message */
  function say(message) {
    find(".curve__note").textContent = message;
  }

  /** @param {Curve} drawn */
  function draw(drawn) {
    for (const [part, path] of /** @type {NodeListOf<SVGPathElement>} */ (place.querySelectorAll("svg path")).entries()) {
      path.setAttribute("d", outline(drawn.points, part));
    }
    fill(".curve__lines", drawn.lines, (line) => labelled(line.text, { "--y": line.y }));
    fill(".curve__limit", drawn.limit ? [drawn.limit] : [], (line) => labelled(line.text, { "--y": line.y }));
    fill(".curve__phases", drawn.phases, (phase) => labelled(phase.label, { "--start": phase.start, "--end": phase.end }));
    fill(".curve__times", drawn.times, (time) => labelled(time.text, { "--start": time.x }));
    fill(".curve__summary", drawn.summary, (words) => labelled(words, {}, "li"));
    say(drawn.note);
    slider.setAttribute("aria-valuemax", String(drawn.points.length - 1));
    find(".curve__body").hidden = false;
  }

  /** @type {<T>(selector: string, items: T[], element: (item: T) => HTMLElement) => void} */
  function fill(selector, items, element) {
    find(selector).replaceChildren(...items.map(element));
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
    find("[data-curve='total']").textContent = point.total;
    find("[data-curve='name']").textContent = words;
    for (const [part, element] of [...place.querySelectorAll("[data-curve='part']")].entries()) {
      element.textContent = point.parts[part];
    }
    const { kinds } = curve;
    fill(".curve__largest", point.largest, ([kind, count, bytes]) => {
      const row = labelled(count > 1 ? `${count} \u00d7 ${kinds[kind]}` : kinds[kind], {}, "li");
      row.prepend(labelled(bytes, {}, "strong"), " ");
      return row;
    });
    find(".curve__none").hidden = point.largest.length > 0;
    /** @type {HTMLButtonElement} */ (find("#curve-peak")).disabled = at === curve.peak;
  }

  /** The point that a share of the width is in. @param {number} x */
  function pointAt(x) {
    const points = /** @type {Curve} */ (curve).points;
    const after = points.findIndex((point) => point.x > x);
    return (after < 0 ? points.length : after) - 1;
  }

  /** The first point of the next layer, or of the one before. @param {number} by */
  function layerFrom(by) {
    const { points } = /** @type {Curve} */ (curve);
    const { layer } = points[at];
    let next = at;
    while (points[next]?.layer === layer) next += by;
    if (!points[next]) return by > 0 ? points.length - 1 : 0;
    return by > 0 ? next : firstOf(next);
  }

  /** The first point of a layer. @param {number} last */
  function firstOf(last) {
    const { points } = /** @type {Curve} */ (curve);
    let first = last;
    while (points[first - 1]?.layer === points[last].layer) first -= 1;
    return first;
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
  find("#curve-peak").addEventListener("click", () => {
    if (!curve) return;
    slider.focus();
    go(curve.peak);
  });
  place.addEventListener("toggle", request);

  function showStale() {
    clearTimeout(quiet);
    wanted = undefined;
    place.setAttribute("aria-busy", "true");
  }

  /** Draw the curve of a state, once nothing is edited any more. @type {(state: string) => void} */
  function follow(state) {
    clearTimeout(quiet);
    wanted = state;
    if (shown === state) place.removeAttribute("aria-busy");
    else quiet = setTimeout(request, QUIET_MS);
  }
  return { showStale, follow };
}

/** @type {(text: string, lengths: Record<string, number>, tag?: string) => HTMLElement} */
function labelled(text, lengths, tag = "span") {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, length] of Object.entries(lengths)) element.style.setProperty(name, String(length));
  return element;
}
