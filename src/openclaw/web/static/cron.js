/** Scheduled jobs: when each is due, what became of its runs; add, switch, run, remove. */

import { clock, duration, fill, h, notice } from "./dom.js";
import { ask } from "./actions.js";
import { addPanel, badge, button, Panel, section, sure, table } from "./panel.js";
import { sessionPath } from "./routes.js";
import { wire } from "./wire.js";

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const OUTCOMES = { ok: "good", error: "bad", skipped: "warn" };

/** A schedule in words. */
function told({ kind, everyMs, expr, tz, at }) {
  if (kind === "every") return `every ${duration(everyMs).replace(/ 0[ms]$/, "")}`;
  return kind === "cron" ? `${expr} ${tz ?? ""}` : `once, ${clock(new Date(at).getTime())}`;
}

/** What somebody typed as a schedule: `30m`, five fields of cron, or a time. Null: none of them. @param {string} text */
export function schedule(text) {
  const typed = text.trim();
  const every = /^(\d{1,6})\s*([smhd])$/.exec(typed);
  if (every) return { kind: "every", everyMs: Number(every[1]) * UNITS[every[2]] };
  if (typed.split(/\s+/).length === 5) return { kind: "cron", expr: typed };
  const at = /^\d{4}-/.test(typed) ? Date.parse(typed) : NaN;
  return Number.isNaN(at) ? null : { kind: "at", at };
}

class Cron extends Panel {
  static events = ["cron"];

  build() {
    this.shown = new Set();
    this.frame("Jobs", button("New job", () => this.add(), { class: "primary" }));
  }

  async load() {
    const { jobs } = await wire.call("cron.list");
    const asked = jobs.filter((job) => this.shown.has(job.id));
    const runs = await Promise.all(asked.map(({ id }) => wire.call("cron.runs", { id, limit: 20 })));
    return { jobs, asked: asked.map(({ name }, i) => ({ name, runs: runs[i].entries })) };
  }

  draw({ jobs, asked }) {
    fill(this.body, table("Jobs", [
      ["Job", (job) => [h("strong", null, job.name), h("span", { class: "hint clip" }, job.payload.message ?? job.payload.text)]],
      ["When", (job) => told(job.schedule), "short"], ["Where", (job) => `${job.agentId}: ${job.sessionTarget}`],
      ["Next", (job) => (job.enabled && job.state.nextRunAtMs ? clock(job.state.nextRunAtMs) : badge("off", "idle"))],
      ["", (job) => this.deeds(job), "deeds"],
    ], jobs, "No jobs yet. A job asks an agent something at a time of its own."),
    asked.map(({ name, runs }) => section(`Runs of ${name}`, table("Runs", [
      ["When", (run) => clock(run.firedAt)], ["Outcome", (run) => (run.state === "open" ? badge("running", "busy") : badge(run.status, OUTCOMES[run.status]))],
      ["Took", (run) => run.endedAt && duration(run.endedAt - run.firedAt)], ["Delivery", (run) => run.delivery], ["Error", (run) => run.error],
      ["Session", (run) => h("a", { href: `#${sessionPath(run.sessionKey)}` }, "open")],
    ], runs, "It has not run yet."))));
  }

  deeds({ id, name, enabled }) {
    return [button(enabled ? "Switch off" : "Switch on", () => this.act("cron.update", { id, patch: { enabled: !enabled } })),
      button("Run now", async () => {
        const answer = await this.act("cron.run", { id });
        if (answer) notice(answer.ran ? `${name} runs.` : `${name} did not run: ${answer.reason}`);
      }),
      button("Runs", () => {
        if (!this.shown.delete(id)) this.shown.add(id);
        this.refresh();
      }, { "aria-expanded": String(this.shown.has(id)) }),
      button("Remove", async () => {
        await sure(`Remove ${name}?`, "It never runs again. What its runs said stays.", "Remove");
        this.act("cron.remove", { id });
      }, { class: "danger" })];
  }

  /** @param {any} typed what was typed before, and what was wrong with it */
  add(typed = {}) {
    const field = (label, tag, props, ...inside) => h("label", { class: "field" }, h("span", null, label), controls[label] = h(tag, { required: true, ...props }, inside));
    const controls = {};
    ask("New job", h("div", { class: "section" }, field("Name", "input", { maxlength: "200", value: typed.Name ?? "" }),
      field("When", "input", { placeholder: "30m, or 0 7 * * 1-5, or 2026-12-31 23:00", value: typed.When ?? "" }),
      field("What", "textarea", { rows: 4, value: typed.What ?? "" }),
      field("Where", "select", {}, h("option", { value: "isolated" }, "In a session of its own"), h("option", { value: "main", selected: typed.Where === "main" }, "Tell the main session")),
      h("p", { class: "danger", role: "alert" }, typed.problem)), "Add", async () => {
      const now = Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.value]));
      const plan = schedule(now.When);
      const payload = now.Where === "main" ? { kind: "systemEvent", text: now.What } : { kind: "agentTurn", message: now.What };
      try {
        if (!plan) throw new Error("When: an interval such as 30m, five fields of cron, or a time such as 2026-12-31 23:00.");
        await wire.call("cron.add", { name: now.Name, schedule: plan, sessionTarget: now.Where, payload });
      } catch (error) {
        this.add({ ...now, problem: error.message });
      }
    });
  }
}

addPanel("cron", "Jobs", Cron, 40);
