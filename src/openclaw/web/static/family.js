/** Who asked whom for help, as a list of lines to show. Values only: no element, no wire. */

/** Who is above a session, if anybody. @param {any} row */
export function parentOf(row) {
  const above = row.spawnedBy || row.parentSessionKey;
  return above && above !== row.key ? above : null;
}

/** One word for how a session does: of a helper, how its task ended. @param {any} row */
export function stateOf(row) {
  const status = row.task?.status ?? row.status;
  return row.hasActiveRun ? "running" : status && status !== "running" ? status : "idle";
}

const KINDS = { running: "busy", done: "good", failed: "bad", timeout: "bad", killed: "warn" };
export const kindOf = (state) => KINDS[state] ?? "idle";

const byBirth = (a, b) => (a.createdAt ?? 0) - (b.createdAt ?? 0);

export class Family {
  constructor() {
    /** @type {Map<string, any>} */
    this.rows = new Map();
    /** Keys whose helpers are folded away. */
    this.folded = new Set();
  }

  /** Take over what is told of one session; what events leave out stays. The first run of a helper that `ended` is its task. */
  put(row, ended = false) {
    const { derivedTitle, task } = this.rows.get(row.key) ?? {};
    const own = ended && row.spawnedBy ? { status: row.status, runtimeMs: row.runtimeMs } : undefined;
    this.rows.set(row.key, { derivedTitle, task: task ?? own, ...row });
  }

  /** Children by parent; nobody is above a session whose parent is not here, or who would be above itself. */
  children() {
    const below = new Map([[null, []]]);
    for (const row of this.rows.values()) {
      let above = parentOf(row);
      if (!this.rows.has(above) || this._circles(row)) above = null;
      if (!below.has(above)) below.set(above, []);
      below.get(above).push(row);
    }
    return below;
  }

  _circles(row) {
    const seen = new Set();
    for (let at = parentOf(row); at && !seen.has(at); at = this.rows.has(at) && parentOf(this.rows.get(at))) {
      if (at === row.key) return true;
      seen.add(at);
    }
    return false;
  }

  /** What to show, parents before children: the family with the newest helper first, helpers by birth. `only` keeps the
   * sessions that it says yes to, and everybody above them. @param {(row: any) => boolean} only */
  lines(only) {
    const below = this.children();
    const facts = new Map();
    const all = [...below.get(null)];
    for (let at = 0; at < all.length; at += 1) all.push(...(below.get(all[at].key) ?? []));
    for (const row of all.reverse()) {
      const own = { running: 0, newest: row.createdAt ?? 0, shown: only(row) };
      for (const child of below.get(row.key) ?? []) {
        const its = facts.get(child.key);
        own.running += its.running + (child.hasActiveRun ? 1 : 0);
        own.newest = Math.max(own.newest, its.newest);
        own.shown ||= its.shown;
      }
      facts.set(row.key, own);
    }
    const lines = [];
    const waiting = [];
    const add = (key, depth, order) => {
      const rows = (below.get(key) ?? []).filter((row) => facts.get(row.key).shown).sort(order);
      if (!this.folded.has(key)) waiting.push(...rows.map((row, i) => ({ row, depth, at: i + 1, of: rows.length })).reverse());
      return rows.length;
    };
    add(null, 0, (a, b) => facts.get(b.key).newest - facts.get(a.key).newest || byBirth(a, b));
    while (waiting.length) {
      const line = waiting.pop();
      const { key } = line.row;
      const children = add(key, line.depth + 1, byBirth);
      lines.push({ ...line, children, running: facts.get(key).running, open: children > 0 && !this.folded.has(key) });
    }
    return lines;
  }
}
