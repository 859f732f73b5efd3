/** Devices that may connect to the gateway: those that ask, and those that were paired. */

import { age, fill, h, notice } from "./dom.js";
import { addPanel, badge, button, Panel, section, sure, table } from "./panel.js";
import { wire } from "./wire.js";

class Devices extends Panel {
  static events = ["device.pair.requested", "device.pair.resolved", "presence"];

  build() {
    this.frame("Devices");
  }

  load() {
    return wire.call("device.pair.list", {});
  }

  draw({ pending, paired }) {
    const name = (row) => row.displayName || row.deviceFamily || row.clientId;
    const about = [["Device", (row) => [h("strong", null, name(row)), h("span", { class: "hint", title: row.deviceId }, ` ${row.deviceId.slice(0, 12)}`)]],
      ["Client", (row) => `${row.clientId}, ${row.platform}`], ["May", (row) => row.scopes.map((scope) => scope.replace("operator.", "")).join(", ") || row.role]];
    fill(this.body, section("Asking", table("Devices that ask", [...about, ["From", (row) => row.remoteIp], ["Why", (row) => row.reason], ["Asked", (row) => age(row.ts)],
      ["", (row) => [button("Approve", () => this.settle("approve", row, name(row)), { class: "primary" }),
        button("Reject", () => this.settle("reject", row, name(row)), { class: "danger" })], "deeds"],
    ], pending, "No device asks. One that connects from elsewhere for the first time appears here.")),
    section("Paired", table("Paired devices", [...about, ["State", (row) => (row.connected ? badge("connected", "good") : badge("away", "idle"))],
      ["Last seen", (row) => age(row.lastSeenAtMs)], ["Paired", (row) => `${age(row.approvedAtMs)}, ${row.approvedVia}`],
      ["", (row) => button("Remove", () => this.remove(row, name(row)), { class: "danger" }), "deeds"],
    ], paired, "No device is paired.")));
  }

  async settle(verb, row, name) {
    const done = await this.act(`device.pair.${verb}`, { requestId: row.requestId });
    if (done) notice(verb === "approve" ? `${name} may connect now.` : `${name} was refused.`);
  }

  async remove(row, name) {
    await sure(`Remove ${name}?`, "Its tokens end now and its connections close. It has to ask again.", "Remove");
    this.act("device.pair.remove", { deviceId: row.deviceId });
  }
}

addPanel("devices", "Devices", Devices, 60);
