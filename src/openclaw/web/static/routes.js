/** Addresses inside the page: `#/s/<key>[/<message>[/<window>]]` and `#/<panel>`. Reads and writes the address, nothing else. */

/** Go to a place in the page, such as `/tree`. @param {string} path */
export function navigate(path) {
  const hash = path.startsWith("#") ? path : `#${path}`;
  if (hash === location.hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}

/** The path of a session, or of one message in it, in an earlier conversation if that is named.
 * @param {string} key @param {string} [messageId] @param {string} [windowId] */
export function sessionPath(key, messageId, windowId) {
  return ["/s", key, messageId, windowId].filter(Boolean).map((part, i) => (i ? encodeURIComponent(part) : part)).join("/");
}

/** Where we are. @returns {{panel: string, key: string|null, messageId: string|null, windowId: string|null}} */
export function route() {
  const [panel, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decode);
  const [key = null, messageId = null, windowId = null] = panel === "s" ? rest.map((part) => part || null) : [];
  return { panel, key, messageId, windowId };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whether one column is shown at a time. */
export function narrow() {
  return matchMedia("(max-width: 760px)").matches;
}
