/**
 * Building the page: elements from values, never from markup. Text is always text (`textContent`), so nothing
 * that a model or a person wrote can become an element, an attribute or a script. No state, no wire.
 */

/** Properties that are set on the element itself; every other name becomes an attribute. */
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "className", "tabIndex", "htmlFor",
  "textContent", "scrollTop", "open", "multiple", "rows"]);
const SVG = "http://www.w3.org/2000/svg";

/**
 * One element. `props`: `on…` adds a listener, `class` and `data-…` are attributes, null and false are left out.
 * Attributes that could run code or style (`style`, `srcdoc`, `on…` as text) are refused. A button sends no form.
 * @param {string} tag @param {Object<string, any>|null} [props] @param {...(Node|string|number|null|false|Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  if (tag === "button") element.type = "button";
  for (const [name, value] of Object.entries(props ?? {})) setOne(element, name, value);
  element.append(...flat(children));
  return element;
}

/** The same for SVG. @param {string} tag @param {Object<string, any>|null} [props] @param {...any} children */
export function svg(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props ?? {})) setOne(element, name, value);
  element.append(...flat(children));
  return element;
}

function setOne(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") {
    if (!name.startsWith("on")) throw new TypeError(`${name}: only listeners are functions`);
    element.addEventListener(name.slice(2).toLowerCase(), value);
  } else if (PROPERTIES.has(name) && name in element) {
    element[name] = value;
  } else if (name === "style" || name === "srcdoc" || name.startsWith("on")) {
    throw new TypeError(`${name}: not an attribute that this page sets`);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function flat(children) {
  return children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false)
    .map((one) => (one instanceof Node ? one : String(one)));
}

/** Replace what is in an element. @param {Element} element @param {...any} children */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

/** How long ago, in one short word. @param {number|null|undefined} ms epoch @param {number} [now] */
export function age(ms, now = Date.now()) {
  if (!ms) return "";
  const s = Math.max(0, Math.round((now - ms) / 1000));
  if (s < 45) return "now";
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))}m`;
  if (s < 86400) return `${Math.round(s / 3600)}h`;
  return s < 86400 * 60 ? `${Math.round(s / 86400)}d` : new Date(ms).toISOString().slice(0, 10);
}

/** A length of time. @param {number|null|undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s}s`;
  return s < 3600 ? `${Math.floor(s / 60)}m ${s % 60}s` : `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`;
}

/** A number of tokens. @param {number|null|undefined} n */
export function tokens(n) {
  if (n === null || n === undefined) return "–";
  if (n < 1000) return String(n);
  return n < 1e6 ? `${trim(n / 1000)}k` : `${trim(n / 1e6)}M`;
}

function trim(n) {
  return n < 10 ? n.toFixed(1).replace(/\.0$/, "") : String(Math.round(n));
}

/** US dollars; small amounts keep what can be told apart. @param {number|null|undefined} usd */
export function money(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd === 0) return "$0";
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

/** A date and time as this browser writes them. @param {number} ms */
export function clock(ms) {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** A sentence for screen readers, and nobody else. @param {string} text */
export function announce(text) {
  const place = document.getElementById("announcer");
  if (place) place.textContent = text;
}

/** A short notice at the bottom, with one thing to do about it. Returns how to take it away.
 * @param {string} text @param {{action?: string, run?: () => void, seconds?: number}} [options] */
export function notice(text, { action, run, seconds = 8 } = {}) {
  const place = document.getElementById("notices");
  const close = () => box.remove();
  const box = h("div", { class: "notice" }, h("span", null, text),
    action && h("button", { class: "link", onclick: () => { close(); run?.(); } }, action),
    h("button", { class: "quiet", "aria-label": "Dismiss", onclick: close }, "×"));
  place?.append(box);
  if (seconds) setTimeout(close, seconds * 1000);
  announce(text);
  return close;
}
