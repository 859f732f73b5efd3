/**
 * Plots of the page's own: columns over time and bars per name, as SVG. Every mark can be reached with the keyboard
 * and says its numbers; arrows go from one to the next. The same numbers stand in a table, which is the caller's.
 */

import { fill, h, svg } from "./dom.js";

/** @typedef {{name: string, values: number[], words: string}} Mark values in the order of the series */
/** @typedef {{label: string, series: string[], format: (value: number) => string}} Scale */

const HEIGHT = 220;
const FOOT = 22;
const HEAD = 10;
const LINE = 40;
const highest = (marks) => Math.max(...marks.map(({ values }) => values.reduce((total, value) => total + value, 0)));

/** The smallest 1, 2 or 5 times a power of ten that is not below `value`. @param {number} value */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

/** Columns side by side, the first on the left. @param {Mark[]} marks @param {Scale} scale */
export function columns(marks, scale) {
  return responsive(scale, (width, tip) => {
    const top = roundUp(highest(marks));
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => part * top);
    const left = 14 + 6.5 * Math.max(...ticks.map((tick) => scale.format(tick).length));
    const band = (width - left - 12) / marks.length;
    const thick = Math.min(44, band * 0.72);
    const every = Math.ceil(62 / band);
    const y = (value) => HEAD + (HEIGHT - HEAD - FOOT) * (1 - value / top);
    const axis = ticks.map((tick) => [svg("line", { class: "grid", x1: left, x2: width - 12, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 6, y: y(tick) + 4, class: "right" }, scale.format(tick))]);
    return [HEIGHT, axis, marks.map((mark, i) => {
      const x = left + band * i;
      const [parts, end] = stack(mark, (from, to) => ({ x: x + (band - thick) / 2, width: thick, y: y(to), height: y(from) - y(to) }));
      return group(mark, tip, x + band / 2, y(end), svg("rect", { class: "hit", x, y: HEAD, width: band, height: HEIGHT - HEAD - FOOT }), parts,
        (marks.length - 1 - i) % every === 0 && svg("text", { x: x + band / 2, y: HEIGHT - 6, class: "middle" }, mark.name.slice(5)));
    })];
  });
}

/** Bars one below the other, the first on top. @param {Mark[]} marks @param {Scale} scale */
export function bars(marks, scale) {
  return responsive(scale, (width, tip) => {
    const top = highest(marks) || 1;
    const most = Math.max(8, Math.floor((width - 90) / 7.2));
    return [LINE * marks.length, marks.map((mark, i) => {
      const y = LINE * i;
      const bar = { y: y + 21, height: 10 };
      const [parts, end] = stack(mark, (from, to) => ({ x: (from / top) * width, width: ((to - from) / top) * width, ...bar }));
      const name = mark.name.length > most ? `${mark.name.slice(0, most)}…` : mark.name;
      return group(mark, tip, (end / top) * width, y + 18, svg("rect", { class: "hit", y, width, height: LINE }),
        svg("rect", { class: "track", width, ...bar }), parts, svg("text", { y: y + 14, class: "strong" }, name),
        svg("text", { x: width, y: y + 14, class: "right" }, scale.format(end)));
    })];
  });
}

/** The parts of a mark, one upon the other, and where they end. */
function stack({ values }, place) {
  let end = 0;
  const parts = values.map((value, i) => svg("rect", { class: `s${i}`, ...place(end, end += value) }));
  return [parts, end];
}

/** A drawing that is made anew for the width it gets. */
function responsive({ label, series }, draw) {
  const tip = h("div", { class: "tip", hidden: true });
  const box = h("div", { class: "plot" });
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth === width || !box.clientWidth) return;
    width = box.clientWidth;
    const [height, ...parts] = draw(width, tip);
    fill(box, svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label, onkeydown: move }, parts), tip);
    box.querySelector(".mark").setAttribute("tabindex", "0");
  }).observe(box);
  const swatch = (i) => svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { class: `s${i}`, width: 10, height: 10, rx: 2 }));
  return h("div", null, series.length > 1 && h("ul", { class: "plain legend" }, series.map((name, i) => h("li", null, swatch(i), name))), box);
}

function group(mark, tip, x, y, ...children) {
  const show = () => {
    fill(tip, mark.words).hidden = false;
    const half = tip.offsetWidth / 2;
    tip.style.setProperty("left", `${Math.max(half, Math.min(x, tip.parentElement.clientWidth - half))}px`);
    tip.style.setProperty("top", `${y - 6}px`);
  };
  const hide = () => { tip.hidden = true; };
  return svg("g", { class: "mark", role: "img", tabindex: "-1", "aria-label": mark.words, onfocus: show, onblur: hide, onpointerenter: show,
    onpointerleave: hide }, children);
}

function move(event) {
  const marks = [...event.currentTarget.querySelectorAll(".mark")];
  const at = marks.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: marks.length - 1 }[event.key];
  const next = marks[to];
  if (!next) return;
  event.preventDefault();
  marks[at].setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}
