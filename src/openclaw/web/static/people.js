/** Who may talk to the agents through channels: those who wait with a code, and those who were let in. */

import { age, fill, notice } from "./dom.js";
import { addPanel, badge, button, Panel, section, sure, table } from "./panel.js";
import { wire } from "./wire.js";

class People extends Panel {
  static events = ["health"];

  build() {
    this.frame("People");
  }

  load() {
    return wire.call("pairing.list", {});
  }

  draw({ pending, admitted }) {
    const who = [["Channel", (row) => `${row.channel}${row.accountId && row.accountId !== "default" ? ` (${row.accountId})` : ""}`],
      ["Who", (row) => row.name], ["Id", (row) => row.senderId]];
    fill(this.body, section("Waiting", table("People who wait", [...who, ["Code", (row) => row.code], ["Asked", (row) => age(row.askedAt)],
      ["", (row) => [button("Let in", () => this.approve(row, false), { class: "primary" }), button("As owner", () => this.approve(row, true))], "deeds"],
    ], pending, "Nobody waits. A stranger who writes to a channel is given a code, and appears here.")),
    section("Let in", table("People who were let in", [...who, ["", (row) => row.owner && badge("owner", "warn")], ["Since", (row) => age(row.approvedAt)],
      ["", (row) => button("Remove", () => this.remove(row), { class: "danger" }), "deeds"]], admitted, "Nobody was let in by a code.")));
  }

  async approve(row, owner) {
    const name = row.name ?? row.senderId;
    if (owner) await sure(`${name} as an owner?`, "An owner may give every command and use every tool on this machine.", "Let in as owner");
    if (await this.act("pairing.approve", { channel: row.channel, code: row.code, owner })) notice(`${name} may write now.`);
  }

  async remove(row) {
    await sure(`Remove ${row.name ?? row.senderId}?`, "What they write is no longer answered.", "Remove");
    this.act("pairing.remove", { channel: row.channel, senderId: row.senderId, accountId: row.accountId });
  }
}

addPanel("people", "People", People, 50);
