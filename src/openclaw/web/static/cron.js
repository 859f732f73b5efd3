/** Scheduled jobs: when each is due, what became of its runs; add, switch, run, remove. */

import { age, clock, duration, fill, h, notice } from "./dom.js";
import { attempt } from "./actions.js";
import { registerPanel } from "./app.js";
import { badge, button, callAll, Panel, sure, table } from "./panel.js";
import { sessionPath } from "./routes.js";
import { wire } from "./wire.js";

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const OUTCOMES = { ok: "good", error: "bad", skipped: "warn" };

/** A schedule in words. @param {any} schedule */
function told(schedule) {
  if (schedule.kind === "every") return `every ${duration(schedule.everyMs).replace(/ 0[ms]$/, "")}`;
  if (schedule.kind === "cron") return `${schedule.expr}${schedule.tz ? ` (${schedule.tz})` : ""}`;
  return `once, ${clock(typeof schedule.at === "number" ? schedule.at : Date.parse(schedule.at))}`;
}

/** What somebody typed as a schedule: `30m`, five fields of cron, or a time. Null: none of them. */
export function schedule(text) {
  const typed = text.trim();
  const every = /^(\d{1,6})\s*([smhd])$/.exec(typed);
  if (every) return { kind: "every", everyMs: Number(every[1]) * UNITS[every[2]] };
  if (typed.split(/\s+/).length === 5) return { kind: "cron", expr: typed };
  const at = Date.parse(typed);
  return Number.isNaN(at) ? null : { kind: "at", at };
}

class Cron extends Panel {
  static events = ["cron"];

  build() {
    this.runs = new Map();
    this.frame("Jobs", button("New job", () => this.add(), { class: "primary" }));
  }

  async load() {
    const answer = await callAll({ list: ["cron.list"], status: ["cron.status"] });
    for (const job of answer.list.jobs) if (this.runs.has(job.id)) await this.readRuns(job.id);
    return answer;
  }

  async readRuns(id) {
    const { entries } = await wire.call("cron.runs", { id, limit: 20 });
    this.runs.set(id, entries);
  }

  draw({ list, status }) {
    fill(this.body, !status.enabled && h("p", { class: "none" }, "The scheduler is off (cron.enabled)."),
      table("Jobs", [
        ["Job", (job) => [h("strong", null, job.name), h("span", { class: "hint clip" }, job.payload.message ?? job.payload.text)]],
        ["When", (job) => told(job.schedule), "short"], ["Where", (job) => `${job.agentId}: ${job.sessionTarget}`],
        ["Next", (job) => (job.enabled && job.state.nextRunAtMs ? clock(job.state.nextRunAtMs) : badge("off", "idle"))],
        ["", (job) => this.deeds(job), "deeds"],
      ], list.jobs, "No jobs yet. A job asks an agent something at a time of its own."),
      list.jobs.filter((job) => this.runs.has(job.id)).map((job) => h("section", { class: "section" }, h("h2", null, `Runs of ${job.name}`),
        this.history(this.runs.get(job.id)))));
  }

  deeds(job) {
    const say = (promise, what) => attempt(promise, what).then((answer) => answer && this.refresh());
    return [
      button(job.enabled ? "Switch off" : "Switch on", () => say(wire.call("cron.update", { id: job.id, patch: { enabled: !job.enabled } }), "Not changed")),
      button("Run now", () => say(wire.call("cron.run", { id: job.id }).then((answer) => {
        notice(answer.ran ? `${job.name} runs.` : `${job.name} did not run: ${answer.reason}`);
        return answer;
      }), "Not run")),
      button("Runs", async () => {
        if (!this.runs.delete(job.id)) await attempt(this.readRuns(job.id), "No runs");
        this.redraw();
      }, { "aria-expanded": String(this.runs.has(job.id)) }),
      button("Remove", async () => {
        if (await sure(`Remove ${job.name}?`, "It never runs again. What its runs said stays.", "Remove")) say(wire.call("cron.remove", { id: job.id }), "Not removed");
      }, { class: "danger" }),
    ];
  }

  history(entries) {
    return table("Runs", [
      ["When", (run) => clock(run.firedAt)], ["Outcome", (run) => (run.state === "open" ? badge("running", "busy") : badge(run.status ?? "ended", OUTCOMES[run.status] ?? "idle"))],
      ["Took", (run) => (run.endedAt ? duration(run.endedAt - run.firedAt) : age(run.firedAt))], ["Delivery", (run) => run.delivery],
      ["Error", (run) => run.error ?? ""], ["Session", (run) => h("a", { href: `#${sessionPath(run.sessionKey)}` }, "open")],
    ], entries, "It has not run yet.");
  }

  add() {
    const field = (label, control, hint) => h("label", { class: "field" }, h("span", null, label), control, hint && h("span", { class: "hint" }, hint));
    const name = h("input", { required: true, maxlength: "200", autocomplete: "off" });
    const when = h("input", { required: true, placeholder: "0 7 * * 1-5", autocomplete: "off", spellcheck: "false" });
    const text = h("textarea", { required: true, rows: 4 });
    const where = h("select", null, h("option", { value: "isolated" }, "In a session of its own"), h("option", { value: "main" }, "Tell the main session"));
    const problem = h("p", { class: "danger", role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      const plan = schedule(when.value);
      if (!plan) {
        problem.textContent = "When: an interval such as 30m, five fields of cron, or a time such as 2026-12-31 23:00.";
        return when.focus();
      }
      const payload = where.value === "main" ? { kind: "systemEvent", text: text.value } : { kind: "agentTurn", message: text.value };
      try {
        await wire.call("cron.add", { name: name.value.trim(), schedule: plan, sessionTarget: where.value, payload });
        dialog.close();
      } catch (error) {
        problem.textContent = error.message;
      }
      return undefined;
    };
    const dialog = h("dialog", { class: "dialog", "aria-label": "New job", onclose: () => dialog.remove() }, h("form", { onsubmit: submit },
      h("h2", null, "New job"), field("Name", name), field("When", when, "30m · 0 7 * * 1-5 · 2026-12-31 23:00"), field("What", text), field("Where", where), problem,
      h("div", { class: "row end" }, button("Cancel", () => dialog.close()), h("button", { class: "primary" }, "Add"))));
    document.body.append(dialog);
    dialog.showModal();
  }
}

customElements.define("oc-cron", Cron);
registerPanel({ id: "cron", title: "Jobs", icon: "cron", element: "oc-cron", order: 40 });
