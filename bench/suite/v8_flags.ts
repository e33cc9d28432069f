/** The flags for V8 that the gateway is started with. */
import denoJson from "../../deno.json" with { type: "json" };

/** Those of the task `sluice`, each with its hyphens, with commas in between. */
export const V8_FLAGS = /--v8-flags=(\S+)/.exec(denoJson.tasks.sluice.command)?.[1] ?? "";
