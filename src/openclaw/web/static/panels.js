/** The panels of the page besides sessions and chat: each module registers its own with `registerPanel`. */

import "./tree.js";
import "./usage.js";
import "./status.js";
import "./cron.js";
import "./people.js";
import "./devices.js";
import "./logs.js";
import "./settings.js";
