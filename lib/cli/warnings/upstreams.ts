/** Warnings about the addresses and keys of upstreams. */
import type { Config, HttpUpstreamConfig } from "../../config.ts";
import { pathText } from "../../config/problems.ts";
import { usualPath, vendorOf } from "../../upstreams/vendors.ts";
import { type Warning, warning } from "./warning.ts";
import { isOwnHost } from "./network.ts";

/** Returns the upstreams that are reached over the network, with their names. */
export function httpUpstreams({ upstreams }: Pick<Config, "upstreams">): [name: string, row: HttpUpstreamConfig][] {
  return Object.entries(upstreams).flatMap(([name, row]) => row.vendor === "embedded" ? [] : [[name, row]]);
}

function addressOf({ base_url, vendor }: HttpUpstreamConfig): URL {
  return new URL(base_url ?? vendorOf(vendor).baseUrl ?? "http://localhost");
}

/** Returns whether an upstream has a public host and no key, which most such hosts refuse. */
export function lacksKey(row: HttpUpstreamConfig): boolean {
  return row.api_key === undefined && !isOwnHost(addressOf(row).hostname);
}

/** Returns whether an upstream probably sends bills: it has a public host and a key. */
export function sendsBills(row: HttpUpstreamConfig): boolean {
  return row.api_key !== undefined && !isOwnHost(addressOf(row).hostname);
}

/** Yields warnings about all upstreams that are reached over the network. */
export function* upstreamWarnings(config: Config): Generator<Warning> {
  const used = new Set(config.models.flatMap(({ targets }) => targets.map(({ upstream }) => upstream)));
  const seen = new Map<string, string>();
  for (const [name, row] of httpUpstreams(config)) {
    const path = (member: string): string => pathText(["upstreams", name, member]);
    yield* addressWarnings(row, path("base_url"));
    if (lacksKey(row)) {
      yield warning(path("api_key"), "This public host has no key: add one, unless it needs none");
    }
    if (!used.has(name)) {
      yield warning(pathText(["upstreams", name]), "No model uses it: add a target, or remove the upstream");
    }
    const key = `${addressOf(row)} ${row.vendor} ${row.api_key?.reveal() ?? ""}`;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, name);
    else {
      yield warning(
        path("base_url"),
        `The same address and key as upstream "${first}": keep one, as failing over to the other has no effect`,
      );
    }
  }
}

function* addressWarnings({ base_url, vendor }: HttpUpstreamConfig, path: string): Generator<Warning> {
  if (base_url === undefined) return;
  const { protocol, hostname, pathname } = new URL(base_url);
  if (protocol === "http:" && !isOwnHost(hostname)) {
    yield warning(path, `Prompts and the key go to "${hostname}" unencrypted: use https`);
  }
  const suffix = /\/(chat\/completions|responses|messages|images\/(generations|edits))\/?$/.exec(pathname)?.[0];
  if (suffix !== undefined) {
    yield warning(path, `The protocol's path is appended to it: remove "${suffix}"`);
  } else if (vendor === "anthropic" && /\/v1\/?$/.test(pathname)) {
    yield warning(path, '"/v1/messages" is appended to it: remove "/v1"');
  } else if (vendor !== "anthropic" && pathname === "/") {
    yield warning(path, `It has no path; such hosts usually answer below "${usualPath(vendor)}": add it`);
  }
}
