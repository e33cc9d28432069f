/** Checks a valid configuration for likely mistakes. */
import { isLoopbackHost } from "../access/networks.ts";
import { EMBEDDED_UPSTREAM } from "../catalog/embedded.ts";
import type { Config } from "../config.ts";
import { createNotes, type Finding } from "./finding.ts";
import { baseUrlOf } from "../upstreams/vendors.ts";

/** Checks the settings. @param path path of the configuration file; `undefined`: there is none */
export function checkSettings(config: Config, path: string | undefined): Finding[] {
  const notes = createNotes("configuration");
  notes.ok(path === undefined ? "There is no file: the built-in one is valid" : `"${path}" is valid`);
  const targeted = new Set(config.models.flatMap(({ targets }) => targets.map(({ upstream }) => upstream)));
  for (const [name, row] of Object.entries(config.upstreams)) {
    if (row.vendor === "embedded") continue;
    if (!targeted.has(name) && name !== EMBEDDED_UPSTREAM) {
      notes.warn(`No model has a target at upstream "${name}"`, "Add a model for it, or remove the upstream");
    }
    const { protocol, hostname } = new URL(baseUrlOf(row));
    if (protocol === "http:" && row.api_key !== undefined && !isLoopbackHost(hostname)) {
      notes.warn(`The key of upstream "${name}" travels unencrypted to ${hostname}`, "Use an address with https");
    }
  }
  if (!isLoopbackHost(config.listen.hostname)) {
    notes.warn(
      `It listens on ${config.listen.hostname} without TLS: API keys of clients travel unencrypted`,
      "Make sure that only a reverse proxy with TLS can reach it",
    );
  }
  const rules = [...Object.values(config.groups), ...config.keys.map(({ rules }) => rules)];
  if (rules.some(({ ips }) => ips !== undefined) && config.trusted_proxies.length === 0) {
    notes.warn(
      "There are address rules, but no trusted_proxies",
      "If there is a proxy, add it to trusted_proxies: otherwise every client has its address",
    );
  }
  if (config.store.kind === "memory") {
    notes.warn(
      'The store is "memory:": keys and bills end with the process',
      'Use "sqlite:PATH" for anything but a trial',
    );
  }
  return notes.found;
}
