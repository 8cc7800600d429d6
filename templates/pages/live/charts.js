// @ts-check
/*
 * The charts: Plotly draws them when they come into sight, in the page's colours. All share the
 * axis across, and one cursor, which the range field under them moves.
 */

import { find, findAll } from "#assets/elements.js";
import { shapesOf } from "./events.js";
import * as lines from "./lines.js";
import { loadPlotly, needPlotly } from "./plotly.js";
import { firstAtLeast } from "#assets/live/progress.js";
import { nextTurn } from "#assets/live/turns.js";

const MARGIN = { l: 52, r: 14, t: 10, b: 34 };
const LOSS_MARGIN = { ...MARGIN, r: 52 };
const CONFIG = { doubleClick: false, displaylogo: false, responsive: false };

const DRAWERS = { loss: lines.loss, volunteers: lines.volunteers, speed: lines.speed, traffic: lines.traffic };

/** @typedef {keyof typeof DRAWERS} Name */

/** All charts of the page. */
export class Charts {
  /** @type {lines.View} */
  view = { across: "step", part: 1, smoothing: 0.6, log: false, schedule: false, total: false, events: true, zoom: undefined };
  /** @type {import("./events.js").Event[]} */
  events = [];
  /** The time that is set off, say a contributor's, in milliseconds since 1970. @type {[number, number] | undefined} */
  marked;
  /** @type {Chart[]} */
  #charts;
  /** @type {import("#assets/live/progress.js").Progress | undefined} */
  #progress;
  /** @type {import("#assets/live/data.js").Card | undefined} */
  #card;

  /**
   * @param {HTMLElement} root
   * @param {{onZoom: (zoomed: boolean) => void, onPoint: (index: number) => void, onMissing: () => void}} listeners
   */
  constructor(root, listeners) {
    this.listeners = listeners;
    this.#charts = findAll(root, "[data-chart]").map((figure) => new Chart(figure, this));
    this.colours = new MutationObserver(() => this.redraw());
    this.colours.observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  }

