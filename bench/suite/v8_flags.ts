/** The flags for V8 that the gateway is started with. */
import denoJson from "../../deno.json" with { type: "json" };

/** The flags of the task `sluice`, each with its hyphens, separated by commas. */
export const V8_FLAGS = /--v8-flags=(\S+)/.exec(denoJson.tasks.sluice.command)?.[1] ?? "";
