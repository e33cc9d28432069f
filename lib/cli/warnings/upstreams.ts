/** Warnings about upstreams: their addresses and their keys. */
import type { Config, HttpUpstreamConfig } from "../../config.ts";
import { pathText } from "../../config/problems.ts";
import { usualPath, vendorOf } from "../../upstreams/vendors.ts";
import type { Warning } from "./warning.ts";
import { isOwnHost } from "./network.ts";

/** The upstreams over the network, by name. */
export function httpUpstreams({ upstreams }: Pick<Config, "upstreams">): [name: string, row: HttpUpstreamConfig][] {
  return Object.entries(upstreams).flatMap(([name, row]) => row.vendor === "embedded" ? [] : [[name, row]]);
}

function addressOf({ base_url, vendor }: HttpUpstreamConfig): URL {
  return new URL(base_url ?? vendorOf(vendor).baseUrl ?? "http://localhost");
}

/** True for a host that is not one's own and has no key: most of them refuse that. */
export function lacksKey(row: HttpUpstreamConfig): boolean {
  return row.api_key === undefined && !isOwnHost(addressOf(row).hostname);
}

/** True for a host that sends bills: one with a key that is not one's own. */
export function sendsBills(row: HttpUpstreamConfig): boolean {
  return row.api_key !== undefined && !isOwnHost(addressOf(row).hostname);
}

/** Warnings about every upstream. */
export function upstreamWarnings(config: Config): Warning[] {
  const used = new Set(config.models.flatMap(({ targets }) => targets.map(({ upstream }) => upstream)));
  const seen = new Map<string, string>();
  return httpUpstreams(config).flatMap(([name, row]) => {
    const path = (member: string): string => pathText(["upstreams", name, member]);
    const warnings: Warning[] = addressWarnings(row, path("base_url"));
    if (lacksKey(row)) {
      warnings.push({
        path: path("api_key"),
        message: "No key for a host that is not yours: add one, unless the host needs none",
      });
    }
    if (!used.has(name)) {
      warnings.push({
        path: pathText(["upstreams", name]),
        message: "No model goes there: add a target, or remove it",
      });
    }
    const place = `${addressOf(row)} ${row.vendor} ${row.api_key?.reveal() ?? ""}`;
    const first = seen.get(place);
    if (first === undefined) seen.set(place, name);
    else {
      warnings.push({
        path: path("base_url"),
        message:
          `The same address and key as upstream "${first}": keep one, as failing over to the other has no effect`,
      });
    }
    return warnings;
  });
}

function addressWarnings({ base_url, vendor }: HttpUpstreamConfig, path: string): Warning[] {
  if (base_url === undefined) return [];
  const { protocol, hostname, pathname } = new URL(base_url);
  const warnings: Warning[] = [];
  if (protocol === "http:" && !isOwnHost(hostname)) {
    warnings.push({ path, message: `Prompts and the key go to "${hostname}" unencrypted: use https` });
  }
  const whole = /\/(chat\/completions|responses|messages|images\/(generations|edits))\/?$/.exec(pathname)?.[0];
  if (whole !== undefined) {
    warnings.push({ path, message: `The protocol's path is appended to it: remove "${whole}"` });
  } else if (vendor === "anthropic" && /\/v1\/?$/.test(pathname)) {
    warnings.push({ path, message: '"/v1/messages" is appended to it: remove "/v1"' });
  } else if (vendor !== "anthropic" && pathname === "/") {
    warnings.push({ path, message: `It has no path; such hosts usually answer below "${usualPath(vendor)}": add it` });
  }
  return warnings;
}