  stop() {
    this.colours.disconnect();
    for (const chart of this.#charts) chart.stop();
  }

  /** @type {(progress: import("#assets/live/progress.js").Progress, card: import("#assets/live/data.js").Card | undefined) => void} */
  show(progress, card) {
    this.#progress = progress;
    this.#card = card;
    this.redraw();
  }

  redraw() {
    for (const chart of this.#charts) chart.spoil();
  }

  /** Whether the run is known to have no step yet. */
  get isEmpty() {
    return this.#progress?.length === 0;
  }

  /** Where the steps are, and the part of the axis to draw. */
  frame() {
    if (!this.#progress?.length) return undefined;
    const progress = this.#progress;
    const { view } = this;
    const { places, range } = lines.across(progress, this.#card, view);
    const placeOf = (/** @type {number} */ time) =>
      view.across === "time" ? time : places[Math.min(firstAtLeast(progress.time, time), places.length - 1)];
    const events = view.events ? this.events.map(({ kind, time, end }) => ({ kind, from: placeOf(time), to: placeOf(end) })) : [];
    return { progress, card: this.#card, view, places, range, marked: this.marked?.map(placeOf), events };
  }

  /** @param {number | undefined} index The step to point at. */
  point(index) {
    for (const chart of this.#charts) chart.point(index);
  }

  /** @param {[number, number]} [range] None: all steps that were chosen. */
  zoom(range) {
    this.view.zoom = range;
    this.redraw();
    this.listeners.onZoom(range !== undefined);
  }
}

class Chart {
  #stale = true;
  #seen = false;
  #drawing = false;
  /** @type {number | undefined} */
  #pointed;

  /**
   * @param {HTMLElement} figure
   * @param {Charts} charts
   */
  constructor(figure, charts) {
    this.figure = figure;
    this.charts = charts;
    this.name = /** @type {Name} */ (figure.dataset.chart);
    this.plot = find(figure, "[data-plot]");
    this.cursor = find(figure, ".chart__cursor");
    this.summary = find(figure, "[data-summary]");
    this.margin = this.name === "loss" ? LOSS_MARGIN : MARGIN;
    this.sight = new IntersectionObserver(([entry]) => this.#look(entry.isIntersecting), { rootMargin: "200px" });
    this.sight.observe(figure);
    this.view = new IntersectionObserver(([entry]) => entry.isIntersecting && needPlotly());
    this.view.observe(figure);
    this.size = new ResizeObserver(() => this.spoil());
    this.size.observe(this.plot);
    this.plot.addEventListener("pointermove", (event) => this.#hover(event));
  }

  stop() {
    this.sight.disconnect();
    this.view.disconnect();
    this.size.disconnect();
    /** @type {any} */ (globalThis).Plotly?.purge(this.plot);
  }

  /** Draw again as soon as it is in sight. */
  spoil() {
    this.#stale = true;
    if (this.#seen) void this.#draw();
  }

  /** @param {boolean} seen */
  #look(seen) {
    this.#seen = seen;
    if (seen && this.#stale) void this.#draw();
  }

  async #draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    try {
      const library = await loadPlotly();
      await nextTurn();
      while (this.#stale && this.plot.isConnected) {
        this.#stale = false;
        await this.#drawNow(library);
      }
    } catch {
      this.charts.listeners.onMissing();
    } finally {
      this.#drawing = false;
    }
  }

  /** @param {any} library */
  async #drawNow(library) {
    const frame = this.charts.frame();
    const width = this.plot.clientWidth;
    if (this.charts.isEmpty) this.#clear(library);
    if (!frame || !width) return;
    const began = performance.now();
    const styles = getComputedStyle(document.body);
    const colour = (/** @type {string} */ name) => styles.getPropertyValue(`--${name}`).trim();
    // Two pixels a column: its four points are no further apart than a line is wide.
    const columns = Math.max(50, (width - this.margin.l - this.margin.r) / 2);
    const drawing = DRAWERS[this.name]({ ...frame, columns, colour });
    const computed = performance.now() - began;
    await nextTurn(); // computing and drawing are long works, each for itself
    if (!this.plot.isConnected) return;
    const drawn = performance.now();
    const first = !this.plot.classList.contains("js-plotly-plot");
    if (first) this.plot.replaceChildren();
    await library.react(this.plot, drawing.traces, this.#layout(frame, drawing.axes, colour, width), this.#config(library));
    performance.measure(`live: ${this.name}`, { start: began, duration: computed + performance.now() - drawn });
    if (first) this.#listen();
    for (const picture of this.plot.querySelectorAll(".main-svg")) picture.setAttribute("aria-hidden", "true");
    this.plot.dataset.points = String(drawing.traces.reduce((sum, trace) => sum + /** @type {any} */ (trace).x.length, 0));
    this.summary.textContent = drawing.summary;
    this.point(this.#pointed);
  }

  /** @param {any} library */
  #clear(library) {
    library.purge(this.plot);
    this.plot.replaceChildren();
    this.plot.classList.remove("js-plotly-plot");
    this.summary.textContent = "No step has been completed yet.";
    this.cursor.hidden = true;
  }

  /** @type {(frame: NonNullable<ReturnType<Charts["frame"]>>, axes: Record<string, object>, colour: (name: string) => string, width: number) => object} */
  #layout({ view, range, marked, events }, axes, colour, width) {
    const axis = { gridcolor: colour("line"), linecolor: colour("line-strong"), zeroline: false, fixedrange: true, nticks: 5, automargin: false };
    const time = view.across === "time";
    const named = Object.fromEntries(Object.entries(axes).map(([name, own]) => [name, { ...axis, ...own }]));
    return {
      width, height: this.plot.clientHeight, margin: this.margin, showlegend: false, separators: ".,",
      paper_bgcolor: colour("paper"), plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "Archivo, system-ui, sans-serif", size: 12, color: colour("muted") },
      // A finger scrolls the page; a mouse picks a part of the axis.
      dragmode: matchMedia("(pointer: fine)").matches ? "zoom" : false,
      hovermode: "x unified", selectdirection: "h",
      hoverlabel: { bgcolor: colour("paper"), bordercolor: colour("line-strong"), font: { color: colour("ink") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("ink") },
      xaxis: { ...axis, range, type: time ? "date" : "linear", fixedrange: false, showgrid: false, showline: true, showspikes: false, ticks: "outside", ticklen: 4, nticks: width < 500 ? 4 : 8, ...(time ? {} : { tickformat: ",d", hoverformat: ",d" }) },
      shapes: [...(marked ? [{ type: "rect", layer: "below", yref: "paper", x0: marked[0], x1: marked[1], y0: 0, y1: 1, line: { width: 0 }, fillcolor: colour("panel") }] : []), ...shapesOf(events, colour)],
      ...named,
    };
  }

  /** @param {any} library */
  #config({ Icons }) {
    const reset = { name: "reset", title: "Reset axes", icon: Icons.home, click: () => this.charts.zoom() };
    const filename = this.name;
    return { ...CONFIG, modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", reset]], toImageButtonOptions: { filename, scale: 2 } };
  }

  #listen() {
    const plot = /** @type {any} */ (this.plot);
    plot.on("plotly_doubleclick", () => this.charts.zoom());
    plot.on("plotly_relayout", (/** @type {any} */ change) => {
      const ends = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      const range = ends.map((/** @type {any} */ end) => (typeof end === "string" ? Date.parse(`${end.replace(" ", "T")}Z`) : end));
      if (range.every(Number.isFinite)) this.charts.zoom([range[0], range[1]]);
    });
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const frame = this.charts.frame();
    if (!frame) return;
    const { left, width } = this.plot.getBoundingClientRect();
    const share = (event.clientX - left - this.margin.l) / (width - this.margin.l - this.margin.r);
    if (share < 0 || share > 1) return;
    const place = frame.range[0] + share * (frame.range[1] - frame.range[0]);
    const after = Math.min(firstAtLeast(frame.places, place), frame.places.length - 1);
    const before = Math.max(0, after - 1);
    const nearer = place - frame.places[before] < frame.places[after] - place ? before : after;
    this.charts.listeners.onPoint(nearer);
  }

  /** @param {number | undefined} index */
  point(index) {
    this.#pointed = index;
    const frame = this.charts.frame();
    const place = index === undefined ? undefined : frame?.places[index];
    const { l, r, t, b } = this.margin;
    const inside = frame && place !== undefined && place >= frame.range[0] && place <= frame.range[1];
    this.cursor.hidden = !inside;
    if (!inside) return;
    const share = (place - frame.range[0]) / (frame.range[1] - frame.range[0]);
    this.cursor.style.left = `calc(${l}px + ${share} * (100% - ${l + r}px))`;
    this.cursor.style.top = `${this.plot.offsetTop + t}px`;
    this.cursor.style.height = `${Math.max(0, this.plot.clientHeight - t - b)}px`;
  }
}
